/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* SHA-256, in the two shapes the project needs: one message, and a list
 * of Merkle nodes.  The list is what a multi-buffer implementation can
 * interleave; OpenSSL does it one at a time.  Nothing outside sha256.c
 * knows which library hashes.
 *
 * Threads: every function may be called from any thread at any time.
 */
#ifndef BP_SHA256_H
#define BP_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum {
  BP_SHA256_SIZE = 32
};

/* One Merkle node: SHA-256 (u64 LOCATION, u32 LENGTH, LEN bytes of DATA,
 * zeros up to PADDED bytes of content).  PADDED is 8192, or 0 for the
 * empty blob.
 */
struct bp_node_job {
  uint64_t location;   /* Offset in its level, or'ed with the level. */
  uint32_t length;     /* The length that is hashed into the node. */
  uint32_t len;        /* Bytes at data; at most padded, or both 0. */
  uint32_t padded;     /* Bytes of content after padding. */
  const uint8_t *data; /* Borrowed. */
  uint8_t *digest;     /* BP_SHA256_SIZE bytes, written. */
};

/* Hash all COUNT jobs. */
void bp_sha256_nodes (const struct bp_node_job *jobs, size_t count);

/* Hash one message. */
void bp_sha256 (const void *data, size_t len,
                uint8_t digest[BP_SHA256_SIZE]);

#endif /* BP_SHA256_H */
