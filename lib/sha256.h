/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* SHA-256 of lists of messages.
 *
 * Whoever has more than one message hands over the list: an implementation
 * may hash several side by side.  OpenSSL does it one at a time.  Nothing
 * outside lib/sha256*.c knows what hashes.
 *
 * Threads: every function may be called from any thread at any time.
 */
#ifndef BP_SHA256_H
#define BP_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum {
  BP_SHA256_SIZE = 32,
  BP_SHA256_HEADER_MAX = 12,
};

/* One message: a header, data, and zeros, one behind the other. */
struct bp_sha256_job {
  uint8_t header[BP_SHA256_HEADER_MAX];
  uint32_t header_len; /* Bytes of it; 0: none. */
  const uint8_t *data; /* Borrowed. */
  size_t len;          /* Bytes at data. */
  size_t nr_zeros;     /* Bytes of zeros behind them. */
  uint8_t *digest;     /* BP_SHA256_SIZE bytes, written. */
};

/* Hash all COUNT messages.  No data may depend on a digest of the list. */
void bp_sha256_list (const struct bp_sha256_job *jobs, size_t count);

/* Hash one. */
void bp_sha256 (const void *data, size_t len,
                uint8_t digest[BP_SHA256_SIZE]);

#endif /* BP_SHA256_H */
