/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Image indexes: every rule of the check, broken once.
 *
 * All start from the same index, written correctly: 6000 segments of 4096
 * bytes at 8192 I + 4096, so two fences, and three windows with entries.
 */
#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "harness/synthetic-index.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "lib/image-index.h"

enum {
  WINDOW = BP_WINDOW_SIZE,
  COUNT = 6000,
  /* Where things stand in their window. */
  FENCE_0 = 64,
  FENCE_1 = 72,
  ENTRY_0 = 80,           /* In window 0. */
  IN_WINDOW_0 = 2729,     /* Entries. */
  LAST_ENTRY = 2729 * 48, /* In window 1: entry 2729 + 2729. */
  END_OF_ENTRIES = 2730 * 48,
};

/* The bytes of window W, to be broken. */
static uint8_t *
window_of (struct synthetic_index *synthetic, uint64_t w)
{
  return (uint8_t *) synthetic_index_window (synthetic, w);
}

static int
check (struct synthetic_index *synthetic, uint64_t w, struct bp_error *err)
{
  uint64_t first, next, missing;

  cr_assert_eq (bp_index_fences_of (&synthetic->index,
                                    synthetic_index_window, synthetic, w,
                                    &first, &next, &missing),
                0);
  return bp_index_check_window (&synthetic->index, w,
                                window_of (synthetic, w),
                                synthetic_index_window_len (synthetic, w),
                                first, next, err);
}

/* Window W, broken, must fail with a message that ends in WHY. */
static void
assert_malformed (struct synthetic_index *synthetic, uint64_t w,
                  const char *why)
{
  struct bp_error err = { .msg = "" };
  size_t len;

  cr_assert_eq (check (synthetic, w, &err), -EPROTO, "%s", why);
  len = strlen (err.msg);
  cr_assert (len >= strlen (why) &&
               strcmp (err.msg + len - strlen (why), why) == 0,
             "'%s', wanted '%s'", err.msg, why);
}

static struct synthetic_index
a_good_index (void)
{
  struct synthetic_index synthetic;

  synthetic_index_init (&synthetic, COUNT);
  cr_assert_eq (synthetic.index.nr_fences, 2);
  for (uint64_t w = 0; w <= 2; w++) {
    struct bp_error err = { .msg = "" };

    cr_assert_eq (check (&synthetic, w, &err), 0, "%s", err.msg);
  }
  return synthetic;
}

/* ---- Entries ---- */

/* Where entry I of window 1 has its fields. */
#define OFFSET_OF(i) ((i) *48)
#define LENGTH_OF(i) ((i) *48 + 8)
#define FLAGS_OF(i) ((i) *48 + 12)

Test (image_index_check, an_entry_at_an_unaligned_offset_is_malformed)
{
  struct synthetic_index synthetic = a_good_index ();

  window_of (&synthetic, 1)[OFFSET_OF (5)] ^= 1;
  assert_malformed (&synthetic, 1, "entry at an unaligned offset");
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, an_entry_of_length_0_is_malformed)
{
  struct synthetic_index synthetic = a_good_index ();

  put_le32 (window_of (&synthetic, 1) + LENGTH_OF (5), 0);
  assert_malformed (&synthetic, 1, "entry of an impossible length");
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, an_entry_longer_than_128_kib_is_malformed)
{
  struct synthetic_index synthetic = a_good_index ();

  put_le32 (window_of (&synthetic, 1) + LENGTH_OF (5), 131072 + 4096);
  assert_malformed (&synthetic, 1, "entry of an impossible length");
  put_le32 (window_of (&synthetic, 1) + LENGTH_OF (5), UINT32_MAX);
  assert_malformed (&synthetic, 1, "entry of an impossible length");
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, an_entry_outside_the_image_is_malformed)
{
  struct synthetic_index synthetic = a_good_index ();
  const uint64_t size = synthetic.index.image_size;

  put_le64 (window_of (&synthetic, 1) + OFFSET_OF (5), size);
  assert_malformed (&synthetic, 1, "entry outside the image");
  put_le64 (window_of (&synthetic, 1) + OFFSET_OF (5), size - size % 4096);
  assert_malformed (&synthetic, 1, "entry outside the image");
  put_le64 (window_of (&synthetic, 1) + OFFSET_OF (5), -UINT64_C (4096));
  assert_malformed (&synthetic, 1, "entry outside the image");
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, an_entry_of_an_unaligned_length_is_malformed)
{
  struct synthetic_index synthetic = a_good_index ();

  put_le32 (window_of (&synthetic, 1) + LENGTH_OF (5), 4095);
  assert_malformed (&synthetic, 1, "entry of an unaligned length");
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, the_entry_at_the_images_end_may_have_any_length)
{
  struct synthetic_index synthetic = a_good_index ();
  const size_t last = COUNT - 1 - IN_WINDOW_0 - 2730;

  synthetic.index.image_size = synthetic_index_offset (COUNT - 1) + 7;
  put_le32 (window_of (&synthetic, 2) + LENGTH_OF (last), 7);
  cr_assert_eq (check (&synthetic, 2, NULL), 0);
  /* One byte before the end is not the end. */
  put_le32 (window_of (&synthetic, 2) + LENGTH_OF (last), 6);
  assert_malformed (&synthetic, 2, "entry of an unaligned length");
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, unknown_flags_are_malformed)
{
  struct synthetic_index synthetic = a_good_index ();

  window_of (&synthetic, 1)[FLAGS_OF (5) + 3] = 0x80;
  assert_malformed (&synthetic, 1, "entry with unknown flags");
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, entries_that_overlap_are_malformed)
{
  struct synthetic_index synthetic = a_good_index ();

  put_le32 (window_of (&synthetic, 1) + LENGTH_OF (5), 8192);
  cr_assert_eq (check (&synthetic, 1, NULL), 0); /* They touch. */
  put_le32 (window_of (&synthetic, 1) + LENGTH_OF (5), 12288);
  assert_malformed (&synthetic, 1, "entries overlap or do not ascend");
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, entries_that_do_not_ascend_are_malformed)
{
  struct synthetic_index synthetic = a_good_index ();
  uint8_t *w1 = window_of (&synthetic, 1);

  put_le64 (w1 + OFFSET_OF (5), get_le64 (w1 + OFFSET_OF (3)));
  assert_malformed (&synthetic, 1, "entries overlap or do not ascend");
  synthetic_index_forget (&synthetic);
}

/* ---- Entries and fences ---- */

Test (image_index_check, a_first_entry_that_is_not_at_its_fence_is_malformed)
{
  struct synthetic_index synthetic = a_good_index ();

  put_le64 (window_of (&synthetic, 0) + FENCE_0,
            synthetic_index_offset (IN_WINDOW_0) - 4096);
  cr_assert_eq (check (&synthetic, 0, NULL), 0); /* Nothing it can see. */
  assert_malformed (&synthetic, 1, "first entry is not at its fence");
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, an_entry_that_reaches_past_the_fence_is_malformed)
{
  struct synthetic_index synthetic = a_good_index ();

  put_le32 (window_of (&synthetic, 1) + LAST_ENTRY + 8, 8192);
  cr_assert_eq (check (&synthetic, 1, NULL), 0);
  put_le32 (window_of (&synthetic, 1) + LAST_ENTRY + 8, 12288);
  assert_malformed (&synthetic, 1, "last entry reaches past the fence");
  put_le32 (window_of (&synthetic, 0) + ENTRY_0 + 8 + 48 * 2728, 12288);
  assert_malformed (&synthetic, 0, "last entry reaches past the fence");
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, fences_that_do_not_ascend_are_malformed)
{
  struct synthetic_index synthetic = a_good_index ();
  uint8_t *w0 = window_of (&synthetic, 0);

  put_le64 (w0 + FENCE_1, get_le64 (w0 + FENCE_0));
  assert_malformed (&synthetic, 0, "malformed fence");
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, a_fence_that_is_no_place_of_a_segment_is_malformed)
{
  struct synthetic_index synthetic = a_good_index ();
  uint8_t *w0 = window_of (&synthetic, 0);

  w0[FENCE_1] ^= 1;
  assert_malformed (&synthetic, 0, "malformed fence");
  put_le64 (w0 + FENCE_1, round_up (synthetic.index.image_size, 4096));
  assert_malformed (&synthetic, 0, "malformed fence");
  synthetic_index_forget (&synthetic);
}

/* ---- Other bytes ---- */

Test (image_index_check, bytes_behind_the_last_entry_must_be_zero)
{
  struct synthetic_index synthetic = a_good_index ();

  for (size_t at = END_OF_ENTRIES; at < WINDOW; at++) {
    window_of (&synthetic, 1)[at] = 1;
    assert_malformed (&synthetic, 1, "bytes behind the entries are not zero");
    window_of (&synthetic, 1)[at] = 0;
  }
  cr_assert_eq (check (&synthetic, 1, NULL), 0);
  synthetic_index_forget (&synthetic);
}

Test (image_index_check, a_window_of_the_wrong_length_is_malformed)
{
  struct synthetic_index synthetic = a_good_index ();
  const size_t len = synthetic_index_window_len (&synthetic, 2);
  const uint64_t fence = synthetic_index_offset (IN_WINDOW_0 + 2730);
  const uint8_t *w2 = window_of (&synthetic, 2);

  cr_assert_eq (
    bp_index_check_window (&synthetic.index, 2, w2, len, fence, 0, NULL), 0);
  cr_assert_eq (bp_index_check_window (&synthetic.index, 2, w2, len - 1,
                                       fence, 0, NULL),
                -EPROTO);
  cr_assert_eq (bp_index_check_window (&synthetic.index, 2, w2, len + 1,
                                       fence, 0, NULL),
                -EPROTO);
  cr_assert_eq (
    bp_index_check_window (&synthetic.index, 3, w2, len, fence, 0, NULL),
    -EPROTO);
  synthetic_index_forget (&synthetic);
}

/* ---- Windows of fences ---- */

/* Fences fill window 0 and reach into window 1, where entry 0 stands. */
Test (image_index_check, fences_in_more_than_one_window_check)
{
  struct synthetic_index synthetic;
  const uint64_t sample[] = { 0, 1, 2, 16376, 16377, 21000 };

  synthetic_index_init (&synthetic, 60000000);
  for (size_t i = 0; i < ARRAY_LEN (sample); i++) {
    struct bp_error err = { .msg = "" };

    cr_assert_eq (check (&synthetic, sample[i], &err), 0, "%s", err.msg);
  }
  window_of (&synthetic, 1)[0] ^= 1;
  assert_malformed (&synthetic, 1, "malformed fence");
  synthetic_index_forget (&synthetic);
}

/* Window 1 holds nothing but fences: 3 windows of them. */
Test (image_index_check, a_window_of_only_fences_has_fence_0)
{
  struct synthetic_index synthetic;

  synthetic_index_init (&synthetic, 100000000);
  cr_assert_gt (synthetic.index.nr_fences, 16376 + 16384);
  cr_assert_eq (get_le64 (window_of (&synthetic, 0) + FENCE_0), 0);
  cr_assert_eq (get_le64 (window_of (&synthetic, 0) + FENCE_1), 4096);
  for (uint64_t w = 0; w <= 2; w++)
    cr_assert_eq (check (&synthetic, w, NULL), 0, "window %ju",
                  (uintmax_t) w);
  put_le64 (window_of (&synthetic, 0) + FENCE_0, 4096);
  assert_malformed (&synthetic, 0, "malformed fence");
  assert_malformed (&synthetic, 1, "has a fence but no entries");
  synthetic_index_forget (&synthetic);
}

/* The last fence ends 8 to 40 bytes before the window does. */
Test (image_index_check, bytes_before_an_entry_0_that_did_not_fit_are_zero)
{
  for (uint64_t f = 16371; f <= 16375; f++) {
    struct synthetic_index synthetic;

    synthetic_index_init (&synthetic, f * 2730);
    cr_assert_eq (synthetic.index.nr_fences, f);
    cr_assert_eq (check (&synthetic, 0, NULL), 0);
    cr_assert_eq (check (&synthetic, 1, NULL), 0);
    window_of (&synthetic, 0)[WINDOW - 1] = 1;
    assert_malformed (&synthetic, 0, "bytes behind the entries are not zero");
    synthetic_index_forget (&synthetic);
  }
}

/* ---- The header ---- */

/* Decode the header of SYNTHETIC after setting WIDTH bytes at AT. */
static int
decode_changed (size_t at, size_t width, uint64_t value)
{
  struct synthetic_index synthetic = a_good_index ();
  uint8_t *w0 = window_of (&synthetic, 0);
  struct bp_index index;
  int r;

  if (width == 8)
    put_le64 (w0 + at, value);
  else if (width == 4)
    put_le32 (w0 + at, (uint32_t) value);
  else
    w0[at] = (uint8_t) value;
  r = bp_index_decode_header (w0, WINDOW, synthetic.index.blob_size, &index,
                              NULL);
  synthetic_index_forget (&synthetic);
  return r;
}

Test (image_index_check, each_field_of_the_header_counts)
{
  static const struct {
    const char *what;
    size_t at, width;
    uint64_t value;
  } bad[] = {
    { "magic", 7, 1, '2' },
    { "image above 2^62", 8, 8, BP_IMAGE_MAX_SIZE + 1 },
    { "more entries than blocks", 8, 8, COUNT * 4096 - 4096 },
    { "an entry less", 16, 8, COUNT - 1 },
    { "an entry more", 16, 8, COUNT + 1 },
    { "entries that wrap", 16, 8, UINT64_MAX },
    { "entry size", 24, 4, 40 },
    { "a fence less", 28, 4, 1 },
    { "a fence more", 28, 4, 3 },
    { "reserved", 32, 1, 1 },
    { "reserved", 63, 1, 1 },
  };

  for (size_t i = 0; i < ARRAY_LEN (bad); i++)
    cr_assert_eq (decode_changed (bad[i].at, bad[i].width, bad[i].value),
                  -EPROTO, "%s", bad[i].what);
  cr_assert_eq (decode_changed (8, 8, BP_IMAGE_MAX_SIZE), 0);
  cr_assert_eq (decode_changed (8, 8, COUNT * 4096), 0);
}

Test (image_index_check, a_blob_of_another_size_is_malformed)
{
  struct synthetic_index synthetic = a_good_index ();
  const uint8_t *w0 = window_of (&synthetic, 0);
  const uint64_t size = synthetic.index.blob_size;
  struct bp_index index;

  cr_assert_eq (bp_index_decode_header (w0, WINDOW, size, &index, NULL), 0);
  cr_assert_eq (bp_index_decode_header (w0, WINDOW, size + 1, &index, NULL),
                -EPROTO);
  cr_assert_eq (bp_index_decode_header (w0, WINDOW, size - 1, &index, NULL),
                -EPROTO);
  /* Less than window 0, and less than a header. */
  cr_assert_eq (
    bp_index_decode_header (w0, WINDOW - 1, size, &index, NULL), -EPROTO);
  cr_assert_eq (bp_index_decode_header (w0, 63, 63, &index, NULL), -EPROTO);
  cr_assert_eq (bp_index_decode_header (w0, 0, 0, &index, NULL), -EPROTO);
  synthetic_index_forget (&synthetic);
}
