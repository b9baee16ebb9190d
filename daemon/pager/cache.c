/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Finding and holding windows.
 *
 * The hash has a fixed number of chains, in shards with a lock each for
 * whoever changes them.  A verified window is found without the lock:
 *
 *   walk the chain to a window of that hash
 *   take a reference, unless it has none       (it cannot go any more)
 *   compare root, offset, size and state       (they are its own now)
 *
 * The order matters: before it is held, a window may leave the hash at any
 * moment, and its struct come back as another's, in another chain.  Such a
 * walk may be led astray, and then finds nothing; so what is not found is
 * looked for again under the lock, which decides.
 *
 * A window leaves the hash only under the shard lock, and only when its
 * references, save the hash's and its pins', are taken to 0 in one step:
 * so none can be taken after, and nobody is left who has one.
 */
#include <config.h>

#include <assert.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "daemon/pager/cache.h"

enum {
  MAX_STEPS = 64, /* Of a walk without the lock, which may be astray. */
};

/* ---- The hash ---- */

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

static struct cache_shard *
shard_of_hash (struct cache *cache, uint64_t hash)
{
  return &cache->shards[hash % CACHE_SHARDS];
}

struct cache_shard *
cache_shard_of (struct cache *cache, const struct window *window)
{
  return shard_of_hash (cache, window_hash (window));
}

/* There are at least as many buckets as shards, so that a bucket belongs
 * to one of them.
 */
static struct window *_Atomic *
bucket_of (const struct cache *cache, uint64_t hash)
{
  return &cache->buckets[hash & cache->bucket_mask];
}

/* The window at PLACE, a bucket or a window's HASH_NEXT.  Acquire: what
 * was set before it was linked is seen.
 */
static struct window *
load_link (struct window *_Atomic *place)
{
  return atomic_load_explicit (place, memory_order_acquire);
}

/* Is WINDOW the one of BLOB_SIZE bytes (0: verified, whatever its size)?
 * Called with a reference, or with the shard's lock held.
 */
static bool
is_window (const struct window *window, const struct bp_root *root,
           uint64_t offset, uint64_t blob_size)
{
  if (window->offset != offset || !bp_root_equal (&window->root, root))
    return false;
  return blob_size == 0 ? window_get_state (window) == WINDOW_VERIFIED
                        : window->blob_size == blob_size;
}

/* Called with the shard's lock held. */
static struct window *
find_locked (const struct cache *cache, uint64_t hash,
             const struct bp_root *root, uint64_t offset,
             uint64_t blob_size)
{
  struct window *window = load_link (bucket_of (cache, hash));

  for (; window; window = load_link (&window->hash_next))
    if (window_hash (window) == hash &&
        is_window (window, root, offset, blob_size))
      return window;
  return NULL;
}

/* ---- Without the lock ---- */

/* A reference to whatever WINDOW is now, unless nobody refers to it. */
static bool
try_ref (struct window *window)
{
  uint32_t refs = atomic_load_explicit (&window->refs, memory_order_relaxed);

  do
    if (refs == 0)
      return false;
  while (!atomic_compare_exchange_weak_explicit (
    &window->refs, &refs, refs + 1, memory_order_acquire,
    memory_order_relaxed));
  return true;
}

/* A guess: WINDOW is not held. */
static bool
looks_verified (const struct window *window, uint64_t hash)
{
  return window_hash (window) == hash &&
         atomic_load_explicit (&window->state, memory_order_relaxed) ==
           WINDOW_VERIFIED;
}

/* A reference to the window, if it is verified; NULL: ask again, with the
 * lock.
 */
static struct window *
find_unlocked (struct cache *cache, uint64_t hash,
               const struct bp_root *root, uint64_t offset,
               uint64_t blob_size)
{
  struct window *window = load_link (bucket_of (cache, hash));
  unsigned steps;

  for (steps = 0; window && !looks_verified (window, hash); steps++)
    window = steps < MAX_STEPS ? load_link (&window->hash_next) : NULL;
  if (window == NULL || !try_ref (window))
    return NULL;
  if (is_window (window, root, offset, blob_size) &&
      window_get_state (window) == WINDOW_VERIFIED)
    return window;
  cache_put (cache, window);
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

bool
window_freeze (struct window *window, uint32_t count)
{
  /* Pairs with those who have let go: what they read of the window is over
   * before it is used for anything else.
   */
  return atomic_compare_exchange_strong (&window->refs, &count, 0);
}

/* Make WINDOW, which nobody refers to, the one at OFFSET, ABSENT, with one
 * reference.  Threads that were led astray may be reading what is atomic.
 */
static void
fill_in (struct window *window, const struct bp_root *root, uint64_t offset,
         uint64_t blob_size, uint64_t hash)
{
  atomic_store_explicit (&window->hash, hash, memory_order_relaxed);
  atomic_store_explicit (&window->state, WINDOW_ABSENT,
                         memory_order_relaxed);
  atomic_store_explicit (&window->touched, 0, memory_order_relaxed);
  atomic_store_explicit (&window->served, 0, memory_order_relaxed);
  atomic_store_explicit (&window->late, 0, memory_order_relaxed);
  atomic_store_explicit (&window->marker, 0, memory_order_relaxed);
  atomic_store_explicit (&window->checked, CHECK_NONE,
                         memory_order_relaxed);
  window->root = *root;
  window->offset = offset;
  window->blob_size = blob_size;
  window->len = (uint32_t) MIN (blob_size - offset, BP_WINDOW_SIZE);
  window->next = NULL;
  window->is_early = false;
  /* Last.  Pairs with the acquire in try_ref. */
  atomic_store_explicit (&window->refs, 1, memory_order_release);
}

static struct window *
window_new (struct cache *cache, const struct bp_root *root, uint64_t offset,
            uint64_t blob_size, uint64_t hash)
{
  uint64_t grown;
  struct window *window = window_pool_take (&cache->pool, &grown);

  if (window == NULL)
    return NULL;
  cache_charge (cache, grown);
  if (blob_size > BP_WINDOW_SIZE) {
    window->blob = blob_use_get (cache, root);
    if (window->blob == NULL) {
      window_pool_give (&cache->pool, window);
      return NULL;
    }
  }
  fill_in (window, root, offset, blob_size, hash);
  return window;
}

/* Called with the shard's lock held.  A walk without it finds WINDOW from
 * here on.
 */
static void
cache_link (struct cache *cache, struct window *window)
{
  struct window *_Atomic *bucket = bucket_of (cache, window_hash (window));

  atomic_store_explicit (&window->hash_next, load_link (bucket),
                         memory_order_relaxed);
  atomic_store_explicit (bucket, window, memory_order_release);
}

void
cache_unlink (struct cache *cache, struct window *window)
{
  struct window *_Atomic *place = bucket_of (cache, window_hash (window));

  while (load_link (place) != window)
    place = &load_link (place)->hash_next;
  atomic_store_explicit (place, load_link (&window->hash_next),
                         memory_order_release);
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
  struct window *window =
    find_unlocked (cache, hash, root, start, blob_size);

  if (window)
    return window;
  LOCKED (&shard_of_hash (cache, hash)->lock);
  window = find_locked (cache, hash, root, start, blob_size);
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
  LOCKED (&shard_of_hash (cache, hash)->lock);
  const struct window *window =
    find_locked (cache, hash, root, start, blob_size);

  return window ? window_get_state (window) : WINDOW_ABSENT;
}

struct window *
cache_get (struct cache *cache, const struct bp_root *root, uint64_t offset,
           uint64_t blob_size)
{
  const uint64_t start = round_down (offset, BP_WINDOW_SIZE);
  const uint64_t hash = hash_window (cache, root, start);
  struct window *window =
    find_unlocked (cache, hash, root, start, blob_size);

  assert (offset < blob_size);
  if (window)
    return window;
  LOCKED (&shard_of_hash (cache, hash)->lock);
  window = find_locked (cache, hash, root, start, blob_size);
  if (window == NULL) {
    window = window_new (cache, root, start, blob_size, hash);
    if (window == NULL)
      return NULL;
    cache_link (cache, window);
  }
  window_ref (window);
  return window;
}

void
cache_put (struct cache *cache, struct window *window)
{
  struct cache_shard *shard;
  bool is_over;

  /* The usual case: a verified window stays so while this reference is
   * held, and there is nothing to do when it is not.
   */
  if (window_get_state (window) == WINDOW_VERIFIED) {
    atomic_fetch_sub (&window->refs, 1);
    return;
  }

  shard = cache_shard_of (cache, window);
  pthread_mutex_lock (&shard->lock);
  atomic_fetch_sub (&window->refs, 1);
  is_over = window_get_state (window) == WINDOW_ABSENT &&
            window_freeze (window, 1);
  if (is_over)
    cache_unlink (cache, window);
  pthread_mutex_unlock (&shard->lock);
  if (is_over)
    window_pool_give (&cache->pool, window);
}
