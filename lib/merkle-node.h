/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The two kinds of node of a Merkle tree, as hashing jobs.  Private to
 * lib/merkle*.c.
 *
 * A leaf hashes a block with its true length, so "N bytes" and "N bytes
 * and zeros" differ.  An inner node always hashes the length 8192, as if
 * its list of digests were padded.  The empty blob alone is not padded.
 */
#ifndef BP_MERKLE_NODE_H
#define BP_MERKLE_NODE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/range.h"
#include "lib/merkle.h"
#include "lib/sha256.h"

enum {
  BP_WINDOW_BLOCKS = BP_WINDOW_SIZE / BP_BLOCK_SIZE,
};

/* The block of LEN bytes at DATA, at OFFSET of its blob. */
static inline struct bp_node_job
bp_leaf_job (uint64_t offset, const uint8_t *data, uint32_t len,
             uint8_t *digest)
{
  return (struct bp_node_job){
    .location = offset,
    .length = len,
    .len = len,
    .padded = offset == 0 && len == 0 ? 0 : BP_BLOCK_SIZE,
    .data = data,
    .digest = digest,
  };
}

/* The blocks of LEN bytes at DATA, at OFFSET of their blob, as jobs that
 * hash them into DIGESTS; only the last may be short.  There is room for
 * MAX of them.  Returns how many there are: one for no bytes.
 */
static inline size_t
bp_leaf_jobs (uint64_t offset, const uint8_t *data, size_t len,
              struct bp_node_job *jobs, uint8_t (*digests)[BP_ROOT_SIZE],
              size_t max)
{
  size_t count = 0, done = 0;

  do {
    const uint32_t n = (uint32_t) MIN (len - done, BP_BLOCK_SIZE);

    assert (count < max);
    jobs[count] =
      bp_leaf_job (offset + done, data + done, n, digests[count]);
    count++;
    done += n;
  } while (done < len);
  return count;
}

/* COUNT digests, number FIRST and up of LEVEL's list. */
static inline struct bp_node_job
bp_inner_job (unsigned level, uint64_t first, const uint8_t *digests,
              uint32_t count, uint8_t *digest)
{
  return (struct bp_node_job){
    .location = first * BP_ROOT_SIZE | (level + 1),
    .length = BP_BLOCK_SIZE,
    .len = count * BP_ROOT_SIZE,
    .padded = BP_BLOCK_SIZE,
    .data = digests,
    .digest = digest,
  };
}

#endif /* BP_MERKLE_NODE_H */
