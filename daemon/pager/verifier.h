/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The verifier: whether bytes that the driver sent are those that a root
 * names.  Nothing it has not passed leaves the fetcher.
 *
 * Threads: pure functions.
 */
#ifndef BP_VERIFIER_H
#define BP_VERIFIER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/merkle.h"

/* A window to verify. */
struct verify_job {
  const struct bp_root *root;
  uint64_t size;   /* Bytes of the blob. */
  uint64_t offset; /* Of the window, bytes; 0 for a blob of one. */
  const void *data;
  size_t len; /* Bytes of the window. */
  /* For a window of a larger blob: its digest, verified before, or NULL and
   * the nodes on the path from ROOT (bp_merkle_path), unverified.
   */
  const struct bp_root *digest;
  const uint8_t *const *nodes;
  int status; /* Filled in: 0 verified, or -EBADMSG. */
};

enum {
  VERIFY_BATCH = 8
}; /* Jobs of one list. */

/* Verify COUNT <= VERIFY_BATCH windows, as one list, so that their blocks
 * can be hashed side by side.
 */
void verify_list (struct verify_job *jobs, size_t count);

#endif /* BP_VERIFIER_H */
