/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The hash index: linear probing, at most half full.  A slot keeps the
 * high half of its hash, so that most probes never look at the element;
 * growing needs the whole hash, so the low half is taken from there too:
 * the home slot is chosen by CHECK alone.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/bytes.h"
#include "daemon/profile/hash-index.h"

enum {
  FIRST_SLOTS = 64
};

void
hash_index_init (struct hash_index *index)
{
  memset (index, 0, sizeof *index);
  /* Without entropy the index is merely easier to slow down. */
  if (getrandom (&index->seed, sizeof index->seed, GRND_NONBLOCK) < 0)
    index->seed = (uintptr_t) index;
}

void
hash_index_done (struct hash_index *index)
{
  free (index->slots);
  index->slots = NULL;
  index->mask = index->count = 0;
}

/* Multiply and fold: every bit of VALUE reaches the high half. */
static uint64_t
mix (uint64_t value)
{
  value ^= value >> 32;
  value *= UINT64_C (0x9e3779b97f4a7c15);
  value ^= value >> 29;
  value *= UINT64_C (0xbf58476d1ce4e5b9);
  return value ^ (value >> 32);
}

uint64_t
hash_u64 (const struct hash_index *index, uint64_t value)
{
  return mix (value ^ index->seed);
}

uint64_t
hash_root (const struct hash_index *index, const struct bp_root *root,
           uint64_t offset)
{
  const uint64_t a = get_le64 (root->bytes) ^ index->seed;

  return mix (mix (a) ^ get_le64 (root->bytes + 8) ^ offset);
}

uint32_t
hash_index_find (const struct hash_index *index, uint64_t hash,
                 hash_equal_fn equal, const void *opaque)
{
  const uint32_t check = (uint32_t) (hash >> 32);
  uint32_t i;

  if (index->slots == NULL)
    return HASH_INDEX_NONE;
  for (i = check & index->mask;
       index->slots[i].number != HASH_INDEX_NONE;
       i = (i + 1) & index->mask) {
    if (index->slots[i].check == check &&
        equal (opaque, index->slots[i].number))
      return index->slots[i].number;
  }
  return HASH_INDEX_NONE;
}

static void
insert (struct hash_slot *slots, uint32_t mask, struct hash_slot slot)
{
  uint32_t i = slot.check & mask;

  while (slots[i].number != HASH_INDEX_NONE)
    i = (i + 1) & mask;
  slots[i] = slot;
}

static int
grow (struct hash_index *index)
{
  const uint32_t old = index->slots ? index->mask + 1 : 0;
  const uint32_t nr_slots = old ? old * 2 : FIRST_SLOTS;
  struct hash_slot *slots = malloc (nr_slots * sizeof *slots);
  uint32_t i;

  if (slots == NULL)
    return -ENOMEM;
  memset (slots, 0xff, nr_slots * sizeof *slots); /* All NONE. */
  for (i = 0; i < old; i++) {
    if (index->slots[i].number != HASH_INDEX_NONE)
      insert (slots, nr_slots - 1, index->slots[i]);
  }
  free (index->slots);
  index->slots = slots;
  index->mask = nr_slots - 1;
  return 0;
}

int
hash_index_add (struct hash_index *index, uint64_t hash, uint32_t number)
{
  const struct hash_slot slot = { (uint32_t) (hash >> 32), number };

  if (index->slots == NULL || index->count >= (index->mask + 1) / 2) {
    const int r = grow (index);

    if (r < 0)
      return r;
  }
  insert (index->slots, index->mask, slot);
  index->count++;
  return 0;
}
