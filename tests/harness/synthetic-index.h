/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* For tests: an image index of any size whose windows are made when they
 * are asked for, by rules of this file's own, from a regular image:
 * segment I is 4096 bytes at 8192 I + 4096, the rest are holes.
 */
#ifndef BP_TEST_SYNTHETIC_INDEX_H
#define BP_TEST_SYNTHETIC_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "lib/image-index.h"

enum {
  SYNTHETIC_MOST_WINDOWS = 64
};

struct synthetic_index {
  struct bp_index index;
  size_t nr_windows; /* Made so far: how many windows were asked for. */
  uint64_t numbers[SYNTHETIC_MOST_WINDOWS];
  uint8_t *windows[SYNTHETIC_MOST_WINDOWS];
};

void synthetic_index_init (struct synthetic_index *synthetic,
                           uint64_t nr_entries);

/* A bp_index_window_fn; never NULL.  At most SYNTHETIC_MOST_WINDOWS
 * different windows until the next synthetic_index_forget.
 */
const uint8_t *synthetic_index_window (void *opaque, uint64_t w);

/* Bytes of window W. */
size_t synthetic_index_window_len (const struct synthetic_index *synthetic,
                                   uint64_t w);

/* Where segment I starts in the image. */
uint64_t synthetic_index_offset (uint64_t i);
struct bp_root synthetic_index_root (uint64_t i);

/* Free all windows, and start counting at 0. */
void synthetic_index_forget (struct synthetic_index *synthetic);

#endif /* BP_TEST_SYNTHETIC_INDEX_H */
