/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Verifying parts of a large blob: along the path of tree nodes to a
 * window, or against the whole list of leaves.
 *
 *   ROOT ─ verifies ▶ node of the top list ─ ▶ … ─ ▶ node 0 ─ ▶ blocks
 *
 * Nothing is used before it has been verified by what stands above it.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/range.h"
#include "lib/merkle-node.h"
#include "lib/merkle.h"

/* The digests of the blocks of LEN bytes at OFFSET of a blob, at most a
 * window.  Returns how many.
 */
static size_t
hash_blocks (uint64_t offset, const uint8_t *data, size_t len,
             uint8_t digests[BP_WINDOW_BLOCKS][BP_ROOT_SIZE])
{
  struct bp_sha256_job jobs[BP_WINDOW_BLOCKS];
  const size_t count =
    bp_leaf_jobs (offset, data, len, jobs, digests, BP_WINDOW_BLOCKS);

  bp_sha256_list (jobs, count);
  return count;
}

/* Compare the blocks of LEN bytes at OFFSET of a blob, at most a window,
 * with the digests at WANTED.  Returns 0 or -EBADMSG.
 */
static int
verify_blocks (uint64_t offset, const uint8_t *data, size_t len,
               const uint8_t *wanted, uint64_t *ret_bad_offset,
               struct bp_error *err)
{
  uint8_t digests[BP_WINDOW_BLOCKS][BP_ROOT_SIZE];
  const size_t count = hash_blocks (offset, data, len, digests);

  for (size_t i = 0; i < count; i++)
    if (memcmp (digests[i], wanted + i * BP_ROOT_SIZE, BP_ROOT_SIZE) != 0) {
      const uint64_t bad = offset + i * BP_BLOCK_SIZE;

      if (ret_bad_offset)
        *ret_bad_offset = bad;
      return bp_error_set (err, -EBADMSG,
                           "block %" PRIu64 " at offset %" PRIu64
                           ": digest mismatch",
                           bad / BP_BLOCK_SIZE, bad);
    }
  return 0;
}

/* Verify the tree node at BYTES by the digest its parent has of it. */
static int
verify_node (const struct bp_merkle_node *node, const uint8_t *bytes,
             const uint8_t *wanted, struct bp_error *err)
{
  uint8_t digest[BP_ROOT_SIZE];
  const struct bp_sha256_job job =
    bp_inner_job (node->level, node->first, bytes, node->count, digest);

  bp_sha256_list (&job, 1);
  if (memcmp (digest, wanted, BP_ROOT_SIZE) != 0)
    return bp_error_set (err, -EBADMSG,
                         "tree level %u, digests from %" PRIu64
                         ": digest mismatch",
                         node->level, node->first);
  return 0;
}

static bool
is_window (uint64_t size, uint64_t offset, size_t len)
{
  return size <= BP_BLOB_MAX_SIZE && offset % BP_WINDOW_SIZE == 0 &&
         offset <= size && len == MIN (size - offset, BP_WINDOW_SIZE) &&
         (len > 0 || size == 0);
}

int
bp_merkle_verify_window (const struct bp_root *root, uint64_t size,
                         uint64_t offset, const void *data, size_t len,
                         const uint8_t *const *nodes, struct bp_error *err)
{
  struct bp_merkle_node path[BP_MERKLE_MAX_LEVELS];
  const uint8_t *wanted = root->bytes;
  uint64_t index;
  unsigned level;

  if (!is_window (size, offset, len))
    return bp_error_set (err, -EINVAL,
                         "%zu bytes at offset %" PRIu64 ": no window", len,
                         offset);
  level = bp_merkle_path (size, offset, path);
  while (level > 0) {
    int r;

    level--;
    r = verify_node (&path[level], nodes[level], wanted, err);
    if (r < 0)
      return r;
    index = level > 0 ? path[level - 1].first / BP_NODE_DIGESTS
                      : offset / BP_BLOCK_SIZE;
    wanted = nodes[level] + (index - path[level].first) * BP_ROOT_SIZE;
  }
  return verify_blocks (offset, data, len, wanted, NULL, err);
}

/* ---- By the digest of a window ---- */

void
bp_window_digest (uint64_t offset, const void *data, size_t len,
                  struct bp_root *ret_digest)
{
  uint8_t digests[BP_WINDOW_BLOCKS][BP_ROOT_SIZE];
  const size_t count = hash_blocks (offset, data, len, digests);

  bp_sha256 (digests, count * BP_ROOT_SIZE, ret_digest->bytes);
}

unsigned
bp_window_digests (const uint8_t *leaves, uint32_t count,
                   struct bp_root digests[BP_NODE_WINDOWS])
{
  unsigned nr = 0;

  assert (count <= BP_NODE_DIGESTS);
  for (uint32_t i = 0; i < count; i += BP_WINDOW_BLOCKS)
    bp_sha256 (leaves + i * (size_t) BP_ROOT_SIZE,
               MIN (count - i, BP_WINDOW_BLOCKS) * (size_t) BP_ROOT_SIZE,
               digests[nr++].bytes);
  return nr;
}

/* ---- Against the leaves ---- */

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
