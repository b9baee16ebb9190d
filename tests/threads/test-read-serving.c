/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Reads of images and blobs: every byte, and how much is fetched. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "tests/harness/check.h"
#include "tests/harness/pager-fixture.h"

enum {
  MIB = 1 << 20
};

static void
read_all (struct export *export, const uint8_t *image, uint64_t size,
          uint32_t step)
{
  uint64_t offset;
  uint32_t len;

  for (offset = 0; offset < size; offset += len) {
    len = (uint32_t) MIN (step, size - offset);
    CHECK_EQ (read_and_compare (export, image, offset, len), 0);
  }
}

static void
an_image_of_any_size_is_served_exactly (void)
{
  static const size_t sizes[] = { 1, 511, 4096, 4097, 131072, 131073,
                                  3 * MIB + 777 };
  static const uint32_t steps[] = { 509, 4096, 70000, 2 * MIB };
  size_t i, s;

  for (i = 0; i < ARRAY_LEN (sizes); i++) {
    struct fixture f;
    uint8_t *image = image_bytes (sizes[i], i, true);
    struct export *export;

    fixture_init (&f, 64 * MIB);
    fake_add_image (f.driver, "disk", image, sizes[i]);
    CHECK_EQ (fixture_open (&f, "disk", &export), 0);
    CHECK_EQ (export_get_info (export)->size, sizes[i]);
    for (s = 0; s < ARRAY_LEN (steps); s++)
      read_all (export, image, sizes[i], steps[s]);
    fixture_close (export);
    fixture_done (&f);
    free (image);
  }
}

static void
an_empty_image_attaches (void)
{
  struct fixture f;
  struct export *export;

  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "empty", (const uint8_t *) "", 0);
  CHECK_EQ (fixture_open (&f, "empty", &export), 0);
  CHECK_EQ (export_get_info (export)->size, 0);
  fixture_close (export);
  fixture_done (&f);
}

static void
an_image_of_zeros_is_served_without_a_blob (void)
{
  struct fixture f;
  uint8_t *image = calloc (1, 5 * MIB);
  struct export *export;

  CHECK (image != NULL);
  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "zeros", image, 5 * MIB);
  CHECK_EQ (fixture_open (&f, "zeros", &export), 0);
  read_all (export, image, 5 * MIB, 3 * MIB);
  CHECK_EQ (fake_fetches (f.driver, NULL), 1); /* The index. */
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

static void
a_blob_is_served_as_a_disk (void)
{
  static const size_t sizes[] = { 0, 1, 131072, MIB + 5 };
  size_t i;

  for (i = 0; i < ARRAY_LEN (sizes); i++) {
    struct fixture f;
    uint8_t *bytes = image_bytes (sizes[i], 7, false);
    struct export *export;
    struct bp_root root;
    char name[80] = "blob/";

    fixture_init (&f, 64 * MIB);
    root = fake_add_blob (f.driver, bytes, sizes[i]);
    bp_root_format (&root, name + 5);
    CHECK_EQ (fixture_open (&f, name, &export), 0);
    CHECK_EQ (export_get_info (export)->kind, EXPORT_BLOB);
    CHECK_EQ (export_get_info (export)->size, sizes[i]);
    read_all (export, bytes, sizes[i], 100000);
    fixture_close (export);
    fixture_done (&f);
    free (bytes);
  }
}

static void
a_hot_read_completes_at_once (void)
{
  struct fixture f;
  uint8_t *image = image_bytes (MIB, 1, false);
  struct export *export;
  struct test_read read;
  size_t fetches;

  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "disk", image, MIB);
  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  CHECK_EQ (read_and_compare (export, image, 0, MIB), 0);
  fetches = fake_fetches (f.driver, NULL);
  CHECK (test_read_start (&read, export, 4096, 300000));
  test_read_compare (&read, image + 4096);
  test_read_release (&read);
  CHECK_EQ (fake_fetches (f.driver, NULL), fetches);
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

static void
readers_who_miss_together_cause_one_fetch (void)
{
  enum {
    READERS = 50
  };
  struct fixture f;
  uint8_t *image = image_bytes (32768, 1, false);
  struct test_read reads[READERS];
  struct export *export;
  size_t i, fetches;

  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "disk", image, 32768);
  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  fetches = fake_fetches (f.driver, NULL);
  fake_hold (f.driver);
  for (i = 0; i < READERS; i++)
    CHECK (!test_read_start (&reads[i], export, 0, 32768));
  fake_let_go (f.driver);
  for (i = 0; i < READERS; i++) {
    CHECK_EQ (test_read_wait (&reads[i]), 0);
    test_read_compare (&reads[i], image);
    test_read_release (&reads[i]);
  }
  /* 32 KiB are at most two segments. */
  CHECK (fake_fetches (f.driver, NULL) - fetches <= 2);
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

static void
a_miss_fetches_the_256_kib_around_it_behind_it (void)
{
  struct fixture f;
  uint8_t *image = image_bytes (4 * MIB, 3, false);
  struct export *export;
  struct test_read read;
  size_t before;

  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "disk", image, 4 * MIB);
  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  before = fake_fetches (f.driver, NULL);
  CHECK_EQ (read_and_compare (export, image, MIB + 100000, 4096), 0);
  fake_wait_idle (f.driver);

  /* All of the piece, and nothing a segment's length outside it. */
  before = fake_fetches (f.driver, NULL) - before;
  CHECK (before >= 3);
  CHECK (before <= 12);
  CHECK (test_read_start (&read, export, MIB, 256 << 10));
  test_read_compare (&read, image + MIB);
  test_read_release (&read);
  before = fake_fetches (f.driver, NULL);
  CHECK_EQ (read_and_compare (export, image, MIB - (128 << 10), 1), 0);
  CHECK (fake_fetches (f.driver, NULL) > before);
  fake_wait_idle (f.driver);
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

static void
a_sequential_reader_is_read_ahead_of (void)
{
  struct fixture f;
  uint8_t *image = image_bytes (32 * MIB, 3, false);
  struct export *export;
  uint64_t offset, misses = METRIC_GET (cache_misses);

  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "disk", image, 32 * MIB);
  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  for (offset = 0; offset < 32 * MIB; offset += 65536) {
    CHECK_EQ (read_and_compare (export, image, offset, 65536), 0);
    fake_wait_idle (f.driver);
  }
  /* Without read-ahead each of 128 pieces would be missed. */
  misses = METRIC_GET (cache_misses) - misses;
  printf ("misses: %ju\n", (uintmax_t) misses);
  CHECK (misses < 12);
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

int
main (void)
{
  RUN (an_image_of_any_size_is_served_exactly);
  RUN (an_empty_image_attaches);
  RUN (an_image_of_zeros_is_served_without_a_blob);
  RUN (a_blob_is_served_as_a_disk);
  RUN (a_hot_read_completes_at_once);
  RUN (readers_who_miss_together_cause_one_fetch);
  RUN (a_miss_fetches_the_256_kib_around_it_behind_it);
  RUN (a_sequential_reader_is_read_ahead_of);
  return 0;
}
