/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The cache of verified table pieces: a handful of slots, searched one by
 * one, the least recently used replaced.  At 64 slots a search costs less
 * than the memory access behind it, and a miss costs a read and a SHA-256
 * of 64 KiB, so nothing cleverer pays.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/pack-format.h"
#include "lib/piece-cache.h"

struct slot {
  uint64_t owner; /* 0: empty. */
  uint64_t piece;
  uint64_t used; /* The cache's clock when it was last read. */
  size_t len;    /* Bytes at data that belong to the piece. */
  uint8_t *data; /* PACK_PIECE_SIZE bytes, or NULL before first use. */
};

struct bp_piece_cache {
  pthread_mutex_t lock; /* Protects everything below. */
  uint64_t clock;       /* Counts reads. */
  size_t nr_slots;
  struct slot slots[];
};

int
bp_piece_cache_new (struct bp_piece_cache **ret_cache, size_t nr_slots)
{
  struct bp_piece_cache *cache =
    calloc (1, sizeof *cache + nr_slots * sizeof cache->slots[0]);

  if (cache == NULL)
    return -ENOMEM;
  pthread_mutex_init (&cache->lock, NULL);
  cache->nr_slots = nr_slots;
  *ret_cache = cache;
  return 0;
}

void
bp_piece_cache_free (struct bp_piece_cache *cache)
{
  if (cache == NULL)
    return;
  for (size_t i = 0; i < cache->nr_slots; i++)
    free (cache->slots[i].data);
  pthread_mutex_destroy (&cache->lock);
  free (cache);
}

uint64_t
bp_piece_cache_owner (void)
{
  static _Atomic uint64_t last;

  return atomic_fetch_add_explicit (&last, 1, memory_order_relaxed) + 1;
}

/* Called with cache->lock held. */
static struct slot *
find_slot (struct bp_piece_cache *cache, uint64_t owner, uint64_t piece)
{
  for (size_t i = 0; i < cache->nr_slots; i++)
    if (cache->slots[i].owner == owner && cache->slots[i].piece == piece)
      return &cache->slots[i];
  return NULL;
}

bool
bp_piece_cache_get (struct bp_piece_cache *cache, uint64_t owner,
                    uint64_t piece, size_t offset, void *buf, size_t len)
{
  LOCKED (&cache->lock);
  struct slot *slot = find_slot (cache, owner, piece);

  if (slot == NULL)
    return false;
  assert (range_is_within (slot->len, offset, len));
  memcpy (buf, slot->data + offset, len);
  slot->used = ++cache->clock;
  return true;
}

void
bp_piece_cache_put (struct bp_piece_cache *cache, uint64_t owner,
                    uint64_t piece, const void *data, size_t len)
{
  LOCKED (&cache->lock);
  struct slot *slot = find_slot (cache, owner, piece);

  assert (len <= PACK_PIECE_SIZE);
  if (slot != NULL)
    return; /* Another thread was faster; its bytes are the same. */
  slot = &cache->slots[0];
  for (size_t i = 1; i < cache->nr_slots; i++)
    if (cache->slots[i].used < slot->used)
      slot = &cache->slots[i];
  if (slot->data == NULL)
    slot->data = malloc (PACK_PIECE_SIZE);
  if (slot->data == NULL)
    return;
  memcpy (slot->data, data, len);
  slot->owner = owner;
  slot->piece = piece;
  slot->len = len;
  slot->used = ++cache->clock;
}
