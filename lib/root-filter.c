/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A Bloom filter of 16 bits a root and four probes.  A root is a digest
 * and so its own hash: each probe is eight of its bytes.  (The first eight
 * also order the table; that does not matter here.)
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "lib/base/bytes.h"
#include "lib/root-filter.h"

enum {
  BITS_PER_ROOT = 16,
  NR_PROBES = 4
};

struct bp_root_filter {
  uint64_t mask; /* Bits - 1; bits is a power of 2, at least 64. */
  uint64_t words[];
};

int
bp_root_filter_new (struct bp_root_filter **ret_filter, uint64_t count)
{
  struct bp_root_filter *filter;
  uint64_t bits = 64;

  while (bits < count * BITS_PER_ROOT)
    bits *= 2;
  filter = calloc (1, sizeof *filter + bits / 8);
  if (filter == NULL)
    return -ENOMEM;
  filter->mask = bits - 1;
  *ret_filter = filter;
  return 0;
}

void
bp_root_filter_free (struct bp_root_filter *filter)
{
  free (filter);
}

void
bp_root_filter_add (struct bp_root_filter *filter,
                    const struct bp_root *root)
{
  for (unsigned i = 0; i < NR_PROBES; i++) {
    const uint64_t bit = get_le64 (root->bytes + 8 * i) & filter->mask;

    filter->words[bit / 64] |= UINT64_C (1) << bit % 64;
  }
}

bool
bp_root_filter_may_have (const struct bp_root_filter *filter,
                         const struct bp_root *root)
{
  for (unsigned i = 0; i < NR_PROBES; i++) {
    const uint64_t bit = get_le64 (root->bytes + 8 * i) & filter->mask;

    if (!(filter->words[bit / 64] >> bit % 64 & 1))
      return false;
  }
  return true;
}
