/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A cache's tables and budget, from its making to its end. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/cleanup.h"
#include "daemon/metrics.h"
#include "daemon/pager/cache.h"

enum {
  /* Bytes of budget for one chain of the hash, and for one ghost: about
   * half of a window, and a window.
   */
  BYTES_PER_BUCKET = 16 << 10,
  BYTES_PER_GHOST = 32 << 10,
};

/* ---- The budget ---- */

void
cache_charge (struct cache *cache, uint64_t bytes)
{
  atomic_fetch_add_explicit (&cache->used, bytes, memory_order_relaxed);
  METRIC_ADD (cache_used_bytes, bytes);
}

void
cache_uncharge (struct cache *cache, uint64_t bytes)
{
  atomic_fetch_sub_explicit (&cache->used, bytes, memory_order_relaxed);
  METRIC_SUB (cache_used_bytes, bytes);
}

/* ---- Life ---- */

static int
init_tables (struct cache *cache)
{
  uint64_t buckets = 16 * CACHE_SHARDS;

  while (buckets * BYTES_PER_BUCKET < cache->budget)
    buckets *= 2;
  cache->bucket_mask = buckets - 1;
  cache->buckets = calloc (buckets, sizeof cache->buckets[0]);
  if (cache->buckets == NULL)
    return -ENOMEM;
  if (blob_uses_init (cache) < 0)
    return -ENOMEM;
  if (ghost_init (&cache->ghosts, cache->budget / BYTES_PER_GHOST) < 0)
    return -ENOMEM;
  /* Twice the budget of addresses, for the gaps between runs. */
  if (arena_new (&cache->arena, 2 * cache->budget) < 0)
    return -ENOMEM;

  cache_charge (cache, sizeof *cache + buckets * sizeof (void *) +
                         fetcher_table_bytes (cache->fetcher) +
                         ghost_table_bytes (&cache->ghosts) +
                         arena_table_bytes (cache->arena));
  return 0;
}

static void
free_tables (struct cache *cache)
{
  unsigned i;

  METRIC_SUB (cache_used_bytes, atomic_load (&cache->used));
  METRIC_SUB (cache_budget_bytes, cache->budget);
  arena_free (cache->arena);
  ghost_done (&cache->ghosts);
  blob_uses_done (cache);
  free (cache->buckets);
  window_pool_done (&cache->pool);
  for (i = 0; i < CACHE_SHARDS; i++)
    pthread_mutex_destroy (&cache->shards[i].lock);
  pthread_mutex_destroy (&cache->lock);
  pthread_mutex_destroy (&cache->blobs_lock);
  pthread_mutex_destroy (&cache->idle_lock);
  pthread_cond_destroy (&cache->idle);
  free (cache);
}

int
cache_new (struct cache **ret_cache, uint64_t budget,
           struct fetcher *fetcher)
{
  struct cache *cache =
    aligned_alloc (_Alignof(struct cache), sizeof *cache);
  unsigned i;

  if (cache == NULL)
    return -ENOMEM;
  memset (cache, 0, sizeof *cache);
  cache->budget = budget;
  cache->fetcher = fetcher;
  pthread_mutex_init (&cache->lock, NULL);
  pthread_mutex_init (&cache->blobs_lock, NULL);
  pthread_mutex_init (&cache->idle_lock, NULL);
  pthread_cond_init (&cache->idle, NULL);
  window_pool_init (&cache->pool);
  for (i = 0; i < CACHE_SHARDS; i++)
    pthread_mutex_init (&cache->shards[i].lock, NULL);
  METRIC_ADD (cache_budget_bytes, budget);
  if (getrandom (cache->seed, sizeof cache->seed,
                 0) != (ssize_t) sizeof cache->seed ||
      init_tables (cache) < 0) {
    free_tables (cache);
    return -ENOMEM;
  }
  *ret_cache = cache;
  return 0;
}

void
cache_wait_idle (struct cache *cache)
{
  LOCKED (&cache->idle_lock);

  while (cache->in_flight > 0)
    pthread_cond_wait (&cache->idle, &cache->idle_lock);
}

/* The blobs' counts go with their last windows. */
static void
unlink_all (struct cache *cache)
{
  struct window *window;
  uint64_t b;

  for (b = 0; b <= cache->bucket_mask; b++)
    while ((window = atomic_load (&cache->buckets[b])) != NULL)
      cache_unlink (cache, window);
}

void
cache_free (struct cache *cache)
{
  if (cache == NULL)
    return;
  unlink_all (cache);
  METRIC_SUB (cache_pinned_bytes, cache->pinned_bytes);
  free_tables (cache);
}
