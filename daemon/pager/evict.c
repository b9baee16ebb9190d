/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Memory for windows, and who gives way.
 *
 *   verified ─▶ young ─▶ old ─ touched there ─▶ main ◀─┐ touched
 *      │                  │                      │ └────┘
 *      │ ghost            └─ not ─▶ evicted ◀────┘ not
 *      └──────────────────────────────────────▶ main
 *
 * As in S3-FIFO, what is read once passes through a small queue and
 * leaves the main queue alone.  Here the small queue has two halves: a
 * window is read many times while a client walks over it, and those reads
 * are one use; so touches in the young half are wiped when it moves to
 * the old half, and only a touch there counts.  Of a window that got
 * there before its reader came, the first touch is that one use: it goes
 * round the old half once more.  A window that comes back soon after it
 * was evicted (its ghost is remembered) goes to main.  A touch is a flag,
 * set without a lock.
 *
 * Windows that somebody holds go round; pinned ones stand in a queue of
 * their own and are taken only for a client, when nothing else is left.
 *
 * All functions but cache_tell_gone are called with cache->lock held.
 */
#include <config.h>

#include <assert.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "daemon/pager/cache.h"
#include "daemon/pager/pins.h"

/* Shares of the budget. */
enum {
  YOUNG_SHARE = 8, /* An eighth each: together twice what is fetched */
  OLD_SHARE = 8,   /* ahead of a reader (READ_AHEAD_SHARE). */
  AHEAD_SHARE = 8, /* In flight for CLAIM_AHEAD: an eighth. */
};

/* ---- Queues ---- */

void
queue_remove (struct cache *cache, struct window *window)
{
  struct window_list *list = &cache->queues[window->queue];

  if (window->queue == QUEUE_NONE)
    return;
  if (window->prev)
    window->prev->next = window->next;
  else
    list->head = window->next;
  if (window->next)
    window->next->prev = window->prev;
  else
    list->tail = window->prev;
  list->bytes -= window_memory (window);
  list->count--;
  window->queue = QUEUE_NONE;
}

void
queue_add (struct cache *cache, struct window *window,
           enum window_queue queue)
{
  struct window_list *list = &cache->queues[queue];

  assert (window->queue == QUEUE_NONE);
  window->prev = NULL;
  window->next = list->head;
  if (list->head)
    list->head->prev = window;
  else
    list->tail = window;
  list->head = window;
  list->bytes += window_memory (window);
  list->count++;
  window->queue = (uint8_t) queue;
}

static void
queue_move (struct cache *cache, struct window *window,
            enum window_queue queue)
{
  queue_remove (cache, window);
  queue_add (cache, window, queue);
}

static bool
take_touch (struct window *window)
{
  return atomic_exchange_explicit (&window->touched, 0,
                                   memory_order_relaxed);
}

/* Move what is too much in the young queue on to the old one. */
static void
age_young (struct cache *cache)
{
  const struct window_list *young = &cache->queues[QUEUE_YOUNG];

  while (young->bytes > cache->budget / YOUNG_SHARE) {
    struct window *window = young->tail;

    take_touch (window);
    window->is_early =
      !atomic_load_explicit (&window->served, memory_order_relaxed);
    queue_move (cache, window, QUEUE_OLD);
  }
}

void
queue_admit (struct cache *cache, struct window *window)
{
  const bool was_here = ghost_recall (&cache->ghosts, window_hash (window));

  queue_add (cache, window, was_here ? QUEUE_MAIN : QUEUE_YOUNG);
  age_young (cache);
}

/* ---- Eviction ---- */

/* Take WINDOW out of the cache, if it is verified and nobody but the hash
 * and its pins hold it.
 */
static bool
try_evict (struct cache *cache, struct window *window)
{
  struct cache_shard *shard = cache_shard_of (cache, window);
  bool is_free;

  pthread_mutex_lock (&shard->lock);
  is_free = window_get_state (window) == WINDOW_VERIFIED &&
            window_freeze (window, 1 + window->nr_pins);
  if (is_free)
    cache_unlink (cache, window);
  pthread_mutex_unlock (&shard->lock);
  if (!is_free)
    return false;

  (void) pins_detach (cache, window, true); /* Their references went too. */
  queue_remove (cache, window);
  cache_unreserve (cache, window->data, window->len);
  ghost_remember (&cache->ghosts, window_hash (window));
  window->data = NULL;
  window->next = cache->gone;
  cache->gone = window;
  METRIC_ADD (cache_evictions, 1);
  return true;
}

/* The tail of a queue: evict it, or put it where it belongs.  Returns
 * true if it was evicted.
 */
static bool
turn (struct cache *cache, enum window_queue queue)
{
  struct window *window = cache->queues[queue].tail;

  if (queue != QUEUE_YOUNG && take_touch (window)) {
    queue_move (cache, window, window->is_early ? queue : QUEUE_MAIN);
    window->is_early = false;
    return false;
  }
  if (try_evict (cache, window))
    return true;
  queue_move (cache, window, queue);
  return false;
}

/* The queue that gives way next: old while it has more than its share,
 * else main, else what there is.
 */
static enum window_queue
next_queue (const struct cache *cache)
{
  const struct window_list *queues = cache->queues;

  if (queues[QUEUE_OLD].bytes > cache->budget / OLD_SHARE)
    return QUEUE_OLD;
  if (queues[QUEUE_MAIN].count > 0)
    return QUEUE_MAIN;
  if (queues[QUEUE_OLD].count > 0)
    return QUEUE_OLD;
  return queues[QUEUE_YOUNG].count > 0 ? QUEUE_YOUNG : QUEUE_NONE;
}

/* Whatever in QUEUE nobody holds, hot or not. */
static bool
evict_any (struct cache *cache, enum window_queue queue)
{
  struct window *window = cache->queues[queue].tail, *prev;

  for (; window; window = prev) {
    prev = window->prev;
    if (try_evict (cache, window))
      return true;
  }
  return false;
}

/* Evict one window.  False if there is none that CLAIM may push out. */
static bool
evict_one (struct cache *cache, enum claim claim)
{
  uint32_t turns = cache->queues[QUEUE_OLD].count +
                   2 * cache->queues[QUEUE_MAIN].count +
                   cache->queues[QUEUE_YOUNG].count;

  for (; turns > 0; turns--) {
    const enum window_queue queue = next_queue (cache);

    if (queue == QUEUE_NONE)
      break;
    if (turn (cache, queue))
      return true;
  }
  if (evict_any (cache, QUEUE_OLD) || evict_any (cache, QUEUE_YOUNG) ||
      evict_any (cache, QUEUE_MAIN))
    return true;
  return claim == CLAIM_DEMAND && evict_any (cache, QUEUE_PINNED);
}

/* ---- Reserving ---- */

/* What CLAIM may not do, whatever is free. */
static bool
may_reserve (const struct cache *cache, uint64_t bytes, enum claim claim)
{
  if (claim == CLAIM_DEMAND)
    return true;
  if (cache->line_head)
    return false;
  return claim != CLAIM_AHEAD ||
         cache->ahead_bytes + bytes <= cache->budget / AHEAD_SHARE;
}

static uint8_t *
take_memory (struct cache *cache, uint64_t bytes)
{
  const uint64_t used = atomic_load_explicit (&cache->used,
                                              memory_order_relaxed);
  const uint64_t other =
    used - arena_used_pages (cache->arena) * ARENA_PAGE;
  uint8_t *data;

  if (other > cache->budget)
    return NULL;
  data = arena_alloc (cache->arena, (unsigned) (bytes / ARENA_PAGE),
                      (cache->budget - other) / ARENA_PAGE);
  if (data)
    cache_charge (cache, bytes);
  return data;
}

uint8_t *
cache_reserve (struct cache *cache, struct window *window, enum claim claim)
{
  const uint64_t bytes = window_memory (window);
  uint8_t *data;

  if (!may_reserve (cache, bytes, claim))
    return NULL;
  while ((data = take_memory (cache, bytes)) == NULL)
    if (!evict_one (cache, claim))
      return NULL;
  return data;
}

void
cache_unreserve (struct cache *cache, uint8_t *data, uint32_t len)
{
  const uint64_t bytes = round_up (len, ARENA_PAGE);

  arena_release (cache->arena, data, (unsigned) (bytes / ARENA_PAGE));
  cache_uncharge (cache, bytes);
}

/* ---- Failures ---- */

/* Let a remembered failure go, if nobody holds the window. */
static bool
try_forget (struct cache *cache, struct window *window)
{
  struct cache_shard *shard = cache_shard_of (cache, window);
  bool is_failed, is_free;

  pthread_mutex_lock (&shard->lock);
  is_failed = window_get_state (window) == WINDOW_FAILED;
  is_free = is_failed && window_freeze (window, 1);
  if (is_free)
    cache_unlink (cache, window);
  pthread_mutex_unlock (&shard->lock);

  if (is_failed && !is_free)
    return false;
  queue_remove (cache, window); /* Wanted again, or gone. */
  if (is_free) {
    window->next = cache->gone;
    cache->gone = window;
  }
  return true;
}

void
queue_failed (struct cache *cache, struct window *window)
{
  const struct window_list *failed = &cache->queues[QUEUE_FAILED];
  const uint64_t now = now_ns ();

  queue_add (cache, window, QUEUE_FAILED);
  while (failed->tail != window &&
         (failed->count > CACHE_MAX_FAILED ||
          now - failed->tail->failed_ns >= CACHE_MEMORY_NS))
    if (!try_forget (cache, failed->tail))
      queue_move (cache, failed->tail, QUEUE_FAILED);
}

void
cache_tell_gone (struct cache *cache)
{
  struct window *window, *next;

  pthread_mutex_lock (&cache->lock);
  window = steal_ptr (&cache->gone);
  pthread_mutex_unlock (&cache->lock);
  for (; window; window = next) {
    next = window->next;
    if (window->last_of_blob)
      fetcher_blob_evicted (cache->fetcher, &window->root);
    window_pool_give (&cache->pool, window);
  }
}
