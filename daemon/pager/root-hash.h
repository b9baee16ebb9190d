/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Hashing roots for tables.  Roots come from an index, so from outside: all
 * of a root is mixed, with a seed, so that nobody can choose roots that
 * make chains long.
 */
#ifndef BP_ROOT_HASH_H
#define BP_ROOT_HASH_H

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/clock.h"
#include "lib/merkle.h"

static inline uint64_t
root_hash_seed (void)
{
  uint64_t seed;

  /* Without random bytes chains may be made long on purpose, no worse. */
  if (getrandom (&seed, sizeof seed, 0) != sizeof seed)
    seed = now_ns ();
  return seed;
}

static inline uint64_t
root_hash (uint64_t seed, const struct bp_root *root)
{
  uint64_t words[BP_ROOT_SIZE / 8], hash = seed;

  memcpy (words, root->bytes, sizeof words);
  for (size_t i = 0; i < BP_ROOT_SIZE / 8; i++) {
    hash = (hash ^ words[i]) * UINT64_C (0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
  }
  return hash;
}

#endif /* BP_ROOT_HASH_H */
