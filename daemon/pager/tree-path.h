/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The nodes that lead from the root of a large blob to a window: fetched
 * with the window, in the same round trip, and verified with it.
 *
 * What is kept of them is one digest for each window whose leaves came
 * along (digest-table.h).
 *
 * Threads: the lane's.
 */
#ifndef BP_TREE_PATH_H
#define BP_TREE_PATH_H

#include "daemon/pager/digest-table.h"
#include "lib/merkle.h"

struct attempt;
struct tree_path;

/* The path that ATTEMPT needs.  NULL: out of memory. */
struct tree_path *tree_path_new (struct attempt *attempt);
/* NULL is allowed. */
void tree_path_free (struct tree_path *path);

/* Send a request for each node; ATTEMPT waits for the answers. */
void tree_path_send (struct tree_path *path);

/* Point NODES at the bytes of the nodes, which have come. */
void tree_path_nodes (const struct tree_path *path,
                      const uint8_t *nodes[BP_MERKLE_MAX_LEVELS]);

/* PATH has been verified: make the digests that its leaves give, and later
 * (with the fetcher's lock held) add them to TABLE.
 */
void tree_path_digest (struct tree_path *path);
void tree_path_keep (const struct tree_path *path,
                     struct digest_table *table);

#endif /* BP_TREE_PATH_H */
