/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* SHA-256 of lists of messages.
 *
 * The messages of a list are hashed side by side where the CPU can: the
 * instructions of one message wait for each other, those of several do
 * not.  So whoever has more than one message hands over the list.  What
 * hashes is chosen at run time:
 *
 *   AVX-512   sixteen messages side by side (sha256-avx512.c), while so
 *             many are left of the list, or nearly
 *   SHA-NI    up to four (sha256-ni.c)
 *   OpenSSL   one after another: a single one, elsewhere, in FIPS mode,
 *             and when asked
 *
 * Threads: every function may be called from any thread at any time, but
 * for bp_sha256_use.
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

/* What hashes. */
enum bp_sha256_way {
  BP_SHA256_AUTO, /* The fastest there is; OpenSSL in FIPS mode. */
  BP_SHA256_OPENSSL,
  BP_SHA256_NI,     /* For tests: one of the two for everything, */
  BP_SHA256_AVX512, /* single messages, too. */
};

/* Choose.  Before anything is hashed and other threads start; without it,
 * it is AUTO.  Returns 0, or -EOPNOTSUPP if the CPU cannot.
 */
int bp_sha256_use (enum bp_sha256_way way);

/* What is in use, for people: "avx512+sha-ni", "openssl", … */
const char *bp_sha256_name (void);

#endif /* BP_SHA256_H */
