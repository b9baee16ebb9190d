/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A storm of clients: what its kinds share.
 *
 * Threads: each client is a thread, which lives one connection after
 * another until the storm is over.
 */
#ifndef BP_TEST_STORM_H
#define BP_TEST_STORM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/vectors.h"

enum {
  /* A good client is answered within this, whatever the others do. */
  STORM_TIMEOUT_S = 60
};

/* Const but for the atomics. */
struct storm {
  const char *path;     /* Of the server's socket. */
  const char *export;   /* The image that is served; */
  const uint8_t *image; /* its bytes; */
  uint64_t size;        /* its length in bytes; */
  uint64_t hot_bytes;   /* most reads fall into so many of the first. */

  atomic_bool is_over;
  _Atomic uint64_t nr_reads;   /* Answered, and compared. */
  _Atomic uint64_t bytes;      /* Compared. */
  _Atomic uint64_t longest_ns; /* That a good client waited for a batch. */
};

/* Below N, at random but reproducibly.  STATE is of one thread. */
static inline uint64_t
roll (uint64_t *state, uint64_t n)
{
  return splitmix64 (state) % n;
}

/* One connection. */
typedef void (*storm_client_fn) (struct storm *storm, uint64_t *chance);

/* Reads at random, and compares every byte; ends the program if one is
 * wrong, or does not come.
 */
void storm_good_client (struct storm *storm, uint64_t *chance);

/* Asks and does not read, or reads a byte a second, or stops in the middle
 * of what it says.
 */
void storm_stalled_client (struct storm *storm, uint64_t *chance);

/* Says what the protocol forbids. */
void storm_malformed_client (struct storm *storm, uint64_t *chance);

#endif /* BP_TEST_STORM_H */
