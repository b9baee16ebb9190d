/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Counters that many threads change at once lose nothing. */
#include <config.h>

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "daemon/metrics.h"
#include "harness/check.h"

enum {
  NR_THREADS = 2 * THREAD_SLOTS,
  ROUNDS = 5000,
};

static atomic_uint nr_finished;

static void *
count_up (void *opaque)
{
  int i;

  for (i = 0; i < ROUNDS; i++) {
    METRIC_ADD (client_reads, 1);
    METRIC_ADD (client_bytes, 4096);
    METRIC_ADD (cache_used_bytes, 10);
  }
  return opaque;
}

/* Raise or lower COUNT, unless it is OTHERWISE. */
static bool
change (atomic_uint *count, unsigned otherwise, unsigned by)
{
  unsigned now = atomic_load (count);

  while (now != otherwise &&
         !atomic_compare_exchange_weak (count, &now, now + by)) {
  }
  return now != otherwise;
}

/* Threads put in and take out; nobody takes what is not there, and there
 * is never much.
 */
static void *
pass_on (void *opaque)
{
  static atomic_uint next_thread, there;
  const bool puts_in = atomic_fetch_add (&next_thread, 1) % 2 == 0;
  int i;

  for (i = 0; i < ROUNDS; i++) {
    if (puts_in) {
      METRIC_ADD (cache_pinned_bytes, 1);
      while (!change (&there, 2, 1))
        sched_yield ();
    }
    else {
      while (!change (&there, 0, UINT_MAX))
        sched_yield ();
      METRIC_SUB (cache_pinned_bytes, 1);
    }
  }
  atomic_fetch_add (&nr_finished, 1);
  return opaque;
}

static void
start (pthread_t *threads, void *(*run) (void *) )
{
  int i;

  for (i = 0; i < NR_THREADS; i++)
    CHECK_EQ (pthread_create (&threads[i], NULL, run, NULL), 0);
}

static void
join (const pthread_t *threads)
{
  int i;

  for (i = 0; i < NR_THREADS; i++)
    pthread_join (threads[i], NULL);
}

static void
no_count_is_lost (void)
{
  pthread_t threads[NR_THREADS];
  uint64_t last = 0, reads;
  int i;

  start (threads, count_up);
  for (i = 0; i < ROUNDS; i++) {
    reads = METRIC_GET (client_reads);
    CHECK (reads >= last);
    last = reads;
  }
  join (threads);
  CHECK_EQ (METRIC_GET (client_reads), NR_THREADS * ROUNDS);
  CHECK_EQ (METRIC_GET (client_bytes),
            (int64_t) NR_THREADS * ROUNDS * 4096);
  CHECK_EQ (METRIC_GET (cache_used_bytes),
            (int64_t) NR_THREADS * ROUNDS * 10);
}

static void
a_gauge_is_never_less_than_nothing (void)
{
  pthread_t threads[NR_THREADS];

  start (threads, pass_on);
  while (atomic_load (&nr_finished) < NR_THREADS)
    CHECK (METRIC_GET (cache_pinned_bytes) <= NR_THREADS + 2);
  join (threads);
  CHECK_EQ (METRIC_GET (cache_pinned_bytes), 0);
}

int
main (void)
{
  RUN (no_count_is_lost);
  RUN (a_gauge_is_never_less_than_nothing);
  return EXIT_SUCCESS;
}
