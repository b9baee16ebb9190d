/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Image indexes: geometry, writing, and lookups, which read only the
 * windows that they need.
 */
#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <criterion/criterion.h>

#include "harness/image.h"
#include "harness/synthetic-index.h"
#include "harness/vectors.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/image-index.h"

enum {
  WINDOW = BP_WINDOW_SIZE
};

/* Entry counts with 0, 1, 2 and many fences; with fences in more windows
 * than the first, where entry 0 does not fit behind the last fence, and
 * the largest.
 */
static const uint64_t counts[] = {
  0,
  1,
  2729,
  2730,
  5459,
  5460,
  100000,
  UINT64_C (16370) * 2730,
  UINT64_C (16373) * 2730,
  UINT64_C (16376) * 2730,
  60000000,
  UINT64_C (5000000000),
};

/* ---- Geometry ---- */

/* Windows that COUNT entries behind NR_FENCES fences take, counted by
 * walking through them.
 */
static uint64_t
windows_by_walking (uint64_t count, uint64_t nr_fences)
{
  uint64_t at = 64 + 8 * nr_fences;

  while (count > 0) {
    const uint64_t room = (WINDOW - at % WINDOW) / 48;

    if (count <= room) {
      at += 48 * count;
      break;
    }
    count -= room;
    at = round_down (at, WINDOW) + WINDOW;
  }
  return div_round_up (at, WINDOW);
}

Test (image_index, fences_are_one_fewer_than_windows_and_as_few_as_can_be)
{
  for (size_t i = 0; i < ARRAY_LEN (counts); i++) {
    const uint64_t f = bp_index_nr_fences (counts[i]);

    cr_assert_eq (windows_by_walking (counts[i], f), f + 1, "%ju entries",
                  (uintmax_t) counts[i]);
    cr_assert_eq (bp_nr_windows (bp_index_blob_size (counts[i])), f + 1);
    for (uint64_t less = f > 3 ? f - 3 : 0; less < f; less++)
      cr_assert_neq (windows_by_walking (counts[i], less), less + 1,
                     "%ju entries", (uintmax_t) counts[i]);
  }
}

Test (image_index, fence_counts_are_those_worked_out_by_hand)
{
  cr_assert_eq (bp_index_nr_fences (0), 0);
  cr_assert_eq (bp_index_nr_fences (2729), 0);
  cr_assert_eq (bp_index_nr_fences (2730), 1);
  cr_assert_eq (bp_index_nr_fences (5459), 1);
  cr_assert_eq (bp_index_nr_fences (5460), 2);
  cr_assert_eq (bp_index_blob_size (0), 64);
  cr_assert_eq (bp_index_blob_size (2729), 64 + 2729 * 48);
  cr_assert_eq (bp_index_blob_size (2730), WINDOW + 48);
}

/* ---- Lookups ---- */

/* Assert that the whole of segment I, and the hole behind it, is found. */
static void
assert_finds_segment (struct synthetic_index *synthetic, uint64_t i)
{
  const struct bp_root root = synthetic_index_root (i);
  const uint64_t offset = synthetic_index_offset (i);
  struct bp_extent extent;
  uint64_t missing;

  cr_assert_eq (bp_index_lookup (&synthetic->index, synthetic_index_window,
                                 synthetic, offset + 10, &extent, &missing),
                0);
  cr_assert (!extent.is_hole, "segment %ju", (uintmax_t) i);
  cr_assert_eq (extent.offset, offset + 10);
  cr_assert_eq (extent.len, 4086);
  cr_assert_eq (extent.blob_len, 4096);
  cr_assert_eq (extent.blob_offset, 10);
  cr_assert_eq (extent.segment_offset, offset);
  cr_assert (bp_root_equal (&extent.root, &root));
}

static void
assert_finds_hole (struct synthetic_index *synthetic, uint64_t i)
{
  const uint64_t end = synthetic_index_offset (i) + 4096;
  struct bp_extent extent;
  uint64_t missing;

  cr_assert_eq (bp_index_lookup (&synthetic->index, synthetic_index_window,
                                 synthetic, end, &extent, &missing),
                0);
  cr_assert (extent.is_hole, "hole behind segment %ju", (uintmax_t) i);
  cr_assert_eq (extent.offset, end);
  cr_assert_eq (extent.len, 4096);
}

/* The most windows that a lookup may need: window 0, one of entries, and
 * as many of fences as halving takes where there are more than two.
 */
static size_t
most_windows (const struct bp_index *index)
{
  uint64_t more = 8 * (uint64_t) index->nr_fences / WINDOW;
  size_t most = index->nr_fences > 0 ? 2 : 1;

  for (; more > 0; more /= 2)
    most++;
  return most;
}

static void
assert_lookups (uint64_t nr_entries)
{
  struct synthetic_index synthetic;
  uint64_t state = nr_entries;

  synthetic_index_init (&synthetic, nr_entries);
  for (int round = 0; round < 60; round++) {
    uint64_t i = splitmix64 (&state) % nr_entries;

    if (round < 4) /* Both ends, too. */
      i = round % 2 ? nr_entries - 1 - (uint64_t) round / 2
                    : (uint64_t) round / 2;
    if (i >= nr_entries)
      continue;
    assert_finds_segment (&synthetic, i);
    assert_finds_hole (&synthetic, i);
    cr_assert_leq (synthetic.nr_windows, most_windows (&synthetic.index),
                   "%zu windows for one of %ju segments",
                   synthetic.nr_windows, (uintmax_t) nr_entries);
    synthetic_index_forget (&synthetic);
  }
}

Test (image_index, lookups_find_segments_and_holes_in_the_fewest_windows)
{
  for (size_t i = 0; i < ARRAY_LEN (counts); i++)
    if (counts[i] > 0)
      assert_lookups (counts[i]);
}

Test (image_index, one_window_more_than_the_first_is_enough_up_to_2_tib)
{
  struct synthetic_index synthetic;

  /* 64 KiB a segment: 2 TiB are 2^25 of them. */
  synthetic_index_init (&synthetic, UINT64_C (1) << 25);
  assert_finds_segment (&synthetic, 20000000);
  cr_assert_eq (synthetic.nr_windows, 2);
  synthetic_index_forget (&synthetic);
}

Test (image_index, two_windows_more_are_enough_beyond_2_tib)
{
  struct synthetic_index synthetic;

  synthetic_index_init (&synthetic, 60000000);
  cr_assert_gt (synthetic.index.nr_fences, 16384 + 1000);
  for (uint64_t i = 0; i < 60000000; i += 999983) {
    assert_finds_segment (&synthetic, i);
    cr_assert_leq (synthetic.nr_windows, 3);
    synthetic_index_forget (&synthetic);
  }
}

Test (image_index, what_the_fences_of_window_0_decide_needs_no_others)
{
  struct synthetic_index synthetic;

  /* Most fences stand in windows 1 and 2. */
  synthetic_index_init (&synthetic, UINT64_C (40000) * 2730);
  cr_assert_gt (synthetic.index.nr_fences, 40000);
  for (uint64_t i = 0; i < UINT64_C (16300) * 2730; i += 999983) {
    assert_finds_segment (&synthetic, i);
    cr_assert_eq (synthetic.nr_windows, 2);
    synthetic_index_forget (&synthetic);
  }
}

Test (image_index, the_hole_between_windows_reaches_to_the_next_fence)
{
  struct synthetic_index synthetic;

  synthetic_index_init (&synthetic, 6000);
  assert_finds_hole (&synthetic, 2728); /* The last in window 0 … */
  cr_assert_eq (synthetic.nr_windows, 1);
  assert_finds_segment (&synthetic, 2729); /* … the first in window 1. */
  synthetic_index_forget (&synthetic);
}

Test (image_index, the_hole_before_the_first_segment_is_found)
{
  struct synthetic_index synthetic;
  struct bp_extent extent;
  uint64_t missing;

  for (size_t i = 0; i < ARRAY_LEN (counts); i++) {
    synthetic_index_init (&synthetic, counts[i]);
    cr_assert_eq (bp_index_lookup (&synthetic.index, synthetic_index_window,
                                   &synthetic, 0, &extent, &missing),
                  0);
    cr_assert (extent.is_hole);
    cr_assert_eq (extent.len, 4096);
    synthetic_index_forget (&synthetic);
  }
}

Test (image_index, an_offset_outside_the_image_is_the_callers_mistake)
{
  struct synthetic_index synthetic;
  struct bp_extent extent;
  uint64_t missing;

  synthetic_index_init (&synthetic, 3);
  cr_assert_eq (bp_index_lookup (&synthetic.index, synthetic_index_window,
                                 &synthetic, synthetic.index.image_size,
                                 &extent, &missing),
                -EINVAL);
  cr_assert_eq (synthetic.nr_windows, 0);
}

/* ---- Windows that are not at hand ---- */

/* Gives windows of SYNTHETIC that were fetched before. */
struct fetched {
  struct synthetic_index *synthetic;
  uint64_t numbers[SYNTHETIC_MOST_WINDOWS];
  size_t count;
};

static const uint8_t *
fetched_window (void *opaque, uint64_t w)
{
  struct fetched *fetched = opaque;

  for (size_t i = 0; i < fetched->count; i++)
    if (fetched->numbers[i] == w)
      return synthetic_index_window (fetched->synthetic, w);
  return NULL;
}

Test (image_index, a_lookup_says_which_window_it_misses_until_it_has_all)
{
  struct synthetic_index synthetic;
  struct fetched fetched = { .synthetic = &synthetic };
  struct bp_extent extent;
  uint64_t missing;
  int r;

  synthetic_index_init (&synthetic, 60000000);
  while ((r = bp_index_lookup (&synthetic.index, fetched_window, &fetched,
                               synthetic_index_offset (59999999), &extent,
                               &missing)) == -EAGAIN)
    fetched.numbers[fetched.count++] = missing;
  cr_assert_eq (r, 0);
  cr_assert (!extent.is_hole);
  cr_assert_eq (fetched.count, 3);
  cr_assert_eq (fetched.numbers[0], 0);
  cr_assert_eq (fetched.numbers[1], 1);
  cr_assert_eq (fetched.numbers[2], synthetic.index.nr_fences);
  synthetic_index_forget (&synthetic);
}

Test (image_index, fences_of_a_window_are_read_from_where_they_stand)
{
  struct synthetic_index synthetic;
  struct fetched fetched = { .synthetic = &synthetic };
  uint64_t first = 1, next = 1, missing = 0;

  synthetic_index_init (&synthetic, 60000000);
  /* Fence 16375 is the last in window 0; 16376 the first in window 1. */
  cr_assert_eq (bp_index_fences_of (&synthetic.index, fetched_window,
                                    &fetched, 16376, &first, &next,
                                    &missing),
                -EAGAIN);
  cr_assert_eq (missing, 0);
  fetched.numbers[fetched.count++] = 0;
  cr_assert_eq (bp_index_fences_of (&synthetic.index, fetched_window,
                                    &fetched, 16376, &first, &next,
                                    &missing),
                -EAGAIN);
  cr_assert_eq (missing, 1);
  fetched.numbers[fetched.count++] = 1;
  cr_assert_eq (bp_index_fences_of (&synthetic.index, fetched_window,
                                    &fetched, 16376, &first, &next,
                                    &missing),
                0);
  cr_assert_eq (next - first, 2730 * 8192);
  synthetic_index_forget (&synthetic);
}

Test (image_index, windows_that_contradict_each_other_are_malformed)
{
  struct synthetic_index synthetic;
  struct bp_extent extent;
  uint64_t missing;
  uint8_t *w1;

  synthetic_index_init (&synthetic, 6000);
  /* The fence says that window 1 starts at or before the offset. */
  w1 = (uint8_t *) synthetic_index_window (&synthetic, 1);
  w1[5] = 1;
  cr_assert_eq (bp_index_lookup (&synthetic.index, synthetic_index_window,
                                 &synthetic, synthetic_index_offset (2729),
                                 &extent, &missing),
                -EPROTO);
  synthetic_index_forget (&synthetic);
}

/* ---- Writing ---- */

/* A list of COUNT segments with gaps between some, from SEED. */
static struct segments
random_segments (uint64_t seed, size_t count)
{
  struct segments segments = { .count = count };
  uint64_t state = seed, offset = 0;

  segments.list = calloc (count + 1, sizeof *segments.list);
  cr_assert_not_null (segments.list);
  for (size_t i = 0; i < count; i++) {
    struct segment *segment = &segments.list[i];

    if (splitmix64 (&state) % 3 == 0)
      offset += splitmix64 (&state) % (UINT64_C (1) << 30) / 4096 * 4096;
    segment->offset = offset;
    segment->len = (uint32_t) (splitmix64 (&state) % 32 + 1) * 4096;
    if (i + 1 == count)
      segment->len -= (uint32_t) (splitmix64 (&state) % 4096);
    fill_splitmix (segment->root.bytes, BP_ROOT_SIZE, seed + i);
    offset += segment->len;
  }
  segments.image_size = offset;
  return segments;
}

static const uint8_t *
blob_window (void *opaque, uint64_t w)
{
  const struct index_blob *blob = opaque;

  return blob->bytes + w * WINDOW;
}

/* Every window of BLOB passes its check. */
static void
assert_windows_check (struct index_blob *blob)
{
  struct bp_index decoded;
  struct bp_error err = { .msg = "" };

  cr_assert_eq (bp_index_decode_header (
                  blob->bytes, MIN (blob->index.blob_size, WINDOW),
                  blob->index.blob_size, &decoded, &err),
                0, "%s", err.msg);
  cr_assert_eq (decoded.image_size, blob->index.image_size);
  cr_assert_eq (decoded.nr_entries, blob->index.nr_entries);
  cr_assert_eq (decoded.nr_fences, blob->index.nr_fences);
  for (uint64_t w = 0; w <= decoded.nr_fences; w++) {
    uint64_t first, next, missing;

    cr_assert_eq (bp_index_fences_of (&decoded, blob_window, blob, w, &first,
                                      &next, &missing),
                  0);
    cr_assert_eq (
      bp_index_check_window (
        &decoded, w, blob->bytes + w * WINDOW,
        MIN (decoded.blob_size - w * WINDOW, WINDOW), first, next, &err),
      0, "%s", err.msg);
  }
}

enum {
  MOST_EXTENTS = 2 * 2730 + 1 /* That a window can tell of. */
};

/* Lookups of at most MAX extents from end to end meet SEGMENTS, and
 * nothing else.  Returns how many it took.
 */
static uint64_t
assert_walk (struct index_blob *blob, const struct segments *segments,
             size_t max)
{
  static struct bp_extent extents[MOST_EXTENTS];
  uint64_t offset = 0, missing, lookups = 0;
  size_t n = 0, count;

  for (; offset < segments->image_size; lookups++) {
    cr_assert_eq (bp_index_lookup_some (&blob->index, blob_window, blob,
                                        offset, extents, max, &count,
                                        &missing),
                  0);
    cr_assert (count > 0 && count <= max);
    for (size_t i = 0; i < count; i++) {
      cr_assert_eq (extents[i].offset, offset);
      cr_assert_gt (extents[i].len, 0);
      if (!extents[i].is_hole) {
        const struct segment *segment = &segments->list[n++];

        cr_assert_leq (n, segments->count);
        cr_assert_eq (offset, segment->offset);
        cr_assert_eq (extents[i].len, segment->len);
        cr_assert (bp_root_equal (&extents[i].root, &segment->root));
      }
      offset += extents[i].len;
    }
  }
  cr_assert_eq (offset, segments->image_size);
  cr_assert_eq (n, segments->count);
  return lookups;
}

Test (image_index, what_is_written_checks_and_is_found)
{
  static const size_t sizes[] = { 0, 1, 2, 100, 2729, 2730, 5459, 5460,
                                  12345 };

  for (size_t i = 0; i < ARRAY_LEN (sizes); i++) {
    struct segments segments = random_segments (i + 1, sizes[i]);
    struct index_blob blob;

    index_of (&blob, &segments);
    assert_windows_check (&blob);
    assert_walk (&blob, &segments, 1);
    assert_walk (&blob, &segments, 7);
    /* All that a window knows is told at once. */
    cr_assert_leq (assert_walk (&blob, &segments, MOST_EXTENTS),
                   blob.index.nr_fences + 1);
    index_done (&blob);
    segments_done (&segments);
  }
}

Test (image_index, a_regular_image_is_written_as_the_synthetic_index)
{
  enum {
    COUNT = 9000
  };
  struct segments segments = { .count = COUNT };
  struct synthetic_index synthetic;
  struct index_blob blob;

  synthetic_index_init (&synthetic, COUNT);
  segments.list = calloc (COUNT, sizeof *segments.list);
  segments.image_size = synthetic.index.image_size;
  for (size_t i = 0; i < COUNT; i++)
    segments.list[i] = (struct segment){ synthetic_index_offset (i), 4096,
                                         synthetic_index_root (i) };
  index_of (&blob, &segments);
  cr_assert_eq (blob.index.blob_size, synthetic.index.blob_size);
  for (uint64_t w = 0; w <= blob.index.nr_fences; w++)
    cr_assert_eq (memcmp (blob.bytes + w * WINDOW,
                          synthetic_index_window (&synthetic, w),
                          synthetic_index_window_len (&synthetic, w)),
                  0, "window %ju", (uintmax_t) w);
  synthetic_index_forget (&synthetic);
  index_done (&blob);
  segments_done (&segments);
}

/* A writer with a spool of its own. */
struct written {
  int fd;
  struct bp_index_writer *writer;
};

static struct written
new_writer (void)
{
  struct written w = { .fd = memfd_create ("spool", MFD_CLOEXEC) };

  cr_assert_geq (w.fd, 0);
  cr_assert_eq (bp_index_writer_new (&w.writer, w.fd), 0);
  return w;
}

static void
writer_done (struct written *w)
{
  bp_index_writer_free (w->writer);
  close (w->fd);
}

Test (image_index, any_part_of_what_is_written_can_be_read)
{
  struct segments segments = random_segments (99, 6000);
  struct written w = new_writer ();
  struct index_blob whole;
  struct bp_index index;
  uint64_t state = 5;

  index_of (&whole, &segments);
  for (size_t i = 0; i < segments.count; i++)
    cr_assert_eq (bp_index_writer_add (w.writer, segments.list[i].offset,
                                       segments.list[i].len,
                                       &segments.list[i].root, NULL),
                  0);
  cr_assert_eq (bp_index_writer_finish (w.writer, segments.image_size,
                                        &index, NULL),
                0);
  for (int round = 0; round < 500; round++) {
    const uint64_t offset = splitmix64 (&state) % index.blob_size;
    const size_t want = splitmix64 (&state) % (round % 2 ? 100 : 300000);
    const size_t len = MIN (want, index.blob_size - offset);
    CLEANUP_FREE uint8_t *part = malloc (len + 1);

    cr_assert_eq (
      bp_index_writer_read (w.writer, offset, part, len, NULL), 0);
    cr_assert_eq (memcmp (part, whole.bytes + offset, len), 0,
                  "%zu bytes at %ju", len, (uintmax_t) offset);
  }
  writer_done (&w);
  index_done (&whole);
  segments_done (&segments);
}

Test (image_index, an_image_of_2_62_bytes_is_written_and_found)
{
  struct written w = new_writer ();
  const struct bp_root root = synthetic_index_root (1);
  const uint64_t last = BP_IMAGE_MAX_SIZE - 4096;
  uint8_t bytes[64 + 48];
  struct index_blob blob = { .bytes = bytes };
  struct bp_extent extent;
  uint64_t missing;

  cr_assert_eq (bp_index_writer_add (w.writer, last, 4096, &root, NULL), 0);
  cr_assert_eq (bp_index_writer_finish (w.writer, BP_IMAGE_MAX_SIZE,
                                        &blob.index, NULL),
                0);
  cr_assert_eq (blob.index.blob_size, sizeof bytes);
  cr_assert_eq (
    bp_index_writer_read (w.writer, 0, bytes, sizeof bytes, NULL), 0);
  assert_windows_check (&blob);
  cr_assert_eq (bp_index_lookup (&blob.index, blob_window, &blob, 0, &extent,
                                 &missing),
                0);
  cr_assert (extent.is_hole);
  cr_assert_eq (extent.len, last);
  cr_assert_eq (bp_index_lookup (&blob.index, blob_window, &blob,
                                 BP_IMAGE_MAX_SIZE - 1, &extent, &missing),
                0);
  cr_assert_eq (extent.len, 1);
  cr_assert_eq (extent.blob_offset, 4095);
  writer_done (&w);
}

Test (image_index, a_segment_that_does_not_fit_is_not_added)
{
  static const struct {
    uint64_t offset;
    uint32_t len;
  } bad[] = {
    { 8191, 4096 },              /* Unaligned. */
    { 8192, 0 },                 /* Empty. */
    { 8192, 131073 },            /* Too long. */
    { 4096, 4096 },              /* Overlaps. */
    { 0, 4096 },                 /* Descends. */
    { BP_IMAGE_MAX_SIZE, 4096 }, /* Outside every image. */
    { UINT64_MAX - 4095, 4096 }, /* Wraps. */
  };
  const struct bp_root root = synthetic_index_root (1);
  struct written w = new_writer ();
  struct bp_index index;

  cr_assert_eq (bp_index_writer_add (w.writer, 0, 8192, &root, NULL), 0);
  for (size_t i = 0; i < ARRAY_LEN (bad); i++)
    cr_assert_eq (bp_index_writer_add (w.writer, bad[i].offset, bad[i].len,
                                       &root, NULL),
                  -EINVAL, "row %zu", i);
  cr_assert_eq (bp_index_writer_add (w.writer, 8192, 100, &root, NULL), 0);
  /* Only the last segment may end off a block, at the image's end. */
  cr_assert_eq (bp_index_writer_add (w.writer, 12288, 4096, &root, NULL),
                -EINVAL);
  cr_assert_eq (bp_index_writer_finish (w.writer, 8291, &index, NULL),
                -EINVAL);
  cr_assert_eq (bp_index_writer_finish (w.writer, 8293, &index, NULL),
                -EINVAL);
  cr_assert_eq (
    bp_index_writer_finish (w.writer, BP_IMAGE_MAX_SIZE + 1, &index, NULL),
    -EINVAL);
  cr_assert_eq (bp_index_writer_finish (w.writer, 8292, &index, NULL), 0);
  writer_done (&w);
}

Test (image_index, a_spool_that_cannot_be_written_is_an_error_of_the_system)
{
  const struct bp_root root = synthetic_index_root (1);
  struct bp_index_writer *writer;
  struct bp_index index;
  struct bp_error err;

  cr_assert_eq (bp_index_writer_new (&writer, -1), 0);
  cr_assert_eq (bp_index_writer_add (writer, 0, 4096, &root, NULL), 0);
  cr_assert_eq (bp_index_writer_finish (writer, 4096, &index, &err), -EBADF);
  cr_assert_str_eq (err.msg,
                    "image index: spool: write: Bad file descriptor");
  bp_index_writer_free (writer);
}
