/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The two kinds of node of a Merkle tree, as messages to hash.  Private to
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

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "lib/merkle.h"
#include "lib/sha256.h"

enum {
  BP_WINDOW_BLOCKS = BP_WINDOW_SIZE / BP_BLOCK_SIZE,
};

/* A node at LOCATION (its offset in its level, or'ed with the level): LEN
 * bytes at DATA, and zeros up to PADDED; LENGTH is what it says of itself.
 */
static inline struct bp_sha256_job
bp_node_job (uint64_t location, uint32_t length, const uint8_t *data,
             size_t len, size_t padded, uint8_t *digest)
{
  struct bp_sha256_job job = {
    .header_len = BP_SHA256_HEADER_MAX, /* u64 and u32. */
    .data = data,
    .len = len,
    .nr_zeros = padded - len,
    .digest = digest,
  };

  put_le64 (job.header, location);
  put_le32 (job.header + 8, length);
  return job;
}

/* The block of LEN bytes at DATA, at OFFSET of its blob. */
static inline struct bp_sha256_job
bp_leaf_job (uint64_t offset, const uint8_t *data, uint32_t len,
             uint8_t *digest)
{
  return bp_node_job (offset, len, data, len,
                      offset == 0 && len == 0 ? 0 : BP_BLOCK_SIZE, digest);
}

/* The blocks of LEN bytes at DATA, at OFFSET of their blob, as jobs that
 * hash them into DIGESTS; only the last may be short.  There is room for
 * MAX of them.  Returns how many there are: one for no bytes.
 */
static inline size_t
bp_leaf_jobs (uint64_t offset, const uint8_t *data, size_t len,
              struct bp_sha256_job *jobs, uint8_t (*digests)[BP_ROOT_SIZE],
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
static inline struct bp_sha256_job
bp_inner_job (unsigned level, uint64_t first, const uint8_t *digests,
              uint32_t count, uint8_t *digest)
{
  return bp_node_job (first * BP_ROOT_SIZE | (level + 1), BP_BLOCK_SIZE,
                      digests, (size_t) count * BP_ROOT_SIZE, BP_BLOCK_SIZE,
                      digest);
}

/* The digest of a window (bp_window_digests) that has COUNT leaves. */
static inline struct bp_sha256_job
bp_window_digest_job (const uint8_t *leaves, size_t count, uint8_t *digest)
{
  return (struct bp_sha256_job){
    .data = leaves,
    .len = count * BP_ROOT_SIZE,
    .digest = digest,
  };
}

/* Compare COUNT digests with those WANTED, one after another.  Returns the
 * number of the first that differs, or COUNT.
 */
size_t bp_digests_mismatch (const uint8_t (*digests)[BP_ROOT_SIZE],
                            const uint8_t *wanted, size_t count);

#endif /* BP_MERKLE_NODE_H */
