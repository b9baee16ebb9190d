/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Prefetch for a replay, and the pins that keep what it brought.
 *
 *   pin_set ─▶ pin ─▶ pin ─▶ …        one for each window of the set
 *               │      │
 *             window window ─▶ its pins, one for each set
 *
 * A pinned window stands in QUEUE_PINNED from before it is fetched; its
 * memory counts once however many sets pin it, and at most half of the
 * budget is pinned.  If its fetch fails, or it has to give way to a
 * client, the pin lets it go and keeps what is to be counted.
 *
 * A client that wants a window while it is under way for a replay takes
 * the fetch over (want.c); the window is marked late.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "daemon/pager/cache.h"
#include "daemon/pager/internal.h"
#include "daemon/pager/pager.h"
#include "daemon/pager/pins.h"

enum {
  PIN_SHARE = 2,     /* Half of the budget. */
  UNPIN_BATCH = 256, /* Pins dropped under one lock. */
};

struct pin {
  struct pin *next_of_set;
  struct pin *next_of_window;
  struct pin_set *set;
  struct window *window; /* A reference; NULL once detached. */
  uint32_t len;          /* Bytes of the window. */
  bool fetched;          /* Fetched for this set. */
  bool came_late;        /* Somebody else was fetching it already. */
  /* Of a window that was detached. */
  bool was_verified;
  bool was_served;
  bool was_late;
};

struct pin_set {
  struct cache *cache;
  struct pin *pins;
};

/* A replay that waits for a window. */
struct prefetch {
  struct waiter waiter; /* First. */
  struct cache *cache;
  prefetch_fn done;
  void *opaque;
  uint32_t len; /* Bytes that were fetched for it. */
};

struct pin_set *
pin_set_new (struct pager *pager)
{
  struct pin_set *set = calloc (1, sizeof *set);

  if (set)
    set->cache = pager->cache;
  return set;
}

/* ---- Pins; called with cache->lock held ---- */

static void
count_pinned (struct cache *cache, const struct window *window, bool more)
{
  const uint64_t bytes = window_memory (window);

  if (more) {
    cache->pinned_bytes += bytes;
    METRIC_ADD (cache_pinned_bytes, bytes);
  }
  else {
    cache->pinned_bytes -= bytes;
    METRIC_SUB (cache_pinned_bytes, bytes);
  }
}

static struct pin *
find_pin (const struct window *window, const struct pin_set *set)
{
  struct pin *pin = window->pins;

  while (pin && pin->set != set)
    pin = pin->next_of_window;
  return pin;
}

static void
add_pin (struct pin_set *set, struct window *window, struct pin *pin)
{
  pin->set = set;
  pin->window = window;
  pin->len = window->len;
  pin->next_of_set = set->pins;
  set->pins = pin;
  pin->next_of_window = window->pins;
  window->pins = pin;
  window_ref (window);
  cache_charge (set->cache, sizeof *pin);
  if (window->nr_pins++ == 0) {
    count_pinned (set->cache, window, true);
    queue_remove (set->cache, window);
    queue_add (set->cache, window, QUEUE_PINNED);
  }
}

static void
keep_counts (struct pin *pin, bool was_verified)
{
  const struct window *window = pin->window;

  pin->was_verified = was_verified;
  pin->was_served =
    atomic_load_explicit (&window->served, memory_order_relaxed);
  pin->was_late = atomic_load_explicit (&window->late, memory_order_relaxed);
  pin->window = NULL;
}

uint32_t
pins_detach (struct cache *cache, struct window *window, bool was_verified)
{
  const uint32_t nr_pins = window->nr_pins;
  struct pin *pin;

  if (nr_pins == 0)
    return 0;
  for (pin = window->pins; pin; pin = pin->next_of_window)
    keep_counts (pin, was_verified);
  window->pins = NULL;
  window->nr_pins = 0;
  count_pinned (cache, window, false);
  queue_remove (cache, window);
  return nr_pins;
}

/* PIN lets its window go.  What was pinned and used is likely to be used
 * again; what was not is the first to give way.
 */
static void
remove_pin (struct cache *cache, struct pin *pin)
{
  struct window *window = pin->window;
  struct pin **place = &window->pins;

  while (*place != pin)
    place = &(*place)->next_of_window;
  *place = pin->next_of_window;
  if (--window->nr_pins > 0)
    return;
  count_pinned (cache, window, false);
  queue_remove (cache, window);
  if (window_get_state (window) != WINDOW_VERIFIED)
    return;
  if (atomic_load_explicit (&window->served, memory_order_relaxed))
    queue_add (cache, window, QUEUE_MAIN);
  else {
    window->is_early = true;
    queue_add (cache, window, QUEUE_OLD);
  }
}

/* Drop some pins of SET.  True if there are more. */
static bool
unpin_some (struct pin_set *set)
{
  struct cache *cache = set->cache;
  struct window *windows[UNPIN_BATCH];
  unsigned nr_windows = 0, i;
  bool more;

  pthread_mutex_lock (&cache->lock);
  while (set->pins && nr_windows < UNPIN_BATCH) {
    struct pin *pin = set->pins;

    set->pins = pin->next_of_set;
    if (pin->window) {
      remove_pin (cache, pin);
      windows[nr_windows++] = pin->window;
    }
    cache_uncharge (cache, sizeof *pin);
    free (pin);
  }
  more = set->pins != NULL;
  pthread_mutex_unlock (&cache->lock);

  for (i = 0; i < nr_windows; i++)
    cache_put (cache, windows[i]);
  return more;
}

void
pin_set_free (struct pin_set *set)
{
  if (set == NULL)
    return;
  while (unpin_some (set))
    ;
  cache_serve_line (set->cache);
  free (set);
}

static void
count_pin (const struct pin *pin, struct pin_set_counts *counts)
{
  const struct window *window = pin->window;
  bool verified = pin->was_verified;
  bool served = pin->was_served;
  bool late = pin->was_late;

  if (window) {
    verified = window_get_state (window) == WINDOW_VERIFIED;
    served = atomic_load_explicit (&window->served, memory_order_relaxed);
    late = atomic_load_explicit (&window->late, memory_order_relaxed);
  }
  counts->late += pin->came_late || (pin->fetched && late);
  if (!pin->fetched || !verified)
    return;
  counts->prefetched_bytes += pin->len;
  if (served)
    counts->used_bytes += pin->len;
}

void
pin_set_count (struct pin_set *set, struct pin_set_counts *ret_counts)
{
  struct pin_set_counts counts = { 0 };
  const struct pin *pin;

  pthread_mutex_lock (&set->cache->lock);
  for (pin = set->pins; pin; pin = pin->next_of_set)
    count_pin (pin, &counts);
  pthread_mutex_unlock (&set->cache->lock);
  counts.wasted_bytes = counts.prefetched_bytes - counts.used_bytes;
  *ret_counts = counts;
}

/* ---- Prefetch ---- */

static void
prefetch_wake (struct waiter *waiter, int status)
{
  struct prefetch *prefetch = (struct prefetch *) waiter;
  struct cache *cache = prefetch->cache;

  prefetch->done (prefetch->opaque, status == 0 ? prefetch->len : 0,
                  status);
  cache_put (cache, waiter->window);
  free (prefetch);
  cache_uncharge (cache, sizeof *prefetch);
}

/* Called with the shard's lock held. */
static void
add_waiter (struct window *window, struct prefetch *prefetch)
{
  prefetch->waiter.window = window;
  prefetch->waiter.wake = prefetch_wake;
  prefetch->waiter.next = window->waiters;
  window->waiters = &prefetch->waiter;
  window_ref (window);
}

/* Join the fetch of WINDOW, or start to be its fetch.  Returns the state
 * that it was in.
 */
static enum window_state
join_or_claim (struct cache *cache, struct window *window,
               struct prefetch *prefetch)
{
  struct cache_shard *shard = cache_shard_of (cache, window);
  LOCKED (&shard->lock);
  const enum window_state state = window_get_state (window);

  if (state == WINDOW_VERIFIED)
    return state;
  add_waiter (window, prefetch);
  if (state == WINDOW_FETCHING)
    return state;
  window->claim = CLAIM_REPLAY;
  atomic_store_explicit (&window->late, 0, memory_order_relaxed);
  atomic_store_explicit (&window->served, 0, memory_order_relaxed);
  window_ref (window); /* FETCHING's. */
  atomic_store_explicit (&window->state, WINDOW_FETCHING,
                         memory_order_release);
  return state;
}

/* There is no memory for WINDOW: leave it to the clients that have joined
 * since (true), or make it absent again.
 */
static bool
leave_to_clients (struct cache *cache, struct window *window,
                  struct prefetch *prefetch)
{
  struct cache_shard *shard = cache_shard_of (cache, window);
  LOCKED (&shard->lock);

  if (window->waiters != &prefetch->waiter || prefetch->waiter.next) {
    window->claim = CLAIM_DEMAND;
    return true;
  }
  window->waiters = NULL;
  atomic_store_explicit (&window->state, WINDOW_ABSENT,
                         memory_order_release);
  atomic_fetch_sub (&window->refs, 2); /* FETCHING's, the waiter's. */
  return false;
}

/* What prefetch_locked has found out, to be done when the lock is gone. */
struct prefetch_outcome {
  int result;              /* For the caller of pager_prefetch. */
  struct page_in *page_in; /* To send. */
  struct window *window;   /* To fetch for its clients. */
};

/* WINDOW was absent and is FETCHING, for PREFETCH; called with cache->lock
 * held.
 */
static void
start_prefetch (struct cache *cache, struct window *window,
                struct prefetch *prefetch, struct fetch_user *user,
                struct prefetch_outcome *outcome)
{
  uint8_t *data = cache_reserve (cache, window, CLAIM_REPLAY);
  struct page_in *in = NULL;

  if (data) {
    window->data = data;
    in = page_in_new (cache, window, NULL, user, FETCH_REPLAY);
    if (in == NULL)
      cache_unreserve (cache, data, window->len);
  }
  if (in) {
    prefetch->len = window->len;
    outcome->page_in = in;
  }
  else if (leave_to_clients (cache, window, prefetch))
    outcome->window = window;
  else {
    queue_remove (cache, window); /* It may have been a failure. */
    outcome->result = -EAGAIN;
  }
}

/* Called with cache->lock held. */
static void
prefetch_locked (struct pin_set *set, struct window *window,
                 struct prefetch *prefetch, struct pin *pin,
                 struct fetch_user *user, struct prefetch_outcome *outcome)
{
  struct cache *cache = set->cache;
  const bool is_pinned = find_pin (window, set) != NULL;
  enum window_state state;

  outcome->result = 0;
  if (window->nr_pins == 0 &&
      cache->pinned_bytes + window_memory (window) >
        cache->budget / PIN_SHARE) {
    outcome->result = -ENOSPC;
    return;
  }
  state = join_or_claim (cache, window, prefetch);
  if (state == WINDOW_VERIFIED)
    outcome->result = 1;
  else if (state != WINDOW_FETCHING)
    start_prefetch (cache, window, prefetch, user, outcome);
  if (outcome->result < 0 || is_pinned)
    return;
  pin->fetched = outcome->page_in != NULL;
  pin->came_late = state == WINDOW_FETCHING || outcome->window;
  add_pin (set, window, pin);
}

/* A client joined, and the replay has no memory: on the client's account
 * then.
 */
static void
fetch_for_clients (struct cache *cache, struct window *window)
{
  struct fetch_batch batch = { .head = window, .tail = window };

  window->batch_next = NULL;
  cache_submit (cache, &batch);
}

int
pager_prefetch (struct pager *pager, const struct bp_root *root,
                uint64_t blob_size, uint64_t offset,
                struct fetch_user *user, struct pin_set *pins,
                prefetch_fn done, void *opaque)
{
  struct cache *cache = pager->cache;
  CLEANUP_FREE struct prefetch *prefetch = calloc (1, sizeof *prefetch);
  CLEANUP_FREE struct pin *pin = calloc (1, sizeof *pin);
  struct prefetch_outcome outcome = { 0 };
  struct window *window;

  if (offset >= blob_size)
    return -EINVAL;
  window = cache_get (cache, root, offset, blob_size);
  if (prefetch == NULL || pin == NULL || window == NULL) {
    if (window)
      cache_put (cache, window);
    return -EAGAIN;
  }
  prefetch->cache = cache;
  prefetch->done = done;
  prefetch->opaque = opaque;
  cache_charge (cache, sizeof *prefetch);

  pthread_mutex_lock (&cache->lock);
  prefetch_locked (pins, window, prefetch, pin, user, &outcome);
  if (pin->set)
    (void) steal_ptr (&pin);
  pthread_mutex_unlock (&cache->lock);

  if (outcome.result == 0)
    (void) steal_ptr (&prefetch); /* Its wake frees it. */
  else
    cache_uncharge (cache, sizeof *prefetch);
  cache_tell_gone (cache);
  if (outcome.page_in)
    page_in_submit_replay (cache, outcome.page_in);
  if (outcome.window)
    fetch_for_clients (cache, outcome.window);
  cache_put (cache, window);
  return outcome.result;
}

bool
pager_is_resident (struct pager *pager, const struct bp_root *root,
                   uint64_t offset)
{
  struct window *window = cache_find (pager->cache, root, offset, 0);

  if (window == NULL)
    return false;
  cache_put (pager->cache, window);
  return true;
}
