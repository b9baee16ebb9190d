/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What has been verified of the trees of large blobs, one digest a window
 * (bp_window_digests), so that a window needs the nodes that lead to it only
 * once, and its neighbours do not need them at all.
 *
 * The table has a fixed size: sets of a few entries each, found by a seeded
 * hash of root and window; a new entry takes the place of its set's oldest.
 * An entry holds the whole root: what is found is what was verified.
 *
 * Threads: called with the fetcher's lock held.
 */
#ifndef BP_DIGEST_TABLE_H
#define BP_DIGEST_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/merkle.h"

struct digest_entry;

struct digest_table {
  struct digest_entry *entries;
  uint64_t seed;
};

/* Returns 0 or -ENOMEM. */
int digest_table_init (struct digest_table *table);
void digest_table_done (struct digest_table *table);
/* Of memory, for the budget. */
uint64_t digest_table_bytes (void);

/* The digest of the window at OFFSET of ROOT.  False: not known. */
bool digest_table_find (const struct digest_table *table,
                        const struct bp_root *root, uint64_t offset,
                        struct bp_root *ret_digest);

/* DIGEST was verified. */
void digest_table_add (struct digest_table *table,
                       const struct bp_root *root, uint64_t offset,
                       const struct bp_root *digest);

#endif /* BP_DIGEST_TABLE_H */
