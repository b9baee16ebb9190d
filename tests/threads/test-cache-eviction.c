/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The budget: who gives way, and who does not. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "tests/harness/check.h"
#include "tests/harness/pager-fixture.h"

enum {
  KIB = 1 << 10,
  MIB = 1 << 20,
  NR_READERS = 8
};

/* ---- Many readers ---- */

struct reader {
  pthread_t thread;
  struct export *export;
  const uint8_t *image;
  uint64_t size;
  uint64_t budget;
  unsigned number;
};

static void
check_used (const struct reader *reader)
{
  CHECK (METRIC_GET (cache_used_bytes) <= reader->budget + 256 * KIB);
}

/* Its own eighth of the image in order, and as much anywhere. */
static void *
read_eighth (void *opaque)
{
  const struct reader *reader = opaque;
  const uint64_t share = reader->size / NR_READERS;
  const uint64_t start = reader->number * share;
  uint64_t x = reader->number + 1, offset;
  uint32_t len;

  for (offset = start; offset < start + share; offset += len) {
    len = (uint32_t) MIN (50000, start + share - offset);
    CHECK_EQ (read_and_compare (reader->export, reader->image, offset, len),
              0);
    x = x * UINT64_C (6364136223846793005) + 1442695040888963407;
    CHECK_EQ (read_and_compare (reader->export, reader->image,
                                (x >> 20) % (reader->size - 300 * KIB),
                                1 + (uint32_t) (x >> 40) % (300 * KIB)),
              0);
    check_used (reader);
  }
  return NULL;
}

static void
eight_readers_over_twenty_budgets_get_every_byte (void)
{
  enum {
    BUDGET = 4 * MIB,
    SIZE = 20 * BUDGET
  };
  struct fixture f;
  uint8_t *image = image_bytes (SIZE, 11, true);
  struct reader readers[NR_READERS];
  struct export *export;
  unsigned i;

  fixture_init (&f, BUDGET);
  fake_add_image (f.driver, "disk", image, SIZE);
  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  for (i = 0; i < NR_READERS; i++) {
    readers[i] = (struct reader){ .export = export,
                                  .image = image,
                                  .size = SIZE,
                                  .budget = BUDGET,
                                  .number = i };
    CHECK_EQ (pthread_create (&readers[i].thread, NULL, read_eighth,
                              &readers[i]),
              0);
  }
  for (i = 0; i < NR_READERS; i++)
    pthread_join (readers[i].thread, NULL);
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

/* ---- Who gives way ---- */

static void
scan (struct export *export, const uint8_t *image, uint64_t from,
      uint64_t to)
{
  for (; from < to; from += 16 * KIB)
    CHECK_EQ (read_and_compare (export, image, from, 16 * KIB), 0);
}

static void
a_scan_does_not_evict_the_hot_set (void)
{
  enum {
    BUDGET = 32 * MIB,
    HOT = 8 * MIB,
    SIZE = 96 * MIB
  };
  struct fixture f;
  uint8_t *hot = image_bytes (HOT, 1, false);
  uint8_t *cold = image_bytes (SIZE, 2, false);
  struct export *hot_export, *cold_export;
  size_t fetches, all;
  unsigned i;

  fixture_init (&f, BUDGET);
  fake_add_image (f.driver, "hot", hot, HOT);
  fake_add_image (f.driver, "cold", cold, SIZE);
  CHECK_EQ (fixture_open (&f, "hot", &hot_export), 0);
  CHECK_EQ (fixture_open (&f, "cold", &cold_export), 0);
  fetches = fake_fetches (f.driver, NULL);
  scan (hot_export, hot, 0, HOT);
  fake_wait_idle (f.driver);
  all = fake_fetches (f.driver, NULL) - fetches;

  for (i = 0; i < 3; i++) { /* Used again and again, with others. */
    scan (cold_export, cold, i * 6 * MIB, (i + 1) * 6 * MIB);
    scan (hot_export, hot, 0, HOT);
  }
  scan (cold_export, cold, 18 * MIB, SIZE);
  fake_wait_idle (f.driver);

  fetches = fake_fetches (f.driver, NULL);
  scan (hot_export, hot, 0, HOT);
  fake_wait_idle (f.driver);
  fetches = fake_fetches (f.driver, NULL) - fetches;
  fprintf (stderr, "  of %zu hot windows %zu were evicted\n", all, fetches);
  CHECK (fetches * 20 <= all);

  fixture_close (hot_export);
  fixture_close (cold_export);
  fixture_done (&f);
  free (hot);
  free (cold);
}

static void
what_was_fetched_long_before_its_reader_comes_is_used_once (void)
{
  enum {
    BUDGET = 32 * MIB,
    HOT = 8 * MIB,
    SIZE = 96 * MIB,
    STEP = 6 * MIB
  };
  struct fixture f;
  uint8_t *hot = image_bytes (HOT, 1, false);
  uint8_t *cold = image_bytes (SIZE, 2, false);
  struct export *hot_export, *cold_export;
  uint64_t offset;
  size_t fetches;

  fixture_init (&f, BUDGET);
  fake_add_image (f.driver, "hot", hot, HOT);
  fake_add_image (f.driver, "cold", cold, SIZE);
  CHECK_EQ (fixture_open (&f, "hot", &hot_export), 0);
  CHECK_EQ (fixture_open (&f, "cold", &cold_export), 0);
  for (offset = 0; offset < 3 * STEP; offset += STEP) {
    scan (hot_export, hot, 0, HOT);
    scan (cold_export, cold, offset, offset + STEP);
  }
  for (; offset + 2 * STEP <= SIZE; offset += STEP) {
    export_prefetch (cold_export, offset + STEP, STEP);
    fake_wait_idle (f.driver);
    scan (cold_export, cold, offset, offset + STEP);
    fake_wait_idle (f.driver);
  }
  fetches = fake_fetches (f.driver, NULL);
  scan (hot_export, hot, 0, HOT);
  fake_wait_idle (f.driver);
  fetches = fake_fetches (f.driver, NULL) - fetches;
  fprintf (stderr, "  %zu hot windows were evicted\n", fetches);
  CHECK (fetches <= 6);
  fixture_close (hot_export);
  fixture_close (cold_export);
  fixture_done (&f);
  free (hot);
  free (cold);
}

static void
what_a_reply_holds_stays (void)
{
  enum {
    BUDGET = 8 * MIB,
    SIZE = 40 * MIB
  };
  struct fixture f;
  uint8_t *image = image_bytes (SIZE, 5, false);
  struct test_read held;
  struct export *export;

  fixture_init (&f, BUDGET);
  fake_add_image (f.driver, "disk", image, SIZE);
  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  test_read_start (&held, export, 12345, MIB);
  CHECK_EQ (test_read_wait (&held), 0);
  scan (export, image, 2 * MIB, SIZE);
  test_read_compare (&held, image + 12345);
  test_read_release (&held);
  scan (export, image, 0, 2 * MIB);
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

static void
a_read_of_half_the_budget_is_served (void)
{
  enum {
    BUDGET = 64 * MIB,
    SIZE = 80 * MIB,
    LEN = 32 * MIB
  };
  struct fixture f;
  uint8_t *image = image_bytes (SIZE, 6, true);
  struct export *export;
  uint64_t offset;

  fixture_init (&f, BUDGET);
  fake_add_image (f.driver, "disk", image, SIZE);
  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  for (offset = 0; offset <= SIZE - LEN; offset += 16 * MIB + 4096)
    CHECK_EQ (read_and_compare (export, image, offset, LEN), 0);
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

/* 4 KiB of data, 4 KiB of zeros: segments as small as they get. */
static uint8_t *
striped_bytes (size_t len)
{
  uint8_t *image = image_bytes (len, 9, false);
  size_t i;

  for (i = 0; i < len; i += 8192)
    memset (image + i, 0, 4096);
  return image;
}

static void
a_large_read_of_the_smallest_segments_is_served (void)
{
  enum {
    BUDGET = 64 * MIB,
    SIZE = 48 * MIB,
    LEN = 32 * MIB
  };
  struct fixture f;
  uint8_t *image = striped_bytes (SIZE);
  struct export *export;

  fixture_init (&f, BUDGET);
  fake_add_image (f.driver, "disk", image, SIZE);
  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  CHECK_EQ (read_and_compare (export, image, 0, LEN), 0);
  CHECK_EQ (read_and_compare (export, image, SIZE - LEN - 100, LEN), 0);
  CHECK (METRIC_GET (cache_used_bytes) <= BUDGET);
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

static void
the_fetcher_hears_of_a_blob_whose_last_window_has_gone (void)
{
  enum {
    BUDGET = 4 * MIB,
    SIZE = 40 * MIB,
    BLOB = 3 * MIB
  };
  struct fixture f;
  uint8_t *image = image_bytes (SIZE, 5, false);
  uint8_t *bytes = image_bytes (BLOB, 6, false);
  struct export *export, *other;
  struct bp_root root;
  char name[80] = "blob/";

  fixture_init (&f, BUDGET);
  fake_add_image (f.driver, "disk", image, SIZE);
  root = fake_add_blob (f.driver, bytes, BLOB);
  bp_root_format (&root, name + 5);
  CHECK_EQ (fixture_open (&f, name, &export), 0);
  CHECK_EQ (fixture_open (&f, "disk", &other), 0);
  CHECK_EQ (read_and_compare (export, bytes, 0, BLOB), 0);
  CHECK_EQ (fake_evicted (f.driver, &root), 0);
  scan (other, image, 0, SIZE);
  fake_wait_idle (f.driver);
  CHECK_EQ (fake_evicted (f.driver, &root), 1);
  fixture_close (export);
  fixture_close (other);
  fixture_done (&f);
  free (image);
  free (bytes);
}

/* What a pager uses that has done nothing. */
static uint64_t
used_at_first (uint64_t table_bytes)
{
  struct fixture f;
  uint64_t used;

  fake_table_bytes = table_bytes;
  fixture_init (&f, 16 * MIB);
  used = METRIC_GET (cache_used_bytes);
  fixture_done (&f);
  fake_table_bytes = 0;
  return used;
}

static void
tables_of_the_fetcher_are_charged_to_the_budget (void)
{
  CHECK_EQ (used_at_first (MIB), used_at_first (0) + MIB);
}

static void
nothing_is_left_in_use_when_all_is_over (void)
{
  CHECK_EQ (METRIC_GET (cache_used_bytes), 0);
  CHECK_EQ (METRIC_GET (cache_pinned_bytes), 0);
  CHECK_EQ (METRIC_GET (cache_budget_bytes), 0);
}

int
main (void)
{
  RUN (eight_readers_over_twenty_budgets_get_every_byte);
  RUN (a_scan_does_not_evict_the_hot_set);
  RUN (what_was_fetched_long_before_its_reader_comes_is_used_once);
  RUN (what_a_reply_holds_stays);
  RUN (a_read_of_half_the_budget_is_served);
  RUN (a_large_read_of_the_smallest_segments_is_served);
  RUN (the_fetcher_hears_of_a_blob_whose_last_window_has_gone);
  RUN (tables_of_the_fetcher_are_charged_to_the_budget);
  RUN (nothing_is_left_in_use_when_all_is_over);
  return 0;
}
