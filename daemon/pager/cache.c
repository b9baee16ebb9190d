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
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "daemon/pager/cache.h"

enum {
  MALLOC_OVERHEAD = 16, /* What malloc adds to a struct, roughly. */
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

void
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
