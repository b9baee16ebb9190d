/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Finding and holding windows.
 *
 * The hash has a fixed number of chains, in shards with a lock each.  A
 * reference is only ever made from another one, or under the shard lock
 * from the hash's own; so a window whose only references are the hash's
 * and its pins', seen under the shard lock, is held by nobody.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "daemon/pager/cache.h"

enum {
  /* Bytes of budget for one chain of the hash, and for one ghost: about
   * half of a window, and a window.
   */
  BYTES_PER_BUCKET = 16 << 10,
  BYTES_PER_GHOST = 32 << 10,
  BLOB_BUCKETS = 1024,
  /* What malloc adds to a struct, roughly. */
  MALLOC_OVERHEAD = 16,
};

/* How many windows of a large blob are in the hash. */
struct blob_use {
  struct blob_use *next;
  struct bp_root root;
  uint64_t nr_windows;
};

static uint64_t
hash_window (const struct cache *cache, const struct bp_root *root,
             uint64_t offset)
{
  uint64_t a, b;

  memcpy (&a, root->bytes, sizeof a);
  memcpy (&b, root->bytes + 8, sizeof b);
  a = (a ^ cache->seed[0]) * (cache->seed[1] | 1);
  a ^= a >> 32;
  a = (a ^ b ^ (offset / BP_WINDOW_SIZE)) * UINT64_C (0x9e3779b97f4a7c15);
  return a ^ a >> 29;
}

struct cache_shard *
cache_shard_of (struct cache *cache, uint64_t hash)
{
  return &cache->shards[hash % CACHE_SHARDS];
}

static struct window **
bucket_of (const struct cache *cache, const struct cache_shard *shard,
           uint64_t hash)
{
  return &shard->buckets[hash / CACHE_SHARDS & cache->bucket_mask];
}

/* Called with the shard's lock held. */
static struct window *
find_in_chain (const struct cache *cache, const struct cache_shard *shard,
               uint64_t hash, const struct bp_root *root, uint64_t offset,
               uint64_t blob_size)
{
  struct window *window = *bucket_of (cache, shard, hash);

  for (; window; window = window->hash_next) {
    if (window->hash != hash || window->offset != offset ||
        !bp_root_equal (&window->root, root))
      continue;
    if (blob_size == 0 ? window_get_state (window) == WINDOW_VERIFIED
                       : window->blob_size == blob_size)
      return window;
  }
  return NULL;
}

/* ---- Blobs of several windows ---- */

static struct blob_use **
blob_place (struct cache *cache, const struct bp_root *root)
{
  struct blob_use **place;
  uint32_t n;

  memcpy (&n, root->bytes, sizeof n);
  place = &cache->blobs[n % BLOB_BUCKETS];
  while (*place && !bp_root_equal (&(*place)->root, root))
    place = &(*place)->next;
  return place;
}

/* One more window of ROOT; NULL if memory has run out. */
static struct blob_use *
blob_use_get (struct cache *cache, const struct bp_root *root)
{
  LOCKED (&cache->blobs_lock);
  struct blob_use **place = blob_place (cache, root);

  if (*place == NULL) {
    *place = calloc (1, sizeof **place);
    if (*place == NULL)
      return NULL;
    (*place)->root = *root;
    cache_charge (cache, sizeof **place + MALLOC_OVERHEAD);
  }
  (*place)->nr_windows++;
  return *place;
}

/* One window less.  True if it was the last. */
static bool
blob_use_put (struct cache *cache, struct blob_use *blob)
{
  LOCKED (&cache->blobs_lock);
  struct blob_use **place;

  if (--blob->nr_windows > 0)
    return false;
  place = blob_place (cache, &blob->root);
  *place = blob->next;
  free (blob);
  cache_uncharge (cache, sizeof *blob + MALLOC_OVERHEAD);
  return true;
}

/* ---- Windows ---- */

uint64_t
window_memory (const struct window *window)
{
  return round_up (window->len, ARENA_PAGE);
}

void
window_ref (struct window *window)
{
  atomic_fetch_add_explicit (&window->refs, 1, memory_order_relaxed);
}

static struct window *
window_new (struct cache *cache, const struct bp_root *root, uint64_t offset,
            uint64_t blob_size, uint64_t hash)
{
  struct window *window = calloc (1, sizeof *window);

  if (window == NULL)
    return NULL;
  window->root = *root;
  window->offset = offset;
  window->blob_size = blob_size;
  window->len = (uint32_t) MIN (blob_size - offset, BP_WINDOW_SIZE);
  window->hash = hash;
  if (blob_size > BP_WINDOW_SIZE) {
    window->blob = blob_use_get (cache, root);
    if (window->blob == NULL) {
      free (window);
      return NULL;
    }
  }
  atomic_init (&window->refs, 1);
  cache_charge (cache, sizeof *window + MALLOC_OVERHEAD);
  return window;
}

/* Free a window that is out of the hash and has no reference. */
static void
window_free (struct cache *cache, struct window *window)
{
  cache_uncharge (cache, sizeof *window + MALLOC_OVERHEAD);
  free (window);
}

void
cache_unlink (struct cache *cache, struct window *window)
{
  struct window **place = bucket_of (
    cache, cache_shard_of (cache, window->hash), window->hash);

  while (*place != window)
    place = &(*place)->hash_next;
  *place = window->hash_next;
  window->last_of_blob =
    window->blob == NULL || blob_use_put (cache, window->blob);
  window->blob = NULL;
  atomic_store_explicit (&window->state, WINDOW_GONE, memory_order_release);
}

struct window *
cache_find (struct cache *cache, const struct bp_root *root, uint64_t offset,
            uint64_t blob_size)
{
  const uint64_t start = round_down (offset, BP_WINDOW_SIZE);
  const uint64_t hash = hash_window (cache, root, start);
  struct cache_shard *shard = cache_shard_of (cache, hash);
  LOCKED (&shard->lock);
  struct window *window =
    find_in_chain (cache, shard, hash, root, start, blob_size);

  if (window == NULL || window_get_state (window) != WINDOW_VERIFIED)
    return NULL;
  window_ref (window);
  return window;
}

enum window_state
cache_peek (struct cache *cache, const struct bp_root *root, uint64_t offset,
            uint64_t blob_size)
{
  const uint64_t start = round_down (offset, BP_WINDOW_SIZE);
  const uint64_t hash = hash_window (cache, root, start);
  struct cache_shard *shard = cache_shard_of (cache, hash);
  LOCKED (&shard->lock);
  const struct window *window =
    find_in_chain (cache, shard, hash, root, start, blob_size);

  return window ? window_get_state (window) : WINDOW_ABSENT;
}

struct window *
cache_get (struct cache *cache, const struct bp_root *root, uint64_t offset,
           uint64_t blob_size)
{
  const uint64_t start = round_down (offset, BP_WINDOW_SIZE);
  const uint64_t hash = hash_window (cache, root, start);
  struct cache_shard *shard = cache_shard_of (cache, hash);
  LOCKED (&shard->lock);
  struct window *window, **bucket;

  assert (offset < blob_size);
  window = find_in_chain (cache, shard, hash, root, start, blob_size);
  if (window == NULL) {
    window = window_new (cache, root, start, blob_size, hash);
    if (window == NULL)
      return NULL;
    bucket = bucket_of (cache, shard, hash);
    window->hash_next = *bucket;
    *bucket = window;
  }
  window_ref (window);
  return window;
}

void
cache_put (struct cache *cache, struct window *window)
{
  struct cache_shard *shard;
  uint32_t left;

  /* The usual case: the hash keeps its own reference, and a verified
   * window stays so while this one is held.
   */
  if (window_get_state (window) == WINDOW_VERIFIED) {
    atomic_fetch_sub (&window->refs, 1);
    return;
  }

  shard = cache_shard_of (cache, window->hash);
  pthread_mutex_lock (&shard->lock);
  left = atomic_fetch_sub (&window->refs, 1) - 1;
  if (left == 1 && window_get_state (window) == WINDOW_ABSENT) {
    cache_unlink (cache, window);
    left = 0;
  }
  pthread_mutex_unlock (&shard->lock);
  if (left == 0)
    window_free (cache, window);
}

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
  uint64_t buckets = 16;
  unsigned i;

  while (buckets * CACHE_SHARDS * BYTES_PER_BUCKET < cache->budget)
    buckets *= 2;
  cache->bucket_mask = (uint32_t) (buckets - 1);
  for (i = 0; i < CACHE_SHARDS; i++) {
    cache->shards[i].buckets =
      calloc (buckets, sizeof cache->shards[i].buckets[0]);
    if (cache->shards[i].buckets == NULL)
      return -ENOMEM;
  }
  cache->blobs = calloc (BLOB_BUCKETS, sizeof cache->blobs[0]);
  if (cache->blobs == NULL)
    return -ENOMEM;
  if (ghost_init (&cache->ghosts, cache->budget / BYTES_PER_GHOST) < 0)
    return -ENOMEM;
  /* Twice the budget of addresses, for the gaps between runs. */
  if (arena_new (&cache->arena, 2 * cache->budget) < 0)
    return -ENOMEM;

  cache_charge (cache, sizeof *cache +
                         buckets * CACHE_SHARDS * sizeof (void *) +
                         BLOB_BUCKETS * sizeof cache->blobs[0] +
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
  free (cache->blobs);
  for (i = 0; i < CACHE_SHARDS; i++) {
    free (cache->shards[i].buckets);
    pthread_mutex_destroy (&cache->shards[i].lock);
  }
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

/* The blobs' counts go with their last windows. */
static void
free_windows (struct cache *cache, struct cache_shard *shard)
{
  uint32_t i;

  for (i = 0; i <= cache->bucket_mask; i++) {
    while (shard->buckets[i]) {
      struct window *window = shard->buckets[i];

      cache_unlink (cache, window);
      window_free (cache, window);
    }
  }
}

void
cache_wait_idle (struct cache *cache)
{
  LOCKED (&cache->idle_lock);

  while (cache->in_flight > 0)
    pthread_cond_wait (&cache->idle, &cache->idle_lock);
}

void
cache_free (struct cache *cache)
{
  unsigned i;

  if (cache == NULL)
    return;
  for (i = 0; i < CACHE_SHARDS; i++)
    free_windows (cache, &cache->shards[i]);
  METRIC_SUB (cache_pinned_bytes, cache->pinned_bytes);
  free_tables (cache);
}
