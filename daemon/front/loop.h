/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* An event loop: descriptors, work that other threads post, and timers.
 *
 * It belongs to the thread that calls loop_run_once; loop_post alone may
 * be called from any thread.  Everything here is embedded in what it
 * serves, so that nothing is allocated while the loop runs.
 */
#ifndef BP_LOOP_H
#define BP_LOOP_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/error.h"

/* The struct of TYPE whose MEMBER PTR points to. */
#define container_of(ptr, type, member) \
  ((type *) (void *) ((char *) (ptr) -offsetof (type, member)))

/* A watched descriptor: READY is called with EPOLL… events. */
struct event_source {
  void (*ready) (struct event_source *source, uint32_t events);
};

/* Something for the loop's thread to do once. */
struct loop_work {
  struct loop_work *next; /* Lock: the loop's. */
  void (*run) (struct loop_work *work);
};

/* Nearly all timers of a queue have one delay, so that it is sorted by
 * being appended to.
 */
struct timer {
  TAILQ_ENTRY (timer)
  entry;
  struct timer_queue *queue; /* That it is armed in, or NULL. */
  uint64_t due_ns;
  void (*fire) (struct timer *timer); /* Disarmed before it is called. */
};

struct timer_queue {
  uint64_t delay_ns;
  TAILQ_HEAD (timer_list, timer)
  timers;
};

enum {
  LOOP_MAX_QUEUES = 8
};

struct loop {
  int epoll_fd;
  int wake_fd; /* An eventfd: written when posted stops being empty. */
  struct event_source wake;
  uint64_t now_ns; /* When epoll_wait last returned. */
  struct timer_queue queues[LOOP_MAX_QUEUES];
  unsigned nr_queues;

  pthread_mutex_t lock;           /* Held for a few instructions; innermost. */
  struct loop_work *posted;       /* Lock.  In order of posting. */
  struct loop_work **posted_tail; /* Lock. */
};

int loop_init (struct loop *loop, struct bp_error *err);

/* Nobody posts any more, and all that was posted has run. */
void loop_done (struct loop *loop);

/* Make a queue of timers that fire DELAY_NS after they were armed. */
struct timer_queue *loop_add_queue (struct loop *loop, uint64_t delay_ns);

/* Wait for something to happen and call its handlers: descriptors, then
 * posted work, then timers.
 */
void loop_run_once (struct loop *loop);

/* Return 0 or a negative errno. */
int loop_watch (struct loop *loop, int fd, struct event_source *source,
                uint32_t events);
void loop_rewatch (struct loop *loop, int fd, struct event_source *source,
                   uint32_t events);
void loop_unwatch (struct loop *loop, int fd);

/* Threads: any.  WORK is lent until its run is called. */
void loop_post (struct loop *loop, struct loop_work *work);

/* Have the loop go round once more.  Threads: any, also when the loop has
 * ended, until loop_done.
 */
void loop_wake (struct loop *loop);

/* Arm TIMER, again if it is armed. */
void timer_arm (const struct loop *loop, struct timer_queue *queue,
                struct timer *timer);
/* The same, to fire after DELAY_NS, which is at most the queue's own; for
 * now and then.
 */
void timer_arm_within (const struct loop *loop, struct timer_queue *queue,
                       struct timer *timer, uint64_t delay_ns);
void timer_disarm (struct timer *timer);

#endif /* BP_LOOP_H */
