/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Where things stand in an image index.  Private to lib/image-index*.c.
 *
 *   window 0           window E             window E + 1
 *   ┌──────┬───────    ──────┬──────────┐  ┌──────────────────┬─┐
 *   │header│ fences …  fences│ entries  │  │ entries          │0│ …
 *   └──────┴───────    ──────┴──────────┘  └──────────────────┴─┘
 *
 * Entry 0 stands behind the last fence, or at the start of the next
 * window if it does not fit there; E is its window.  Often E is 0.
 */
#ifndef BP_IMAGE_INDEX_LAYOUT_H
#define BP_IMAGE_INDEX_LAYOUT_H

#include <stdint.h>

#include "lib/base/range.h"
#include "lib/image-index.h"

enum {
  BP_INDEX_FENCE_SIZE = 8,
  /* Entries of a window that holds nothing else. */
  BP_INDEX_WINDOW_ENTRIES = BP_WINDOW_SIZE / BP_INDEX_ENTRY_SIZE,
  /* Offsets of the header's fields; 0 is the magic. */
  BP_INDEX_AT_IMAGE_SIZE = 8,
  BP_INDEX_AT_NR_ENTRIES = 16,
  BP_INDEX_AT_ENTRY_SIZE = 24,
  BP_INDEX_AT_NR_FENCES = 28,
  BP_INDEX_AT_ZEROS = 32,
  /* Offsets of an entry's fields; 0 is the image offset. */
  BP_INDEX_AT_LENGTH = 8,
  BP_INDEX_AT_FLAGS = 12,
  BP_INDEX_AT_ROOT = 16,
};
#define BP_INDEX_MAGIC "BPIMAGE1"
#define BP_INDEX_MAX_ENTRIES (BP_BLOB_MAX_SIZE / BP_INDEX_ENTRY_SIZE)

/* Where fence I stands in the blob. */
static inline uint64_t
bp_index_fence_at (uint64_t i)
{
  return BP_INDEX_HEADER_SIZE + i * BP_INDEX_FENCE_SIZE;
}

/* Where entry 0 stands in the blob, behind NR_FENCES fences. */
static inline uint64_t
bp_index_first_entry_at (uint64_t nr_fences)
{
  const uint64_t end = bp_index_fence_at (nr_fences);
  const uint64_t left = BP_WINDOW_SIZE - end % BP_WINDOW_SIZE;

  return left < BP_INDEX_ENTRY_SIZE ? end + left : end;
}

/* Window E. */
static inline uint64_t
bp_index_first_entry_window (const struct bp_index *index)
{
  return bp_index_first_entry_at (index->nr_fences) / BP_WINDOW_SIZE;
}

/* The entries that stand in a window. */
struct bp_index_run {
  uint64_t first; /* Number of the first. */
  uint32_t count; /* 0 in a window of fences. */
  uint32_t at;    /* Bytes from the window's start to the first. */
};

static inline struct bp_index_run
bp_index_run_of (const struct bp_index *index, uint64_t w)
{
  const uint64_t at = bp_index_first_entry_at (index->nr_fences);
  const uint64_t e = at / BP_WINDOW_SIZE;
  const uint64_t in_e =
    (BP_WINDOW_SIZE - at % BP_WINDOW_SIZE) / BP_INDEX_ENTRY_SIZE;
  struct bp_index_run run = { 0 };
  uint64_t room = in_e;

  if (w < e)
    return run;
  if (w == e) {
    run.at = (uint32_t) (at % BP_WINDOW_SIZE);
  }
  else {
    run.first = in_e + (w - e - 1) * BP_INDEX_WINDOW_ENTRIES;
    room = BP_INDEX_WINDOW_ENTRIES;
  }
  if (run.first < index->nr_entries)
    run.count = (uint32_t) MIN (index->nr_entries - run.first, room);
  return run;
}

#endif /* BP_IMAGE_INDEX_LAYOUT_H */
