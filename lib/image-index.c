/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The image index: its geometry, its header, and the lookup.
 *
 * A lookup searches the fences for the window, then the window for the
 * entry.  It asks for as few windows as it can: the fences in window 0
 * are tried first, so another window of fences is read only if the offset
 * lies behind all of those.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/image-index-layout.h"

/* ---- Geometry ---- */

/* The blob's size with NR_FENCES fences, right or not. */
static uint64_t
size_with_fences (uint64_t nr_entries, uint64_t nr_fences)
{
  const uint64_t at = bp_index_first_entry_at (nr_fences);
  const uint64_t room =
    (BP_WINDOW_SIZE - at % BP_WINDOW_SIZE) / BP_INDEX_ENTRY_SIZE;
  uint64_t rest, last;

  if (nr_entries == 0)
    return bp_index_fence_at (nr_fences);
  if (nr_entries <= room)
    return at + nr_entries * BP_INDEX_ENTRY_SIZE;
  rest = nr_entries - room;
  last = (rest - 1) / BP_INDEX_WINDOW_ENTRIES; /* Whole windows of rest. */
  return round_down (at, BP_WINDOW_SIZE) + (1 + last) * BP_WINDOW_SIZE +
         (rest - last * BP_INDEX_WINDOW_ENTRIES) * BP_INDEX_ENTRY_SIZE;
}

/* The least fixed point of "windows needed for F fences, less one".  More
 * fences never need fewer windows, so stepping up from 0 finds it.
 */
uint32_t
bp_index_nr_fences (uint64_t nr_entries)
{
  uint64_t nr_fences = 0, next;

  assert (nr_entries <= BP_INDEX_MAX_ENTRIES);
  for (;;) {
    next = bp_nr_windows (size_with_fences (nr_entries, nr_fences)) - 1;
    if (next == nr_fences)
      return (uint32_t) nr_fences;
    nr_fences = next;
  }
}

uint64_t
bp_index_blob_size (uint64_t nr_entries)
{
  return size_with_fences (nr_entries, bp_index_nr_fences (nr_entries));
}

/* ---- The header ---- */

static int
check_counts (const struct bp_index *index, struct bp_error *err)
{
  if (index->image_size > BP_IMAGE_MAX_SIZE)
    return bp_error_set (err, -EPROTO,
                         "image index: image size %" PRIu64
                         " is above the limit",
                         index->image_size);
  if (index->nr_entries > BP_INDEX_MAX_ENTRIES ||
      index->nr_entries > div_round_up (index->image_size, 4096))
    return bp_error_set (err, -EPROTO,
                         "image index: impossible entry count %" PRIu64,
                         index->nr_entries);
  if (index->nr_fences != bp_index_nr_fences (index->nr_entries))
    return bp_error_set (err, -EPROTO,
                         "image index: %u fences for %" PRIu64 " entries",
                         index->nr_fences, index->nr_entries);
  if (index->blob_size != bp_index_blob_size (index->nr_entries))
    return bp_error_set (err, -EPROTO,
                         "image index: %" PRIu64 " bytes for %" PRIu64
                         " entries",
                         index->blob_size, index->nr_entries);
  return 0;
}

int
bp_index_decode_header (const uint8_t *window, size_t len,
                        uint64_t blob_size, struct bp_index *ret_index,
                        struct bp_error *err)
{
  struct bp_index index;
  int r;

  if (blob_size < BP_INDEX_HEADER_SIZE ||
      len != MIN (blob_size, BP_WINDOW_SIZE))
    return bp_error_set (err, -EPROTO, "image index: too short");
  if (memcmp (window, BP_INDEX_MAGIC, strlen (BP_INDEX_MAGIC)) != 0)
    return bp_error_set (err, -EPROTO, "image index: wrong magic");
  if (get_le32 (window + BP_INDEX_AT_ENTRY_SIZE) != BP_INDEX_ENTRY_SIZE ||
      !bytes_are_zero (window + BP_INDEX_AT_ZEROS,
                       BP_INDEX_HEADER_SIZE - BP_INDEX_AT_ZEROS))
    return bp_error_set (err, -EPROTO, "image index: malformed header");

  index = (struct bp_index){
    .image_size = get_le64 (window + BP_INDEX_AT_IMAGE_SIZE),
    .nr_entries = get_le64 (window + BP_INDEX_AT_NR_ENTRIES),
    .nr_fences = get_le32 (window + BP_INDEX_AT_NR_FENCES),
    .blob_size = blob_size,
  };
  r = check_counts (&index, err);
  if (r < 0)
    return r;
  *ret_index = index;
  return 0;
}

/* ---- Lookup ---- */

/* Whose windows a lookup reads. */
struct source {
  bp_index_window_fn get;
  void *opaque;
  uint64_t *ret_missing;
};

static int
get_window (const struct source *source, uint64_t w,
            const uint8_t **ret_window)
{
  *ret_window = source->get (source->opaque, w);
  if (*ret_window)
    return 0;
  *source->ret_missing = w;
  return -EAGAIN;
}

static int
get_fence (const struct source *source, uint64_t i, uint64_t *ret_fence)
{
  const uint64_t at = bp_index_fence_at (i);
  const uint8_t *window;
  const int r = get_window (source, at / BP_WINDOW_SIZE, &window);

  if (r < 0)
    return r;
  *ret_fence = get_le64 (window + at % BP_WINDOW_SIZE);
  return 0;
}

int
bp_index_fences_of (const struct bp_index *index, bp_index_window_fn get,
                    void *opaque, uint64_t w, uint64_t *ret_first,
                    uint64_t *ret_next, uint64_t *ret_missing)
{
  const struct source source = { get, opaque, ret_missing };
  uint64_t first = 0, next = 0;
  int r = 0;

  if (w > 0 && w <= index->nr_fences)
    r = get_fence (&source, w - 1, &first);
  if (r == 0 && w < index->nr_fences)
    r = get_fence (&source, w, &next);
  if (r < 0)
    return r;
  *ret_first = first;
  *ret_next = next;
  return 0;
}

/* Which fence to compare next, of LO … HI - 1: if these lie on both sides
 * of window 0's end, its last one.
 */
static uint64_t
choose_fence (uint64_t lo, uint64_t hi)
{
  const uint64_t in_window_0 =
    (BP_WINDOW_SIZE - BP_INDEX_HEADER_SIZE) / BP_INDEX_FENCE_SIZE;

  return lo < in_window_0 && hi > in_window_0 ? in_window_0 - 1
                                              : lo + (hi - lo) / 2;
}

/* The window whose entries are the last to start at or before OFFSET, and
 * the fence behind it: the first that lies behind OFFSET, or the image's
 * end.
 */
static int
find_window (const struct bp_index *index, const struct source *source,
             uint64_t offset, uint64_t *ret_w, uint64_t *ret_next)
{
  uint64_t lo = bp_index_first_entry_window (index);
  uint64_t hi = index->nr_fences;
  uint64_t next = index->image_size;

  while (lo < hi) {
    const uint64_t mid = choose_fence (lo, hi);
    uint64_t fence;
    const int r = get_fence (source, mid, &fence);

    if (r < 0)
      return r;
    if (fence <= offset) {
      lo = mid + 1;
    }
    else {
      hi = mid;
      next = fence;
    }
  }
  *ret_w = lo;
  *ret_next = next;
  return 0;
}

/* How many of the window's entries start at or before OFFSET. */
static uint32_t
count_before (const uint8_t *entries, uint32_t count, uint64_t offset)
{
  uint32_t lo = 0, hi = count;

  while (lo < hi) {
    const uint32_t mid = lo + (hi - lo) / 2;

    if (get_le64 (entries + (size_t) mid * BP_INDEX_ENTRY_SIZE) <= offset)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

static struct bp_extent
hole (uint64_t offset, uint64_t end)
{
  return (struct bp_extent){
    .offset = offset,
    .len = end - offset,
    .is_hole = true,
  };
}

/* The rest of the segment at ENTRY from OFFSET, which lies inside it. */
static struct bp_extent
segment (const uint8_t *entry, uint64_t offset)
{
  const uint64_t start = get_le64 (entry);
  const uint32_t len = get_le32 (entry + BP_INDEX_AT_LENGTH);
  struct bp_extent extent = {
    .offset = offset,
    .len = start + len - offset,
    .blob_len = len,
    .blob_offset = (uint32_t) (offset - start),
    .segment_offset = start,
  };

  memcpy (extent.root.bytes, entry + BP_INDEX_AT_ROOT, BP_ROOT_SIZE);
  return extent;
}

/* Is OFFSET, which is not before ENTRY, in its segment? */
static bool
is_inside (const uint8_t *entry, uint64_t offset)
{
  return offset - get_le64 (entry) < get_le32 (entry + BP_INDEX_AT_LENGTH);
}

/* What the window's RUN says from OFFSET on; NEXT is where what it knows
 * ends.  Returns how many of MAX extents that are.
 */
static size_t
find_in_window (const uint8_t *window, const struct bp_index_run *run,
                uint64_t offset, uint64_t next, struct bp_extent *extents,
                size_t max)
{
  const uint8_t *entries = window + run->at;
  uint32_t n = count_before (entries, run->count, offset);
  size_t i;

  for (i = 0; i < max && offset < next; i++) {
    const uint8_t *behind = entries + (size_t) n * BP_INDEX_ENTRY_SIZE;

    if (n > 0 && is_inside (behind - BP_INDEX_ENTRY_SIZE, offset))
      extents[i] = segment (behind - BP_INDEX_ENTRY_SIZE, offset);
    else
      extents[i] = hole (offset, n < run->count ? get_le64 (behind) : next);
    offset += extents[i].len;
    if (n < run->count && get_le64 (behind) == offset)
      n++;
  }
  return i;
}

int
bp_index_lookup_some (const struct bp_index *index, bp_index_window_fn get,
                      void *opaque, uint64_t offset,
                      struct bp_extent *extents, size_t max,
                      size_t *ret_count, uint64_t *ret_missing)
{
  const struct source source = { get, opaque, ret_missing };
  const uint8_t *window;
  struct bp_index_run run;
  uint64_t w, next;
  int r;

  if (offset >= index->image_size)
    return -EINVAL;
  if (index->nr_entries == 0) {
    extents[0] = hole (offset, index->image_size);
    *ret_count = 1;
    return 0;
  }
  r = find_window (index, &source, offset, &w, &next);
  if (r == 0)
    r = get_window (&source, w, &window);
  if (r < 0)
    return r;
  run = bp_index_run_of (index, w);
  /* A fence at or before OFFSET led here: so must the first entry be. */
  if (w > bp_index_first_entry_window (index) &&
      get_le64 (window + run.at) > offset)
    return -EPROTO;
  *ret_count = find_in_window (window, &run, offset, next, extents, max);
  return 0;
}

int
bp_index_lookup (const struct bp_index *index, bp_index_window_fn get,
                 void *opaque, uint64_t offset,
                 struct bp_extent *ret_extent, uint64_t *ret_missing)
{
  size_t count;

  return bp_index_lookup_some (index, get, opaque, offset, ret_extent, 1,
                               &count, ret_missing);
}
