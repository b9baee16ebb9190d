/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The event loop: epoll, level-triggered.
 *
 *   other threads ── loop_post ──▶ posted list ──▶ eventfd
 *                                                    │
 *   descriptors ───────────────────────────────▶ epoll_wait ◀── timers
 *
 * The eventfd is written under the lock and only when the list was empty:
 * one wake-up for a burst, and a poster has let go of the loop when its
 * work is seen, so that the loop may be freed once its last work has run.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "daemon/front/loop.h"

enum {
  EVENTS_PER_WAIT = 64
};

/* Only wakes: the work is run after the descriptors. */
static void
wake_is_ready (struct event_source *source, uint32_t events)
{
  struct loop *loop = container_of (source, struct loop, wake);
  uint64_t count;
  ssize_t r;

  (void) events;
  r = read (loop->wake_fd, &count, sizeof count);
  assert (r == sizeof count || errno == EAGAIN);
}

int
loop_init (struct loop *loop, struct bp_error *err)
{
  CLEANUP_CLOSE int epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
  CLEANUP_CLOSE int wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  int r;

  if (epoll_fd == -1 || wake_fd == -1)
    return bp_error_set (err, -errno, "event loop: %m");
  *loop = (struct loop){
    .epoll_fd = epoll_fd,
    .wake_fd = wake_fd,
    .wake.ready = wake_is_ready,
    .now_ns = now_ns (),
    .posted_tail = &loop->posted,
  };
  r = loop_watch (loop, wake_fd, &loop->wake, EPOLLIN);
  if (r < 0)
    return bp_error_set (err, r, "event loop: epoll_ctl: %m");
  pthread_mutex_init (&loop->lock, NULL);
  steal_fd (&epoll_fd);
  steal_fd (&wake_fd);
  return 0;
}

void
loop_done (struct loop *loop)
{
  {
    LOCKED (&loop->lock);
    assert (loop->posted == NULL);
  }
  pthread_mutex_destroy (&loop->lock);
  close (loop->wake_fd);
  close (loop->epoll_fd);
}

struct timer_queue *
loop_add_queue (struct loop *loop, uint64_t delay_ns)
{
  struct timer_queue *queue;

  assert (loop->nr_queues < LOOP_MAX_QUEUES);
  queue = &loop->queues[loop->nr_queues++];
  queue->delay_ns = delay_ns;
  TAILQ_INIT (&queue->timers);
  return queue;
}

int
loop_watch (struct loop *loop, int fd, struct event_source *source,
            uint32_t events)
{
  struct epoll_event event = { .events = events, .data.ptr = source };

  return epoll_ctl (loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0
                                                                    : -errno;
}

void
loop_rewatch (struct loop *loop, int fd, struct event_source *source,
              uint32_t events)
{
  struct epoll_event event = { .events = events, .data.ptr = source };
  const int r = epoll_ctl (loop->epoll_fd, EPOLL_CTL_MOD, fd, &event);

  assert (r == 0); /* It is watched already. */
  (void) r;
}

void
loop_unwatch (struct loop *loop, int fd)
{
  const int r = epoll_ctl (loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);

  assert (r == 0);
  (void) r;
}

void
loop_wake (struct loop *loop)
{
  const uint64_t one = 1;
  const ssize_t r = write (loop->wake_fd, &one, sizeof one);

  assert (r == sizeof one); /* The counter never gets near its limit. */
  (void) r;
}

void
loop_post (struct loop *loop, struct loop_work *work)
{
  LOCKED (&loop->lock);
  if (loop->posted == NULL)
    loop_wake (loop);
  work->next = NULL;
  *loop->posted_tail = work;
  loop->posted_tail = &work->next;
}

static void
run_posted (struct loop *loop)
{
  struct loop_work *work, *next;

  {
    LOCKED (&loop->lock);
    work = loop->posted;
    loop->posted = NULL;
    loop->posted_tail = &loop->posted;
  }
  for (; work; work = next) {
    next = work->next; /* run may free it. */
    work->run (work);
  }
}

void
timer_arm (const struct loop *loop, struct timer_queue *queue,
           struct timer *timer)
{
  timer_arm_within (loop, queue, timer, queue->delay_ns);
}

void
timer_arm_within (const struct loop *loop, struct timer_queue *queue,
                  struct timer *timer, uint64_t delay_ns)
{
  struct timer *before;

  assert (delay_ns <= queue->delay_ns);
  timer_disarm (timer);
  timer->queue = queue;
  timer->due_ns = loop->now_ns + delay_ns;
  before = TAILQ_LAST (&queue->timers, timer_list);
  while (before && before->due_ns > timer->due_ns)
    before = TAILQ_PREV (before, timer_list, entry);
  if (before)
    TAILQ_INSERT_AFTER (&queue->timers, before, timer, entry);
  else
    TAILQ_INSERT_HEAD (&queue->timers, timer, entry);
}

void
timer_disarm (struct timer *timer)
{
  if (timer->queue == NULL)
    return;
  TAILQ_REMOVE (&timer->queue->timers, timer, entry);
  timer->queue = NULL;
}

static void
fire_due (struct loop *loop, struct timer_queue *queue)
{
  struct timer *timer;

  while ((timer = TAILQ_FIRST (&queue->timers)) != NULL &&
         timer->due_ns <= loop->now_ns) {
    timer_disarm (timer);
    timer->fire (timer);
  }
}

/* Milliseconds until the first timer, rounded up, or -1. */
static int
next_timeout_ms (const struct loop *loop)
{
  uint64_t due_ns = UINT64_MAX;
  const struct timer *timer;
  unsigned i;
  uint64_t ms, now;

  for (i = 0; i < loop->nr_queues; i++) {
    timer = TAILQ_FIRST (&loop->queues[i].timers);
    if (timer)
      due_ns = MIN (due_ns, timer->due_ns);
  }
  if (due_ns == UINT64_MAX)
    return -1;
  now = now_ns ();
  if (due_ns <= now)
    return 0;
  ms = div_round_up (due_ns - now, NS_PER_MS);
  return (int) MIN (ms, 3600000);
}

void
loop_run_once (struct loop *loop)
{
  struct epoll_event events[EVENTS_PER_WAIT];
  struct event_source *source;
  unsigned i;
  int n, k;

  n = epoll_wait (loop->epoll_fd, events, EVENTS_PER_WAIT,
                  next_timeout_ms (loop));
  assert (n >= 0 || errno == EINTR);
  loop->now_ns = now_ns ();
  for (k = 0; k < n; k++) {
    source = events[k].data.ptr;
    source->ready (source, events[k].events);
  }
  run_posted (loop);
  for (i = 0; i < loop->nr_queues; i++)
    fire_due (loop, &loop->queues[i]);
}
