/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The fetcher's interface: what is submitted is put into a queue, and a
 * lane is woken.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "daemon/pager/fetcher-internal.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

/* ---- Submitting ---- */

/* Something has a deadline: the timer may be waiting without end. */
static void
wake_idle_timer (struct fetcher *fetcher)
{
  if (fetcher->timer_is_idle || fetcher->is_stopping)
    fetcher_kick_timer (fetcher);
}

static void
begin_fetch (struct fetcher *fetcher, struct fetch *fetch, uint64_t deadline)
{
  assert (fetch->offset % BP_WINDOW_SIZE == 0);
  assert (fetch->offset + fetch->len <= fetch->blob_size);
  fetch->list = NULL;
  fetch->key = NULL;
  fetch->attempt = NULL;
  fetch->deadline_ns = deadline;
  fetch->retry_ns = 0;
  fetch->nr_attempts = 0;
  fetch->nr_errors = 0;
  fetch->nr_corrupt = 0;
  fetch->nr_malformed = 0;
  fetch->avoid = -1;
  fetch->is_news = false;
  fetch->is_abandoned = false;
  fetch->done_returned = false;
  fetch->is_over = false;
  user_ref (fetch->user);
  TAILQ_INSERT_TAIL (&fetcher->under_way, fetch, age);
  fetch_enqueue (fetcher, fetch);
}

void
fetcher_submit (struct fetcher *fetcher, struct fetch *const *fetches,
                size_t count)
{
  const uint64_t deadline = now_ns () + fetcher->timeout_ns;
  bool has_class[2] = { false, false };
  LOCKED (&fetcher->lock);

  for (size_t i = 0; i < count; i++) {
    has_class[fetches[i]->class] = true;
    begin_fetch (fetcher, fetches[i], deadline);
  }
  for (int i = 0; i < 2; i++)
    if (has_class[i])
      fetcher_kick (fetcher, (enum fetch_class) i);
  wake_idle_timer (fetcher);
}

void
fetcher_open_blobs (struct fetcher *fetcher, struct blob_open *const *opens,
                    size_t count)
{
  const uint64_t deadline = now_ns () + fetcher->timeout_ns;
  bool has_class[2] = { false, false };
  LOCKED (&fetcher->lock);

  for (size_t i = 0; i < count; i++) {
    struct blob_open *open = opens[i];

    open->list = NULL;
    open->key = NULL;
    open->deadline_ns = deadline;
    open->nr_errors = 0;
    open->nr_malformed = 0;
    user_ref (open->user);
    TAILQ_INSERT_TAIL (&fetcher->opens_under_way, open, age);
    open_enqueue (fetcher, open);
    has_class[open->class] = true;
  }
  for (int i = 0; i < 2; i++)
    if (has_class[i])
      fetcher_kick (fetcher, (enum fetch_class) i);
  wake_idle_timer (fetcher);
}

/* Whether FETCH waits in a queue of replay's. */
static bool
is_queued_for_replay (const struct fetcher *fetcher,
                      const struct fetch *fetch)
{
  if (fetch->list == &fetcher->queue[FETCH_REPLAY])
    return true;
  for (int i = 0; i < NR_LANES; i++)
    if (fetch->list == &fetcher->lanes[i].own)
      return fetcher->lanes[i].class == FETCH_REPLAY;
  return false;
}

void
fetcher_promote (struct fetcher *fetcher, struct fetch *fetch)
{
  LOCKED (&fetcher->lock);

  if (fetch->list == NULL || fetch->class == FETCH_DEMAND)
    return; /* On its way, or done. */
  fetch->class = FETCH_DEMAND;
  fetch->avoid = -1;
  if (is_queued_for_replay (fetcher, fetch)) {
    fetch_unlink (fetcher, fetch);
    fetch_enqueue (fetcher, fetch);
    fetcher_kick (fetcher, FETCH_DEMAND);
  }
}

/* ---- Users and keys ---- */

struct fetch_user *
fetcher_user_new (struct fetcher *fetcher)
{
  struct fetch_user *user = calloc (1, sizeof *user);

  (void) fetcher;
  if (user == NULL)
    return NULL;
  LIST_INIT (&user->claims);
  return user_ref (user);
}

void
fetcher_user_free (struct fetcher *fetcher, struct fetch_user *user)
{
  LOCKED (&fetcher->lock);

  if (user == NULL)
    return;
  user_release (&fetcher->keys, user);
  user_unref (user);
  fetcher_check_closing (fetcher);
}

void
fetcher_blob_evicted (struct fetcher *fetcher, const struct bp_root *root)
{
  struct key *key;
  LOCKED (&fetcher->lock);

  key = keys_find (&fetcher->keys, root);
  if (key && key->nr_refs == 0) {
    keys_kill (&fetcher->keys, key);
    fetcher_check_closing (fetcher);
  }
}

uint64_t
fetcher_table_bytes (const struct fetcher *fetcher)
{
  (void) fetcher;
  return digest_table_bytes ();
}

uint64_t
fetcher_windows_sent (struct fetcher *fetcher)
{
  return atomic_load_explicit (&fetcher->windows_sent, memory_order_relaxed);
}

void
fetcher_for_each_key (struct fetcher *fetcher,
                      void (*fn) (void *opaque, uint64_t key,
                                  const struct bp_root *root),
                      void *opaque)
{
  struct key *key;
  LOCKED (&fetcher->lock);

  TAILQ_FOREACH (key, &fetcher->keys.by_age, age)
  fn (opaque, key->number, &key->root);
}

void
fetcher_limit_keys (struct fetcher *fetcher, size_t limit)
{
  LOCKED (&fetcher->lock);

  fetcher->keys.limit = limit;
}

/* ---- Life ---- */

void
fetcher_kick_all (struct fetcher *fetcher)
{
  for (int i = 0; i < NR_LANES; i++)
    lane_kick (&fetcher->lanes[i]);
}

void
fetcher_session_lost (struct fetcher *fetcher)
{
  struct key *key, *next;
  LOCKED (&fetcher->lock);

  /* Nobody is left whose answer would let go what is parked. */
  for (key = TAILQ_FIRST (&fetcher->keys.by_age); key; key = next) {
    next = TAILQ_NEXT (key, age);
    key_unpark (fetcher, key, UINT_MAX);
  }
  keys_forget (&fetcher->keys);
  fetcher_forget_closes (fetcher);
  fetcher->close_due_ns = 0;
}

static void
init_lists (struct fetcher *fetcher)
{
  for (int i = 0; i < 2; i++) {
    TAILQ_INIT (&fetcher->queue[i]);
    TAILQ_INIT (&fetcher->opens[i]);
  }
  TAILQ_INIT (&fetcher->delayed);
  TAILQ_INIT (&fetcher->delayed_opens);
  TAILQ_INIT (&fetcher->under_way);
  TAILQ_INIT (&fetcher->opens_under_way);
  STAILQ_INIT (&fetcher->lost_closes);
}

static void
init_locks (struct fetcher *fetcher)
{
  pthread_condattr_t attr;

  observing_init (&fetcher->observing);
  pthread_mutex_init (&fetcher->lock, NULL);
  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&fetcher->timer_wanted, &attr);
  pthread_condattr_destroy (&attr);
}

/* Lanes before NR and the timer have been started, or not. */
static void
destroy (struct fetcher *fetcher)
{
  fetcher_forget_closes (fetcher);
  keys_done (&fetcher->keys);
  digest_table_done (&fetcher->digests);
  pthread_cond_destroy (&fetcher->timer_wanted);
  pthread_mutex_destroy (&fetcher->lock);
  observing_done (&fetcher->observing);
  free (fetcher);
}

static void
join_lanes (struct fetcher *fetcher, int count)
{
  for (int i = 0; i < count; i++)
    lane_join (&fetcher->lanes[i]);
}

static void
end_timer (struct fetcher *fetcher)
{
  pthread_mutex_lock (&fetcher->lock);
  fetcher->timer_must_end = true;
  fetcher_kick_timer (fetcher);
  pthread_mutex_unlock (&fetcher->lock);
  pthread_join (fetcher->timer, NULL);
}

/* Returns 0, or -errno with nothing running. */
static int
start_threads (struct fetcher *fetcher, struct session_gate *gate,
               const struct wire_target *target)
{
  int r, i;

  r = pthread_create (&fetcher->timer, NULL, timer_main, fetcher);
  if (r != 0)
    return -r;
  for (i = 0; i < NR_LANES; i++) {
    struct lane *lane = &fetcher->lanes[i];

    lane->fetcher = fetcher;
    lane->gate = gate;
    lane->target = target;
    lane->class = i < NR_LANES_OF_CLASS ? FETCH_DEMAND : FETCH_REPLAY;
    lane->index = i;
    r = lane_start (lane);
    if (r < 0)
      break;
  }
  if (i == NR_LANES)
    return 0;
  session_stop (gate);
  join_lanes (fetcher, i);
  end_timer (fetcher);
  return r;
}

int
fetcher_new (struct fetcher **ret_fetcher, struct session_gate *gate,
             const struct wire_target *target, struct bp_error *err)
{
  struct fetcher *fetcher = calloc (1, sizeof *fetcher);
  int r;

  if (fetcher == NULL)
    return bp_error_set (err, -ENOMEM, "driver: out of memory");
  fetcher->timeout_ns = target->timeout_s * NS_PER_SEC;
  init_lists (fetcher);
  init_locks (fetcher);
  r = keys_init (&fetcher->keys);
  if (r == 0)
    r = digest_table_init (&fetcher->digests);
  if (r == 0)
    r = start_threads (fetcher, gate, target);
  if (r < 0) {
    destroy (fetcher);
    return bp_error_set (err, r, "driver: lanes: %m");
  }
  *ret_fetcher = fetcher;
  return 0;
}

void
fetcher_shut_down (struct fetcher *fetcher)
{
  LOCKED (&fetcher->lock);

  fetcher->is_stopping = true;
  fetcher_kick_timer (fetcher);
  fetcher_kick_all (fetcher);
}

void
fetcher_free (struct fetcher *fetcher)
{
  if (fetcher == NULL)
    return;
  join_lanes (fetcher, NR_LANES);
  end_timer (fetcher);
  destroy (fetcher);
}
