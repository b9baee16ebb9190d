/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Several messages hashed side by side, one a lane.  Private to
 * lib/sha256*.c.
 *
 * A kernel knows nothing of messages: it takes the state of every lane
 * through so many blocks of 64 bytes.  sha256_run cuts messages into runs
 * of blocks that lie one behind the other, and calls it for the shortest:
 *
 *   header ‖ data      |  block  |  …  |  block  | data ‖ zeros |  zeros …
 *   one block, copied     straight from the data   one, copied   no memory
 *
 * and at the end one or two with the padding.
 */
#ifndef BP_SHA256_LANES_H
#define BP_SHA256_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/sha256.h"

enum {
  SHA256_BLOCK_SIZE = 64,
  SHA256_WORDS = 8,      /* Of a state. */
  SHA256_ROUNDS = 64,    /* Of a block. */
  SHA256_MAX_LANES = 16, /* Of any kernel. */
};

/* What a kernel works on. */
struct sha256_lanes {
  /* Words a to h, each of all lanes: as AVX-512 wants them. */
  uint32_t state[SHA256_WORDS][SHA256_MAX_LANES];
  /* Where the blocks are; always something that can be read. */
  const uint8_t *blocks[SHA256_MAX_LANES];
};

struct sha256_kernel {
  unsigned max_lanes;
  bool (*is_supported) (void); /* By the CPU and the system. */
  /* Hash COUNT blocks of each of the first NR lanes; of the others, too, if
   * that is easier.
   */
  void (*hash_blocks) (struct sha256_lanes *lanes, unsigned nr,
                       size_t count);
  /* COUNT blocks of zeros in each.  All words of their message schedule
   * are zero, too, so it need not be computed.
   */
  void (*hash_zeros) (struct sha256_lanes *lanes, unsigned nr,
                      size_t count);
};

extern const struct sha256_kernel sha256_ni;
extern const struct sha256_kernel sha256_avx512;

/* The constants of the rounds (FIPS 180-4, 4.2.2). */
extern const uint32_t sha256_k[SHA256_ROUNDS];

/* is_supported of what is not compiled for this CPU. */
bool sha256_never_supported (void);

/* Hash COUNT messages, at most KERNEL's lanes, side by side. */
void sha256_run (const struct sha256_kernel *kernel,
                 const struct bp_sha256_job *jobs, unsigned count);

/* Hash COUNT messages through OpenSSL, one after another. */
void sha256_run_openssl (const struct bp_sha256_job *jobs, size_t count);
/* Whether OpenSSL has been told to use FIPS-approved code only. */
bool sha256_openssl_is_fips (void);

#endif /* BP_SHA256_LANES_H */
