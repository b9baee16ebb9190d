/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* An index into somebody's array: hash to element number, by open
 * addressing.  It holds numbers only; the array and what makes two of its
 * elements equal stay with the owner.
 *
 * Roots come from a store that nobody trusts, so hashes are mixed with a
 * random seed: whoever chooses the roots does not choose the collisions.
 *
 * Threads: the owner's lock.
 */
#ifndef BP_HASH_INDEX_H
#define BP_HASH_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/merkle.h"

#define HASH_INDEX_NONE UINT32_MAX

struct hash_slot {
  uint32_t check;  /* High half of the hash. */
  uint32_t number; /* Element, or HASH_INDEX_NONE. */
};

struct hash_index {
  struct hash_slot *slots; /* Owned; NULL while empty. */
  uint32_t mask;           /* Slots - 1; slots are a power of 2. */
  uint32_t count;          /* Elements. */
  uint64_t seed;
};

void hash_index_init (struct hash_index *index);
void hash_index_done (struct hash_index *index);

/* Hashes for hash_index_find and hash_index_add. */
uint64_t hash_u64 (const struct hash_index *index, uint64_t value);
uint64_t hash_root (const struct hash_index *index,
                    const struct bp_root *root, uint64_t offset);

/* Says whether element NUMBER of OPAQUE is the one that is sought. */
typedef bool (*hash_equal_fn) (const void *opaque, uint32_t number);

/* The element's number, or HASH_INDEX_NONE. */
uint32_t hash_index_find (const struct hash_index *index, uint64_t hash,
                          hash_equal_fn equal, const void *opaque);

/* Add NUMBER, which must not be there yet.  Returns 0 or -ENOMEM. */
int hash_index_add (struct hash_index *index, uint64_t hash,
                    uint32_t number);

#endif /* BP_HASH_INDEX_H */
