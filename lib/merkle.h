/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Merkle trees, as Fuchsia's blobs have them (blobpager-store(5)).
 *
 * A blob is cut into blocks of 8192 bytes; level 0 is their digests, the
 * leaves.  The list of level n's digests, cut into nodes of 8192 bytes
 * (256 digests), gives level n + 1, until one digest is left: the root.
 * A blob of at most one block has its only leaf as its root.
 *
 *   root                                        level 2 (not stored)
 *    └─ list of level 1: digest digest …        one per 256 leaves
 *         └─ list of level 0: leaf leaf …       one per block
 *              └─ the blob: block block …
 *
 * "The tree" is every list below the root, leaves first, compact: no
 * padding between lists.  A blob of one block has no tree.
 *
 * Threads: functions are pure; a builder belongs to one thread.
 */
#ifndef BP_MERKLE_H
#define BP_MERKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/error.h"

enum {
  BP_BLOCK_SIZE = 8192,       /* Bytes of a block and of a tree node. */
  BP_NODE_DIGESTS = 256,      /* Digests in a node. */
  BP_WINDOW_SIZE = 128 << 10, /* Bytes of a window of a large blob. */
  BP_ROOT_SIZE = 32,          /* Bytes of a digest. */
  BP_ROOT_HEX_SIZE = 65,      /* Characters of a written root and NUL. */
  BP_MERKLE_MAX_LEVELS = 4,   /* Lists of the largest blob's tree. */
};
#define BP_BLOB_MAX_SIZE (UINT64_C (1) << 40)

/* A digest; most often the root that names a blob. */
struct bp_root {
  uint8_t bytes[BP_ROOT_SIZE];
};

static inline bool
bp_root_equal (const struct bp_root *a, const struct bp_root *b)
{
  return memcmp (a->bytes, b->bytes, BP_ROOT_SIZE) == 0;
}

/* Write ROOT as 64 digits and NUL.  Returns OUT. */
char *bp_root_format (const struct bp_root *root,
                      char out[BP_ROOT_HEX_SIZE]);

/* Parse exactly 64 lower-case digits.  Returns 0 or -EINVAL. */
int bp_root_parse (const char *hex, struct bp_root *ret_root);

/* ---- Geometry: all from the size of the blob, in bytes. ---- */

/* Lists in the tree: 0 for a blob of at most one block. */
unsigned bp_merkle_nr_levels (uint64_t size);

/* Digests in the list of LEVEL (0 = leaves).  For level ==
 * nr_levels it is 1: the root.
 */
uint64_t bp_merkle_level_count (uint64_t size, unsigned level);

/* Offset in bytes of LEVEL's list in the compact tree; for level ==
 * nr_levels the size of the tree.
 */
uint64_t bp_merkle_level_offset (uint64_t size, unsigned level);

/* Windows of a blob; at least 1, also for the empty blob. */
uint64_t bp_nr_windows (uint64_t size);

/* ---- Roots ---- */

/* The root of LEN bytes at DATA.  Not for more than BP_BLOB_MAX_SIZE.
 * Returns 0 or -ENOMEM.  For at most BP_WINDOW_SIZE bytes it never fails.
 */
int bp_merkle_root (const void *data, size_t len, struct bp_root *ret_root);

/* Streaming: add bytes in pieces of any size, then finish.  With
 * KEEP_TREE the tree is kept (1/255 of the blob's size in memory).
 */
struct bp_merkle_builder;
int bp_merkle_builder_new (struct bp_merkle_builder **ret_builder,
                           bool keep_tree);
/* Returns 0, -ENOMEM, or -EFBIG past BP_BLOB_MAX_SIZE. */
int bp_merkle_builder_add (struct bp_merkle_builder *builder,
                           const void *data, size_t len);
/* Returns 0 or -ENOMEM.  RET_TREE and RET_TREE_LEN may be NULL; the tree
 * is borrowed until the builder is freed.
 */
int bp_merkle_builder_finish (struct bp_merkle_builder *builder,
                              struct bp_root *ret_root, uint64_t *ret_size,
                              const uint8_t **ret_tree,
                              size_t *ret_tree_len);
void bp_merkle_builder_free (struct bp_merkle_builder *builder);

/* ---- Windows ---- */

/* One node on the way down to a window: digests FIRST …
 * FIRST + COUNT - 1 of LEVEL's list (COUNT <= 256; FIRST a multiple of
 * 256).
 */
struct bp_merkle_node {
  unsigned level;
  uint64_t first;
  uint32_t count;
};

/* The nodes that lead from the root to the window at OFFSET (a multiple
 * of BP_WINDOW_SIZE, inside the blob), level 0 first.  Returns how many,
 * equal to bp_merkle_nr_levels (size).
 */
unsigned bp_merkle_path (uint64_t size, uint64_t offset,
                         struct bp_merkle_node nodes[BP_MERKLE_MAX_LEVELS]);

/* Whether LEN bytes at OFFSET are a window of a blob of SIZE bytes. */
bool bp_is_window (uint64_t size, uint64_t offset, size_t len);

/* A window of a blob, to be hashed or verified where it lies: in memory that
 * nobody else can write, from here on until it is no longer used.
 */
struct bp_window {
  uint64_t size;    /* Bytes of the blob. */
  uint64_t offset;  /* Of the window in it, bytes. */
  const void *data; /* Borrowed, like all that follow. */
  size_t len;       /* Bytes of the window. */

  /* What a blob of one window is verified by. */
  const struct bp_root *root;
  /* What a window of a larger blob is verified by: its digest, which must
   * have been verified; or, with NODES, ROOT and the bytes of the nodes on
   * the path (bp_merkle_path), which are verified with it.
   */
  const struct bp_root *digest;
  const uint8_t *const *nodes; /* Or NULL. */

  /* Filled in.  COMPUTED is the root of a blob of one window, or, without
   * NODES, the digest of a window of a larger one.
   */
  struct bp_root computed;
  int status; /* 0; -EINVAL: no window; -EBADMSG: not what it should be. */
};

/* Verify COUNT windows: fill in their status.  The longer the list, the
 * faster, as the blocks of all are hashed side by side.
 */
void bp_verify_windows (struct bp_window *windows, size_t count);

/* The same without comparing: fill in COMPUTED. */
void bp_hash_windows (struct bp_window *windows, size_t count);

/* The digest of a window: SHA-256 of the digests of its blocks, one after
 * another.  It is no part of the tree: whoever has verified node 0 once can
 * keep 32 bytes a window of it, and needs no node the next time.
 *
 * Those of each window whose leaves are in a node 0: COUNT digests at
 * LEAVES.  Returns how many.
 */
enum {
  BP_NODE_WINDOWS = 16
}; /* Windows whose leaves fill a node. */
unsigned bp_window_digests (const uint8_t *leaves, uint32_t count,
                            struct bp_root digests[BP_NODE_WINDOWS]);

/* ---- Leaves ---- */

/* Verify LEN bytes at OFFSET (both multiples of BP_BLOCK_SIZE, but for
 * the end of the blob) against the whole list of COUNT leaves, which must
 * rebuild ROOT.  An empty list stands for one leaf equal to the root.
 * Returns 0; -EBADMSG (ret_bad_offset, if not NULL, gets the offset of
 * the first bad block); -EINVAL for an unaligned or outside range;
 * -EPROTO for a list of the wrong length or that does not rebuild ROOT.
 */
int bp_merkle_verify_leaves (const struct bp_root *root, uint64_t size,
                             const struct bp_root *leaves, size_t count,
                             uint64_t offset, const void *data, size_t len,
                             uint64_t *ret_bad_offset,
                             struct bp_error *err);

#endif /* BP_MERKLE_H */
