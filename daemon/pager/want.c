/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What is wanted: waiters, batches, and the line for memory.
 *
 * A window is moved to FETCHING by the one who first wants it, who puts
 * it in a batch and submits that.  If a client waits for it and there is
 * no memory, it stands in line (FIFO); what nobody waits for goes back to
 * ABSENT.  The line moves when something may have become free: a read was
 * released, a fetch came back, a pin was dropped.
 *
 * Nobody misses that: whoever stands in line first counts itself in
 * line_count and then tries again, and whoever frees first frees and then
 * reads line_count, all sequentially consistent.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "daemon/pager/cache.h"

enum {
  WANT_BATCH = 128
}; /* Windows reserved under one lock. */

static void
batch_add (struct fetch_batch *batch, struct window *window)
{
  window->batch_next = NULL;
  if (batch->tail)
    batch->tail->batch_next = window;
  else
    batch->head = window;
  batch->tail = window;
}

/* Called with the shard's lock held.  FETCHING gets its reference. */
static void
start_fetching (struct window *window, enum claim claim,
                struct fetch_batch *batch)
{
  window->claim = (uint8_t) claim;
  window_ref (window);
  atomic_store_explicit (&window->state, WINDOW_FETCHING,
                         memory_order_release);
  batch_add (batch, window);
}

static bool
is_remembered_now (const struct window *window)
{
  return window_get_state (window) == WINDOW_FAILED &&
         now_ns () - window->failed_ns < CACHE_MEMORY_NS;
}

/* Called with the shard's lock held: a client joins a fetch that was not
 * started for one.
 */
static void
join_fetch (struct cache *cache, struct window *window)
{
  if (window->claim != CLAIM_REPLAY)
    return;
  window->claim = CLAIM_DEMAND;
  atomic_store_explicit (&window->late, 1, memory_order_relaxed);
  if (window->replay)
    page_in_promote (cache, window->replay);
}

int
cache_wait (struct cache *cache, struct waiter *waiter,
            struct fetch_batch *batch)
{
  struct window *window = waiter->window;
  struct cache_shard *shard = cache_shard_of (cache, window);
  LOCKED (&shard->lock);

  assert (window_get_state (window) != WINDOW_GONE);
  if (window_get_state (window) == WINDOW_VERIFIED)
    return 0;
  if (is_remembered_now (window))
    return window->failed_status;

  if (window_get_state (window) == WINDOW_FETCHING)
    join_fetch (cache, window);
  else
    start_fetching (window, CLAIM_DEMAND, batch);
  waiter->next = window->waiters;
  window->waiters = waiter;
  return 1;
}

void
cache_want_ahead (struct cache *cache, struct window *window,
                  struct fetch_batch *batch)
{
  struct cache_shard *shard = cache_shard_of (cache, window);
  LOCKED (&shard->lock);

  if (window_get_state (window) == WINDOW_ABSENT)
    start_fetching (window, CLAIM_AHEAD, batch);
}

/* ---- The line; called with cache->lock held ---- */

static void
stand_in_line (struct cache *cache, struct window *window,
               struct page_user *user)
{
  page_user_ref (user);
  window->batch_user = user;
  window->batch_next = NULL;
  if (cache->line_tail)
    cache->line_tail->batch_next = window;
  else
    cache->line_head = window;
  cache->line_tail = window;
  atomic_fetch_add (&cache->line_count, 1);
}

static void
leave_line (struct cache *cache)
{
  struct window *window = cache->line_head;

  cache->line_head = window->batch_next;
  if (cache->line_head == NULL)
    cache->line_tail = NULL;
  atomic_fetch_sub (&cache->line_count, 1);
}

/* There is no memory for WINDOW.  True if a client waits for it; else it
 * is absent again, from here on for anybody to want.
 */
static bool
is_waited_for (struct cache *cache, struct window *window)
{
  struct cache_shard *shard = cache_shard_of (cache, window);
  LOCKED (&shard->lock);

  if (window->waiters) {
    window->claim = CLAIM_DEMAND;
    return true;
  }
  atomic_store_explicit (&window->state, WINDOW_ABSENT,
                         memory_order_release);
  return false;
}

/* What came of windows taken from a batch or the line, for when the lock
 * is released.
 */
struct harvest {
  struct page_in *started[WANT_BATCH]; /* To send. */
  struct window *dropped[WANT_BATCH];  /* Absent again. */
  struct window *starved[WANT_BATCH];  /* No memory for the page-in. */
  size_t nr_started;
  size_t nr_dropped;
  size_t nr_starved;
};

static bool
is_full (const struct harvest *harvest)
{
  return harvest->nr_started + harvest->nr_dropped +
           harvest->nr_starved ==
         WANT_BATCH;
}

/* Give WINDOW its memory and its page-in, which takes FETCHING's
 * reference.  Returns false if it has to stand in line.
 */
static bool
start (struct cache *cache, struct window *window, struct page_user *user,
       struct harvest *harvest)
{
  uint8_t *data =
    cache_reserve (cache, window, (enum claim) window->claim);
  struct page_in *in;

  if (data == NULL) {
    if (is_waited_for (cache, window))
      return false;
    harvest->dropped[harvest->nr_dropped++] = window;
    return true;
  }
  window->data = data;
  in = page_in_new (cache, window, user, user ? user->user : NULL,
                    FETCH_DEMAND);
  if (in == NULL) {
    cache_unreserve (cache, data, window->len);
    harvest->starved[harvest->nr_starved++] = window;
    return true;
  }
  if (window->claim == CLAIM_AHEAD)
    cache->ahead_bytes += window_memory (window);
  harvest->started[harvest->nr_started++] = in;
  return true;
}

/* No lock held. */
static void
bring_in (struct cache *cache, struct harvest *harvest)
{
  size_t i;

  cache_tell_gone (cache);
  page_in_submit (cache, harvest->started, harvest->nr_started);
  for (i = 0; i < harvest->nr_dropped; i++)
    cache_put (cache, harvest->dropped[i]);
  for (i = 0; i < harvest->nr_starved; i++)
    cache_publish (cache, harvest->starved[i], -ENOMEM);
}

/* Some windows from the head of BATCH: start them, or put them in line
 * behind those that are there.
 */
static void
submit_some (struct cache *cache, struct fetch_batch *batch)
{
  struct harvest harvest;
  struct window *window;

  harvest.nr_started = harvest.nr_dropped = harvest.nr_starved = 0;
  pthread_mutex_lock (&cache->lock);
  while (!is_full (&harvest) && (window = batch->head) != NULL) {
    batch->head = window->batch_next;
    if ((cache->line_head && window->claim == CLAIM_DEMAND) ||
        !start (cache, window, batch->user, &harvest))
      stand_in_line (cache, window, batch->user);
  }
  pthread_mutex_unlock (&cache->lock);
  bring_in (cache, &harvest);
}

void
cache_submit (struct cache *cache, struct fetch_batch *batch)
{
  if (batch->head == NULL)
    return;
  while (batch->head)
    submit_some (cache, batch);
  batch->tail = NULL;
  /* What stands in line tries once more, now that it has been counted. */
  cache_serve_line (cache);
}

/* Start what has memory now.  Returns how many left the line. */
static size_t
serve_some (struct cache *cache)
{
  struct page_user *users[WANT_BATCH];
  struct harvest harvest;
  struct window *window;
  size_t nr_users = 0, i;

  harvest.nr_started = harvest.nr_dropped = harvest.nr_starved = 0;
  pthread_mutex_lock (&cache->lock);
  while (!is_full (&harvest) && (window = cache->line_head) != NULL) {
    if (!start (cache, window, window->batch_user, &harvest))
      break;
    users[nr_users++] = window->batch_user;
    leave_line (cache);
  }
  pthread_mutex_unlock (&cache->lock);

  bring_in (cache, &harvest);
  for (i = 0; i < nr_users; i++)
    page_user_unref (users[i]);
  return nr_users;
}

void
cache_serve_line (struct cache *cache)
{
  while (atomic_load (&cache->line_count) > 0)
    if (serve_some (cache) == 0)
      return;
}
