/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Segmentation: the vectors, and what it is for. */
#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "harness/image.h"
#include "harness/vectors.h"
#include "lib/base/cleanup.h"
#include "lib/base/hex.h"
#include "lib/base/range.h"
#include "lib/segmenter.h"

enum {
  BLOCK = BP_SEGMENT_BLOCK
};

/* The bytes that a data column of images.tsv names. */
static uint8_t *
image_bytes (const char *data, size_t len)
{
  uint8_t *bytes = calloc (1, len + 1);
  unsigned long long state;
  unsigned byte;

  cr_assert_not_null (bytes);
  if (data[0] == 'x')
    bytes[0] = 'x';
  else if (sscanf (data, "splitmix %llu", &state) == 1)
    fill_splitmix (bytes, len, state);
  else if (sscanf (data, "%x repeated", &byte) == 1)
    memset (bytes, (int) byte, len);
  else
    cr_assert (strncmp (data, "zeros", 5) == 0 || strcmp (data, "empty") == 0,
               "unknown data: '%s'", data);
  if (strstr (data, "every second 4096-byte block zero"))
    for (size_t at = BLOCK; at < len; at += 2 * BLOCK)
      memset (bytes + at, 0, MIN (len - at, BLOCK));
  return bytes;
}

static void
assert_image_row (const struct vectors *row, const struct segments *segments)
{
  const struct bp_root wanted = vector_root (row->columns[6]);
  struct index_blob blob;
  struct bp_root root;

  index_of (&blob, segments);
  cr_assert_eq (segments->image_size, vector_number (row->columns[2]));
  cr_assert_eq (segments->count, vector_number (row->columns[3]), "'%s': %zu",
                row->columns[1], segments->count);
  cr_assert_eq (blob.index.nr_fences, vector_number (row->columns[4]));
  cr_assert_eq (blob.index.blob_size, vector_number (row->columns[5]));
  cr_assert_eq (bp_merkle_root (blob.bytes, blob.index.blob_size, &root), 0);
  cr_assert (bp_root_equal (&root, &wanted), "'%s': image root",
             row->columns[1]);
  index_done (&blob);
}

static void
assert_segment_row (const struct vectors *row, const struct segment *segment)
{
  const struct bp_root wanted = vector_root (row->columns[4]);

  cr_assert_eq (segment->offset, vector_number (row->columns[2]), "'%s'",
                row->columns[1]);
  cr_assert_eq (segment->len, vector_number (row->columns[3]), "'%s'",
                row->columns[1]);
  cr_assert (bp_root_equal (&segment->root, &wanted), "'%s' at %ju",
             row->columns[1], (uintmax_t) segment->offset);
}

Test (segmenter, images_segments_and_roots_are_those_of_every_vector)
{
  struct segments segments = { 0 };
  struct vectors row;
  size_t nr_images = 0, nr_segments = 0, next = 0;

  vectors_open (&row, "images.tsv");
  while (vectors_next (&row)) {
    if (strcmp (row.columns[0], "image") == 0) {
      const size_t len = vector_number (row.columns[2]);
      CLEANUP_FREE uint8_t *bytes = image_bytes (row.columns[1], len);

      segments_done (&segments);
      segments_of (&segments, bytes, len, 1 << 20);
      assert_image_row (&row, &segments);
      nr_images++;
      next = 0;
    }
    else {
      cr_assert_lt (next, segments.count);
      assert_segment_row (&row, &segments.list[next++]);
      nr_segments++;
    }
  }
  segments_done (&segments);
  cr_assert_eq (nr_images, 8);
  cr_assert_eq (nr_segments, 22);
}

static bool
segments_equal (const struct segments *a, const struct segments *b)
{
  if (a->count != b->count || a->image_size != b->image_size)
    return false;
  for (size_t i = 0; i < a->count; i++)
    if (a->list[i].offset != b->list[i].offset ||
        a->list[i].len != b->list[i].len ||
        !bp_root_equal (&a->list[i].root, &b->list[i].root))
      return false;
  return true;
}

Test (segmenter, cuts_do_not_depend_on_the_pieces)
{
  static const size_t pieces[] = { 1, 511, 4095, 4096, 4097, 131071, 131073 };
  const size_t len = 1000001;
  CLEANUP_FREE uint8_t *bytes = image_bytes ("splitmix 9", len);
  struct segments whole, other;

  memset (bytes + 300000, 0, 40000);
  segments_of (&whole, bytes, len, len);
  for (size_t i = 0; i < ARRAY_LEN (pieces); i++) {
    segments_of (&other, bytes, len, pieces[i]);
    cr_assert (segments_equal (&whole, &other), "pieces of %zu", pieces[i]);
    segments_done (&other);
  }
  segments_done (&whole);
}

/* ---- Holes ---- */

/* Where segments start and end, as "offset+len offset+len …". */
struct cuts {
  char text[1024];
};

static int
note_cut (void *opaque, uint64_t offset, const uint8_t *data, uint32_t len)
{
  struct cuts *cuts = opaque;
  const size_t used = strlen (cuts->text);

  (void) data;
  snprintf (cuts->text + used, sizeof cuts->text - used, "%s%ju+%u",
            used > 0 ? " " : "", (uintmax_t) offset, len);
  return 0;
}

Test (segmenter, a_skip_of_any_place_and_length_is_that_many_zeros)
{
  enum {
    LEN = 200000
  };
  CLEANUP_FREE uint8_t *bytes = image_bytes ("splitmix 11", LEN);
  uint64_t state = 1;

  for (int round = 0; round < 200; round++) {
    const size_t at = splitmix64 (&state) % LEN;
    const size_t n = splitmix64 (&state) % (LEN - at + 1);
    CLEANUP_FREE uint8_t *zeroed = image_bytes ("splitmix 11", LEN);
    struct cuts added = { "" }, skipped = { "" };
    struct bp_segmenter *a, *b;

    memset (zeroed + at, 0, n);
    cr_assert_eq (bp_segmenter_new (&a, note_cut, &added), 0);
    cr_assert_eq (bp_segmenter_add (a, zeroed, LEN), 0);
    cr_assert_eq (bp_segmenter_finish (a), 0);
    cr_assert_eq (bp_segmenter_new (&b, note_cut, &skipped), 0);
    cr_assert_eq (bp_segmenter_add (b, bytes, at), 0);
    cr_assert_eq (bp_segmenter_skip (b, n), 0);
    cr_assert_eq (bp_segmenter_add (b, bytes + at + n, LEN - at - n), 0);
    cr_assert_eq (bp_segmenter_finish (b), 0);
    cr_assert_str_eq (skipped.text, added.text, "%zu zeros at %zu", n, at);
    cr_assert_eq (bp_segmenter_size (b), LEN);
    bp_segmenter_free (a);
    bp_segmenter_free (b);
  }
}

Test (segmenter, a_skip_of_2_62_bytes_takes_no_time)
{
  struct cuts cuts = { "" };
  struct bp_segmenter *segmenter;

  cr_assert_eq (bp_segmenter_new (&segmenter, note_cut, &cuts), 0);
  cr_assert_eq (bp_segmenter_add (segmenter, "x", 1), 0);
  cr_assert_eq (bp_segmenter_skip (segmenter, UINT64_C (1) << 61), 0);
  cr_assert_eq (bp_segmenter_add (segmenter, "x", 1), 0);
  cr_assert_eq (bp_segmenter_finish (segmenter), 0);
  cr_assert_str_eq (cuts.text, "0+4096 2305843009213693952+2");
  bp_segmenter_free (segmenter);
}

Test (segmenter, a_short_last_block_of_zeros_is_a_hole)
{
  CLEANUP_FREE uint8_t *bytes = image_bytes ("splitmix 5", 4 * BLOCK);
  struct cuts cuts = { "" };
  struct bp_segmenter *segmenter;

  memset (bytes + 2 * BLOCK, 0, 100);
  cr_assert_eq (bp_segmenter_new (&segmenter, note_cut, &cuts), 0);
  cr_assert_eq (bp_segmenter_add (segmenter, bytes, 2 * BLOCK + 100), 0);
  cr_assert_eq (bp_segmenter_finish (segmenter), 0);
  cr_assert_str_eq (cuts.text, "0+8192");
  cr_assert_eq (bp_segmenter_size (segmenter), 2 * BLOCK + 100);
  bp_segmenter_free (segmenter);
}

static int
refuse (void *opaque, uint64_t offset, const uint8_t *data, uint32_t len)
{
  (void) opaque;
  (void) offset;
  (void) data;
  (void) len;
  return -ENOSPC;
}

Test (segmenter, what_the_callback_returns_is_passed_on)
{
  CLEANUP_FREE uint8_t *bytes = image_bytes ("splitmix 5", 200000);
  struct bp_segmenter *segmenter;

  cr_assert_eq (bp_segmenter_new (&segmenter, refuse, NULL), 0);
  cr_assert_eq (bp_segmenter_add (segmenter, bytes, 200000), -ENOSPC);
  bp_segmenter_free (segmenter);

  cr_assert_eq (bp_segmenter_new (&segmenter, refuse, NULL), 0);
  cr_assert_eq (bp_segmenter_add (segmenter, bytes, 5000), 0);
  cr_assert_eq (bp_segmenter_skip (segmenter, 100000), -ENOSPC);
  bp_segmenter_free (segmenter);

  cr_assert_eq (bp_segmenter_new (&segmenter, refuse, NULL), 0);
  cr_assert_eq (bp_segmenter_add (segmenter, bytes, 5000), 0);
  cr_assert_eq (bp_segmenter_finish (segmenter), -ENOSPC);
  bp_segmenter_free (segmenter);
}

/* ---- What it is for ---- */

static int
compare_roots (const void *a, const void *b)
{
  return memcmp (((const struct segment *) a)->root.bytes,
                 ((const struct segment *) b)->root.bytes, BP_ROOT_SIZE);
}

/* How many segments of OLD are not in NEW, whose list is sorted here. */
static size_t
nr_lost (const struct segments *old, struct segments *new)
{
  size_t lost = 0;

  qsort (new->list, new->count, sizeof new->list[0], compare_roots);
  for (size_t i = 0; i < old->count; i++)
    if (bsearch (&old->list[i], new->list, new->count, sizeof new->list[0],
                 compare_roots) == NULL)
      lost++;
  return lost;
}

/* Segments lost when one block is inserted into image number SEED. */
static size_t
lost_by_one_insertion (uint64_t seed)
{
  enum {
    LEN = 1 << 20
  };
  CLEANUP_FREE uint8_t *bytes = malloc (LEN + BLOCK);
  uint64_t state = ~seed;
  struct segments old, new;
  size_t at, lost;

  cr_assert_not_null (bytes);
  fill_splitmix (bytes, LEN, seed);
  segments_of (&old, bytes, LEN, LEN);

  at = round_down (splitmix64 (&state) % LEN, BLOCK);
  memmove (bytes + at + BLOCK, bytes + at, LEN - at);
  fill_splitmix (bytes + at, BLOCK, splitmix64 (&state));
  segments_of (&new, bytes, LEN + BLOCK, LEN + BLOCK);

  lost = nr_lost (&old, &new);
  segments_done (&old);
  segments_done (&new);
  return lost;
}

Test (segmenter, an_inserted_block_leaves_most_segments_as_they_were)
{
  enum {
    IMAGES = 200
  };
  size_t nr_small = 0, worst = 0;

  for (uint64_t seed = 1; seed <= IMAGES; seed++) {
    const size_t lost = lost_by_one_insertion (seed << 32);

    worst = MAX (worst, lost);
    if (lost <= 2)
      nr_small++;
  }
  cr_assert_geq (nr_small, IMAGES * 9 / 10, "only %zu of %d lost at most 2",
                 nr_small, IMAGES);
  cr_assert_leq (worst, 8, "one lost %zu", worst);
}
