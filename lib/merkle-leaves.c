/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Verifying blocks of a blob against the whole list of its leaves.
 *
 * The leaves must rebuild the root before a block is compared with one.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/range.h"
#include "lib/merkle-node.h"
#include "lib/merkle.h"

/* Compare the blocks of LEN bytes at OFFSET of a blob, at most a window,
 * with the digests at WANTED.  Returns 0 or -EBADMSG.
 */
static int
verify_blocks (uint64_t offset, const uint8_t *data, size_t len,
               const uint8_t *wanted, uint64_t *ret_bad_offset,
               struct bp_error *err)
{
  uint8_t digests[BP_WINDOW_BLOCKS][BP_ROOT_SIZE];
  struct bp_sha256_job jobs[BP_WINDOW_BLOCKS];
  const size_t count =
    bp_leaf_jobs (offset, data, len, jobs, digests, BP_WINDOW_BLOCKS);
  uint64_t bad;

  bp_sha256_list (jobs, count);
  bad = bp_digests_mismatch (digests, wanted, count);
  if (bad == count)
    return 0;
  bad = offset / BP_BLOCK_SIZE + bad;
  if (ret_bad_offset)
    *ret_bad_offset = bad * BP_BLOCK_SIZE;
  return bp_error_set (err, -EBADMSG,
                       "block %" PRIu64 " at offset %" PRIu64
                       ": digest mismatch",
                       bad, bad * BP_BLOCK_SIZE);
}

/* Digest number INDEX of LEVEL's list (level 1 and up), rebuilt from the
 * leaves.  Recursion is as deep as the tree: at most four.
 */
static void
rebuild_digest (const struct bp_root *leaves, uint64_t size, unsigned level,
                uint64_t index, uint8_t *digest)
{
  const uint64_t first = index * BP_NODE_DIGESTS;
  const uint64_t left = bp_merkle_level_count (size, level - 1) - first;
  const uint32_t count = (uint32_t) MIN (left, BP_NODE_DIGESTS);
  uint8_t list[BP_BLOCK_SIZE];
  const uint8_t *digests = list;
  struct bp_sha256_job job;

  if (level == 1)
    digests = leaves[first].bytes;
  else
    for (uint32_t i = 0; i < count; i++)
      rebuild_digest (leaves, size, level - 1, first + i,
                      list + i * BP_ROOT_SIZE);
  job = bp_inner_job (level - 1, first, digests, count, digest);
  bp_sha256_list (&job, 1);
}

/* Returns 0 or -EPROTO. */
static int
check_leaves (const struct bp_root *root, uint64_t size,
              const struct bp_root *leaves, size_t count,
              struct bp_error *err)
{
  const unsigned nr_levels = bp_merkle_nr_levels (size);
  struct bp_root rebuilt;

  if (count == 0 && nr_levels == 0)
    return 0;
  if (count != bp_merkle_level_count (size, 0))
    return bp_error_set (err, -EPROTO,
                         "%zu leaves for a blob of %" PRIu64 " bytes",
                         count, size);
  if (nr_levels == 0)
    rebuilt = leaves[0];
  else
    rebuild_digest (leaves, size, nr_levels, 0, rebuilt.bytes);
  if (!bp_root_equal (&rebuilt, root))
    return bp_error_set (err, -EPROTO, "leaves do not rebuild the root");
  return 0;
}

int
bp_merkle_verify_leaves (const struct bp_root *root, uint64_t size,
                         const struct bp_root *leaves, size_t count,
                         uint64_t offset, const void *data, size_t len,
                         uint64_t *ret_bad_offset, struct bp_error *err)
{
  const struct bp_root *list = count > 0 ? leaves : root;
  size_t done = 0;
  int r;

  if (size > BP_BLOB_MAX_SIZE || !range_is_within (size, offset, len) ||
      offset % BP_BLOCK_SIZE != 0 ||
      (len % BP_BLOCK_SIZE != 0 && offset + len != size))
    return bp_error_set (err, -EINVAL,
                         "%zu bytes at offset %" PRIu64
                         ": not whole blocks inside the blob",
                         len, offset);
  r = check_leaves (root, size, leaves, count, err);
  if (r < 0)
    return r;
  if (size == 0)
    return verify_blocks (0, data, 0, list->bytes, ret_bad_offset, err);
  while (r == 0 && done < len) {
    const size_t n = MIN (len - done, BP_WINDOW_SIZE);
    const uint64_t at = offset + done;

    r = verify_blocks (at, (const uint8_t *) data + done, n,
                       list[at / BP_BLOCK_SIZE].bytes, ret_bad_offset, err);
    done += n;
  }
  return r;
}
