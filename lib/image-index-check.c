/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The check of one window of an image index, made once after its digest
 * has been verified.  What passes can be searched and used without any
 * further check; every byte of the window is looked at.
 *
 * A window may hold, in this order: the header (window 0), fences,
 * entries, and zeros where no further entry fits.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>

#include "lib/base/bytes.h"
#include "lib/image-index-layout.h"
#include "lib/segmenter.h"

static int
malformed (struct bp_error *err, uint64_t w, const char *what)
{
  return bp_error_set (err, -EPROTO, "image index: window %" PRIu64 ": %s",
                       w, what);
}

/* ---- Fences ---- */

static bool
is_segment_offset (const struct bp_index *index, uint64_t offset)
{
  return offset % BP_SEGMENT_BLOCK == 0 && offset < index->image_size;
}

/* Fence I, with the one before it in the same window (NULL: none). */
static bool
is_fence (const struct bp_index *index, uint64_t i, uint64_t fence,
          const uint64_t *before)
{
  const uint64_t e = bp_index_first_entry_window (index);

  if (i + 1 < e) /* Its window holds only fences. */
    return fence == 0;
  return is_segment_offset (index, fence) &&
         (i + 1 == e || before == NULL || *before < fence);
}

/* The fences that stand in window W.  *RET_END is where they end, as
 * bytes from the window's start.
 */
static int
check_fences (const struct bp_index *index, uint64_t w,
              const uint8_t *window, size_t *ret_end, struct bp_error *err)
{
  const uint64_t start = w * BP_WINDOW_SIZE;
  const uint64_t from = w == 0 ? BP_INDEX_HEADER_SIZE : start;
  const uint64_t to =
    MIN (start + BP_WINDOW_SIZE, bp_index_fence_at (index->nr_fences));
  uint64_t before, fence;

  *ret_end = from - start;
  for (uint64_t at = from; at < to; at += BP_INDEX_FENCE_SIZE) {
    const uint64_t i = (at - BP_INDEX_HEADER_SIZE) / BP_INDEX_FENCE_SIZE;

    fence = get_le64 (window + (at - start));
    if (!is_fence (index, i, fence, at == from ? NULL : &before))
      return malformed (err, w, "malformed fence");
    before = fence;
    *ret_end = at + BP_INDEX_FENCE_SIZE - start;
  }
  return 0;
}

/* ---- Entries ---- */

/* Check ENTRY, which must start at or behind MIN.  *RET_END is its end. */
static int
check_entry (const struct bp_index *index, uint64_t w, const uint8_t *entry,
             uint64_t min, uint64_t *ret_end, struct bp_error *err)
{
  const uint64_t offset = get_le64 (entry);
  const uint32_t len = get_le32 (entry + BP_INDEX_AT_LENGTH);

  if (offset % BP_SEGMENT_BLOCK != 0)
    return malformed (err, w, "entry at an unaligned offset");
  if (len == 0 || len > BP_SEGMENT_MAX)
    return malformed (err, w, "entry of an impossible length");
  if (!range_is_within (index->image_size, offset, len))
    return malformed (err, w, "entry outside the image");
  if (len % BP_SEGMENT_BLOCK != 0 && offset + len != index->image_size)
    return malformed (err, w, "entry of an unaligned length");
  if (get_le32 (entry + BP_INDEX_AT_FLAGS) != 0)
    return malformed (err, w, "entry with unknown flags");
  if (offset < min)
    return malformed (err, w, "entries overlap or do not ascend");
  *ret_end = offset + len;
  return 0;
}

static int
check_run (const struct bp_index *index, uint64_t w, const uint8_t *window,
           const struct bp_index_run *run, uint64_t *ret_end,
           struct bp_error *err)
{
  uint64_t end = 0;

  for (uint32_t i = 0; i < run->count; i++) {
    const uint8_t *entry =
      window + run->at + (size_t) i * BP_INDEX_ENTRY_SIZE;
    const int r = check_entry (index, w, entry, end, &end, err);

    if (r < 0)
      return r;
  }
  *ret_end = end;
  return 0;
}

/* The window's first entry and the end of its last against the fences. */
static int
check_against_fences (const struct bp_index *index, uint64_t w,
                      uint64_t first_offset, uint64_t end,
                      uint64_t first_fence, uint64_t next_fence,
                      struct bp_error *err)
{
  if (w > 0 && first_offset != first_fence)
    return malformed (err, w, "first entry is not at its fence");
  if (w < index->nr_fences && end > next_fence)
    return malformed (err, w, "last entry reaches past the fence");
  return 0;
}

int
bp_index_check_window (const struct bp_index *index, uint64_t w,
                       const uint8_t *window, size_t len,
                       uint64_t first_fence, uint64_t next_fence,
                       struct bp_error *err)
{
  const struct bp_index_run run = bp_index_run_of (index, w);
  size_t fences_end, rest;
  uint64_t end = 0;
  int r;

  if (w > index->nr_fences ||
      len != MIN (index->blob_size - w * BP_WINDOW_SIZE, BP_WINDOW_SIZE))
    return malformed (err, w, "wrong length");
  r = check_fences (index, w, window, &fences_end, err);
  if (r == 0)
    r = check_run (index, w, window, &run, &end, err);
  if (r < 0)
    return r;

  /* Entries follow fences, if there are both. */
  rest = (run.count > 0 ? run.at : fences_end) +
         (size_t) run.count * BP_INDEX_ENTRY_SIZE;
  if (!bytes_are_zero (window + rest, len - rest))
    return malformed (err, w, "bytes behind the entries are not zero");
  if (run.count == 0)
    return w > 0 && first_fence != 0
             ? malformed (err, w, "has a fence but no entries")
             : 0;
  return check_against_fences (index, w, get_le64 (window + run.at), end,
                               first_fence, next_fence, err);
}
