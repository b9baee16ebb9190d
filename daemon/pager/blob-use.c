/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* How many windows of each large blob are in the hash, so that the fetcher
 * can be told when the last one has left.
 *
 * Called from the cache, under a shard's lock; blobs_lock is a leaf.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "daemon/pager/cache.h"

enum {
  BLOB_BUCKETS = 1024,
  MALLOC_OVERHEAD = 16, /* What malloc adds to a struct, roughly. */
};

struct blob_use {
  struct blob_use *next;
  struct bp_root root;
  uint64_t nr_windows;
};

/* Called with blobs_lock held. */
static struct blob_use **
place_of (struct cache *cache, const struct bp_root *root)
{
  struct blob_use **place;
  uint32_t n;

  memcpy (&n, root->bytes, sizeof n);
  place = &cache->blobs[n % BLOB_BUCKETS];
  while (*place && !bp_root_equal (&(*place)->root, root))
    place = &(*place)->next;
  return place;
}

struct blob_use *
blob_use_get (struct cache *cache, const struct bp_root *root)
{
  LOCKED (&cache->blobs_lock);
  struct blob_use **place = place_of (cache, root);

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

bool
blob_use_put (struct cache *cache, struct blob_use *blob)
{
  LOCKED (&cache->blobs_lock);
  struct blob_use **place;

  if (--blob->nr_windows > 0)
    return false;
  place = place_of (cache, &blob->root);
  *place = blob->next;
  free (blob);
  cache_uncharge (cache, sizeof *blob + MALLOC_OVERHEAD);
  return true;
}

int
blob_uses_init (struct cache *cache)
{
  cache->blobs = calloc (BLOB_BUCKETS, sizeof cache->blobs[0]);
  if (cache->blobs == NULL)
    return -ENOMEM;
  cache_charge (cache, BLOB_BUCKETS * sizeof cache->blobs[0]);
  return 0;
}

/* The counts went with their last windows. */
void
blob_uses_done (struct cache *cache)
{
  free (cache->blobs);
}
