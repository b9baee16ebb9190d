/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Merkle trees: how roots are written, and the geometry of a tree, which
 * follows from the blob's size alone.  Hashing is in merkle-windows.c and
 * merkle-builder.c.
 *
 * Every function takes any u64 as size and cannot wrap: counts only
 * shrink from level to level.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>

#include "lib/base/hex.h"
#include "lib/base/range.h"
#include "lib/merkle-node.h"
#include "lib/merkle.h"

char *
bp_root_format (const struct bp_root *root, char out[BP_ROOT_HEX_SIZE])
{
  bp_hex_encode (root->bytes, sizeof root->bytes, out);
  return out;
}

int
bp_root_parse (const char *hex, struct bp_root *ret_root)
{
  struct bp_root root;

  if (!bp_hex_decode (hex, root.bytes, sizeof root.bytes))
    return -EINVAL;
  *ret_root = root;
  return 0;
}

uint64_t
bp_merkle_level_count (uint64_t size, unsigned level)
{
  uint64_t count = size > 0 ? div_round_up (size, BP_BLOCK_SIZE) : 1;

  for (unsigned i = 0; i < level; i++)
    count = div_round_up (count, BP_NODE_DIGESTS);
  return count;
}

unsigned
bp_merkle_nr_levels (uint64_t size)
{
  unsigned level = 0;

  while (bp_merkle_level_count (size, level) > 1)
    level++;
  return level;
}

uint64_t
bp_merkle_level_offset (uint64_t size, unsigned level)
{
  uint64_t offset = 0;

  for (unsigned i = 0; i < level; i++)
    offset += bp_merkle_level_count (size, i) * BP_ROOT_SIZE;
  return offset;
}

uint64_t
bp_nr_windows (uint64_t size)
{
  return size > 0 ? div_round_up (size, BP_WINDOW_SIZE) : 1;
}

bool
bp_is_window (uint64_t size, uint64_t offset, size_t len)
{
  return size <= BP_BLOB_MAX_SIZE && offset % BP_WINDOW_SIZE == 0 &&
         offset <= size && len == MIN (size - offset, BP_WINDOW_SIZE) &&
         (len > 0 || size == 0);
}

unsigned
bp_merkle_path (uint64_t size, uint64_t offset,
                struct bp_merkle_node nodes[BP_MERKLE_MAX_LEVELS])
{
  const unsigned nr_levels = bp_merkle_nr_levels (size);
  uint64_t index = offset / BP_BLOCK_SIZE;

  assert (nr_levels <= BP_MERKLE_MAX_LEVELS);
  for (unsigned level = 0; level < nr_levels; level++) {
    const uint64_t first = round_down (index, BP_NODE_DIGESTS);
    const uint64_t left = bp_merkle_level_count (size, level) - first;

    nodes[level] = (struct bp_merkle_node){
      .level = level,
      .first = first,
      .count = (uint32_t) MIN (left, BP_NODE_DIGESTS),
    };
    index /= BP_NODE_DIGESTS;
  }
  return nr_levels;
}
