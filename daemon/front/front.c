/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The server: its threads, one for each shard, and the acceptor.
 *
 *   front_new   shards and their threads   (clients wait in the backlog)
 *   front_run   the acceptor starts
 *   front_stop  the acceptor stops; then the shards, which answer what is
 *               under way; then the threads are joined
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

#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "daemon/options.h"
#include "daemon/front/acceptor.h"
#include "daemon/front/front.h"
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
  uint64_t grace_ns;
  sem_t done;
};

struct front {
  struct front_limits limits;
  struct shard *shards[MAX_SHARDS];
  pthread_t threads[MAX_SHARDS];
  unsigned nr_shards; /* Of these, with a thread: */
  unsigned nr_threads;
  struct acceptor acceptor;
  _Atomic unsigned nr_clients; /* Relaxed: a limit. */
  struct loop_work start;
};

static void *
run_shard (void *opaque)
{
  struct shard *shard = opaque;

  while (shard_run_once (shard)) {
  }
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
    r = shard_init (shard, &front->limits, pager, tls, &front->nr_clients,
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
    pthread_t *thread = &front->threads[front->nr_threads];

    r = pthread_create (thread, NULL, run_shard,
                        front->shards[front->nr_threads]);
    if (r == 0) {
      snprintf (name, sizeof name, "front-%u", front->nr_threads++);
      pthread_setname_np (*thread, name);
    }
  }
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (r != 0)
    return bp_error_set (err, -r, "event loop: start a thread: %m");
  return 0;
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
  r = make_shards (front, pager, tls,
                   limits->nr_loops ? MIN (limits->nr_loops, MAX_SHARDS)
                                    : default_nr_shards (),
                   err);
  if (r == 0)
    r = listeners_open (&listeners, options, err);
  if (r == 0)
    r = acceptor_init (&front->acceptor, &front->limits, &listeners,
                       front->shards, front->nr_shards, &front->nr_clients,
                       err);
  if (r == 0)
    r = start_threads (front, err);
  if (r < 0) {
    listeners_close (&listeners);
    front_stop (front, 0);
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
  return front_new_limited (ret_front, options, pager, tls,
                            &default_front_limits, err);
}

static void
start_accepting (struct loop_work *work)
{
  acceptor_start (&container_of (work, struct front, start)->acceptor);
}

void
front_run (struct front *front)
{
  front->start.run = start_accepting;
  loop_post (&front->shards[0]->loop, &front->start);
}

static void
stop_accepting (struct loop_work *work)
{
  struct call *call = container_of (work, struct call, work);

  acceptor_stop (&call->front->acceptor);
  sem_post (&call->done);
}

static void
stop_shard (struct loop_work *work)
{
  struct call *call = container_of (work, struct call, work);

  shard_stop (call->shard, call->grace_ns);
  sem_post (&call->done);
}

/* Have SHARD's thread run FN; wait for it. */
static void
call_shard (struct front *front, struct shard *shard,
            void (*fn) (struct loop_work *work), unsigned grace_s)
{
  struct call call = {
    .work.run = fn,
    .front = front,
    .shard = shard,
    .grace_ns = grace_s * NS_PER_SEC + 1,
  };

  sem_init (&call.done, 0, 0);
  loop_post (&shard->loop, &call.work);
  while (sem_wait (&call.done) == -1)
    assert (errno == EINTR);
  sem_destroy (&call.done);
}

void
front_stop (struct front *front, unsigned grace_s)
{
  unsigned i;

  if (front->nr_threads > 0)
    call_shard (front, front->shards[0], stop_accepting, 0);
  for (i = 0; i < front->nr_threads; i++)
    call_shard (front, front->shards[i], stop_shard, grace_s);
  for (i = 0; i < front->nr_threads; i++)
    pthread_join (front->threads[i], NULL);
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
  free (front);
}
