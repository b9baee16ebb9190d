/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The server: its threads, one for each shard, and the acceptor.
 *
 *   front_new   shards and their threads   (clients wait in the backlog)
 *   front_run   the acceptor starts
 *   front_stop  the acceptor stops; then the shards, which answer what is
 *               under way, or give up when time is up; then the threads
 *               are joined
 *
 * The acceptor has stopped before the first shard is told to, so that no
 * client is handed to a shard that has ended.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "daemon/drain.h"
#include "daemon/options.h"
#include "daemon/front/acceptor.h"
#include "daemon/front/clients.h"
#include "daemon/front/front.h"
#include "daemon/front/idle.h"
#include "daemon/front/limits.h"
#include "daemon/front/listener.h"
#include "daemon/front/shard.h"

enum {
  MAX_SHARDS = 4
};

/* Something that a shard's thread is told to do while another waits. */
struct call {
  struct loop_work work;
  struct front *front;
  struct shard *shard;
  sem_t done;
};

struct front_thread {
  pthread_t id;
  struct front *front;
  struct shard *shard;
};

struct front {
  struct front_limits limits;
  struct shard *shards[MAX_SHARDS];
  struct front_thread threads[MAX_SHARDS];
  unsigned nr_shards; /* Of these, with a thread: */
  unsigned nr_threads;
  struct acceptor acceptor;
  struct clients clients;
  struct idle idle;
  struct loop_work start;
  int client_fd; /* Of the one client, to be served at the start; or -1. */
  struct client_policy client_policy;
  int end_fd;   /* An eventfd: there is nobody to serve any more. */
  int ended_fd; /* A semaphore: counts threads that have ended. */
};

static void *
run_shard (void *opaque)
{
  struct front_thread *thread = opaque;

  while (shard_run_once (thread->shard)) {
  }
  eventfd_write (thread->front->ended_fd, 1);
  return NULL;
}

/* CPUs that we may use, at most MAX_SHARDS. */
static unsigned
default_nr_shards (void)
{
  cpu_set_t cpus;

  if (sched_getaffinity (0, sizeof cpus, &cpus) == -1)
    return 1;
  return (unsigned) MAX (1, MIN (CPU_COUNT (&cpus), MAX_SHARDS));
}

static int
make_shards (struct front *front, struct pager *pager,
             struct tls_server *tls, unsigned count, struct bp_error *err)
{
  struct shard *shard;
  int r;

  while (front->nr_shards < count) {
    shard = calloc (1, sizeof *shard);
    if (shard == NULL)
      return bp_error_set (err, -ENOMEM, "event loop: out of memory");
    r = shard_init (shard, &front->limits, pager, tls, &front->clients,
                    err);
    if (r < 0) {
      free (shard);
      return r;
    }
    front->shards[front->nr_shards++] = shard;
  }
  return 0;
}

/* Signals are main's. */
static int
start_threads (struct front *front, struct bp_error *err)
{
  sigset_t all, before;
  char name[16];
  int r = 0;

  sigfillset (&all);
  pthread_sigmask (SIG_BLOCK, &all, &before);
  while (front->nr_threads < front->nr_shards && r == 0) {
    struct front_thread *thread = &front->threads[front->nr_threads];

    thread->front = front;
    thread->shard = front->shards[front->nr_threads];
    r = pthread_create (&thread->id, NULL, run_shard, thread);
    if (r == 0) {
      snprintf (name, sizeof name, "front-%u", front->nr_threads++);
      pthread_setname_np (thread->id, name);
    }
  }
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (r != 0)
    return bp_error_set (err, -r, "event loop: start a thread: %m");
  return 0;
}

static int
make_events (struct front *front, bool ends_with_client,
             struct bp_error *err)
{
  const int flags = EFD_CLOEXEC | EFD_NONBLOCK;

  front->end_fd = eventfd (0, flags);
  front->ended_fd = eventfd (0, flags | EFD_SEMAPHORE);
  if (front->end_fd == -1 || front->ended_fd == -1)
    return bp_error_set (err, -errno, "front: eventfd: %m");
  clients_init (&front->clients, ends_with_client ? front->end_fd : -1);
  return 0;
}

static void
close_fds (const struct front *front)
{
  if (front->client_fd != -1)
    close (front->client_fd);
  if (front->end_fd != -1)
    close (front->end_fd);
  if (front->ended_fd != -1)
    close (front->ended_fd);
}

int
front_new_limited (struct front **ret_front, const struct options *options,
                   struct pager *pager, struct tls_server *tls,
                   const struct front_limits *limits, struct bp_error *err)
{
  struct listeners listeners = { 0 };
  struct front *front = calloc (1, sizeof *front);
  int r;

  if (front == NULL)
    return bp_error_set (err, -ENOMEM, "front: out of memory");
  front->limits = *limits;
  front->client_fd = -1;
  r = make_events (front, options->ends_with_client, err);
  if (r == 0)
    r = make_shards (front, pager, tls,
                     limits->nr_loops ? MIN (limits->nr_loops, MAX_SHARDS)
                                      : default_nr_shards (),
                     err);
  if (r == 0)
    r = listeners_open (&listeners, options, err);
  if (r == 0)
    r = acceptor_init (&front->acceptor, &front->limits, &listeners,
                       front->shards, front->nr_shards, &front->clients,
                       err);
  if (r == 0) {
    idle_init (&front->idle, &front->acceptor, &front->clients,
               options->exit_when_idle * NS_PER_SEC, front->end_fd);
    r = start_threads (front, err);
  }
  if (r < 0) {
    listeners_close (&listeners);
    front_stop (front, 0, -1);
    front_free (front);
    return r;
  }
  *ret_front = front;
  return 0;
}

int
front_new (struct front **ret_front, const struct options *options,
           struct pager *pager, struct tls_server *tls,
           struct bp_error *err)
{
  struct front_limits limits = default_front_limits;

  if (options->max_clients > 0)
    limits.max_clients = options->max_clients;
  return front_new_limited (ret_front, options, pager, tls, &limits, err);
}

/* Counted meanwhile, so that its end is noticed even if it has no
 * beginning.
 */
static void
serve_one (struct front *front)
{
  clients_enter (&front->clients);
  acceptor_welcome (&front->acceptor, steal_fd (&front->client_fd),
                    &front->client_policy);
  clients_leave (&front->clients);
}

static void
start_accepting (struct loop_work *work)
{
  struct front *front = container_of (work, struct front, start);

  acceptor_start (&front->acceptor);
  idle_start (&front->idle);
  if (front->client_fd != -1)
    serve_one (front);
}

int
front_add_client (struct front *front, const struct options *options,
                  int fd, bool input_may_end, struct bp_error *err)
{
  const int r =
    listener_make_policy (&front->client_policy, fd,
                          "standard input and output", options, err);

  front->client_policy.input_may_end = input_may_end;
  front->client_fd = fd;
  return r;
}

void
front_run (struct front *front)
{
  front->start.run = start_accepting;
  loop_post (&front->shards[0]->loop, &front->start);
}

int
front_end_fd (const struct front *front)
{
  return front->end_fd;
}

static void
stop_accepting (struct loop_work *work)
{
  struct call *call = container_of (work, struct call, work);

  idle_stop (&call->front->idle);
  acceptor_stop (&call->front->acceptor);
  sem_post (&call->done);
}

static void
stop_shard (struct loop_work *work)
{
  struct call *call = container_of (work, struct call, work);

  shard_stop (call->shard);
  sem_post (&call->done);
}

/* Have SHARD's thread run FN; wait for it. */
static void
call_shard (struct front *front, struct shard *shard,
            void (*fn) (struct loop_work *work))
{
  struct call call = { .work.run = fn, .front = front, .shard = shard };

  sem_init (&call.done, 0, 0);
  loop_post (&shard->loop, &call.work);
  while (sem_wait (&call.done) == -1)
    assert (errno == EINTR);
  sem_destroy (&call.done);
}

/* Wait until all threads have ended.  Returns false if some have not when
 * DRAIN_S seconds have passed or HURRY_FD is readable.
 */
static bool
wait_for_threads (const struct front *front, unsigned drain_s, int hurry_fd)
{
  const uint64_t end_ns = now_ns () + drain_s * NS_PER_SEC;
  unsigned i;
  eventfd_t one;

  for (i = 0; i < front->nr_threads; i++)
    if (!drain_wait (front->ended_fd, end_ns, hurry_fd) ||
        eventfd_read (front->ended_fd, &one) == -1)
      return false;
  return true;
}

void
front_stop (struct front *front, unsigned drain_s, int hurry_fd)
{
  unsigned i;

  if (front->nr_threads > 0)
    call_shard (front, front->shards[0], stop_accepting);
  for (i = 0; i < front->nr_threads; i++)
    call_shard (front, front->shards[i], stop_shard);
  if (!wait_for_threads (front, drain_s, hurry_fd))
    for (i = 0; i < front->nr_threads; i++)
      shard_give_up (front->shards[i]);
  for (i = 0; i < front->nr_threads; i++)
    pthread_join (front->threads[i].id, NULL);
  front->nr_threads = 0;
  acceptor_done (&front->acceptor);
}

void
front_free (struct front *front)
{
  unsigned i;

  if (front == NULL)
    return;
  assert (front->nr_threads == 0); /* It has been stopped. */
  for (i = 0; i < front->nr_shards; i++) {
    shard_done (front->shards[i]);
    free (front->shards[i]);
  }
  close_fds (front);
  free (front);
}
