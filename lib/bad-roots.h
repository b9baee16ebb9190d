/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The blobs that a verification found corrupt or missing: a set of roots,
 * each with what is wrong with it.
 *
 * Threads: one.
 */
#ifndef BP_BAD_ROOTS_H
#define BP_BAD_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/merkle.h"

struct bad_root {
  struct bp_root root;
  int code;        /* Negative errno. */
  uint64_t offset; /* In the blob: its first window that is wrong. */
  bool is_reported;
};

struct bad_roots {
  struct bad_root *roots; /* In the order they were added. */
  size_t count, max;
  uint32_t *slots; /* 2 * max: number of a root plus 1, or 0. */
};

void bad_roots_done (struct bad_roots *bad);

/* The row of ROOT, or NULL; valid until the next is added. */
struct bad_root *bad_roots_find (const struct bad_roots *bad,
                                 const struct bp_root *root);

/* Add ROOT, which is not there.  NULL: out of memory. */
struct bad_root *bad_roots_add (struct bad_roots *bad,
                                const struct bp_root *root, int code,
                                uint64_t offset);

#endif /* BP_BAD_ROOTS_H */
