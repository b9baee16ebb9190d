/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What cannot be verified fails, exactly that, and for as long as it must. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/bytes.h"
#include "lib/base/clock.h"
#include "daemon/metrics.h"
#include "tests/harness/check.h"
#include "tests/harness/image.h"
#include "tests/harness/pager-fixture.h"

enum {
  KIB = 1 << 10,
  MIB = 1 << 20
};

/* An image, its segments, and an export of it. */
struct disk {
  struct fixture f;
  uint8_t *image;
  struct segments segments;
  struct export *export;
};

static void
disk_init (struct disk *disk, size_t size)
{
  disk->image = image_bytes (size, 21, false);
  fixture_init (&disk->f, 64 * MIB);
  fake_add_image (disk->f.driver, "disk", disk->image, size);
  segments_of (&disk->segments, disk->image, size, size);
  CHECK (disk->segments.count >= 8);
  CHECK_EQ (fixture_open (&disk->f, "disk", &disk->export), 0);
}

static void
disk_done (struct disk *disk)
{
  fixture_close (disk->export);
  fake_wait_idle (disk->f.driver);
  fixture_done (&disk->f);
  segments_done (&disk->segments);
  free (disk->image);
}

static int
read_segment (struct disk *disk, size_t i)
{
  const struct segment *segment = &disk->segments.list[i];

  return read_and_compare (disk->export, disk->image, segment->offset,
                           segment->len);
}

static void
a_corrupt_blob_fails_exactly_its_range (void)
{
  struct disk disk;
  const struct segment *bad;
  struct test_read read;
  size_t i;

  disk_init (&disk, 2 * MIB);
  bad = &disk.segments.list[5];
  fake_fail (disk.f.driver, &bad->root, -EBADMSG);
  for (i = 0; i < disk.segments.count; i++)
    CHECK_EQ (read_segment (&disk, i), i == 5 ? -EBADMSG : 0);

  /* Up to it and from behind it all is well; a byte of it is enough. */
  CHECK_EQ (read_and_compare (disk.export, disk.image, 0,
                              (uint32_t) bad->offset),
            0);
  CHECK_EQ (read_and_compare (disk.export, disk.image, 0,
                              (uint32_t) bad->offset + 1),
            -EBADMSG);
  test_read_start (&read, disk.export, 100, MIB + 500 * KIB);
  CHECK_EQ (test_read_wait (&read), -EBADMSG);
  CHECK_EQ (read.op.bad_offset, bad->offset);
  test_read_release (&read);
  disk_done (&disk);
}

/* A read of DISK from OFFSET fails at BAD_OFFSET, and has all before. */
static void
expect_prefix (struct disk *disk, uint64_t offset, uint64_t bad_offset)
{
  struct test_read read;

  test_read_start (&read, disk->export, offset, 2 * MIB - offset);
  CHECK_EQ (test_read_wait (&read), -EBADMSG);
  CHECK_EQ (read.op.bad_offset, bad_offset);
  test_read_compare (&read, disk->image + offset);
  test_read_release (&read);
}

/* The first of two failures, whether the windows before are there already
 * or come with it.
 */
static void
what_precedes_a_failure_is_delivered (void)
{
  struct disk disk;
  const struct segment *bad;

  disk_init (&disk, 2 * MIB);
  bad = &disk.segments.list[5];
  fake_fail (disk.f.driver, &bad->root, -EBADMSG);
  fake_fail (disk.f.driver, &disk.segments.list[7].root, -EBADMSG);
  expect_prefix (&disk, 0, bad->offset);
  expect_prefix (&disk, 4097, bad->offset);
  expect_prefix (&disk, bad->offset, bad->offset);
  expect_prefix (&disk, bad->offset + 1, bad->offset + 1);
  disk_done (&disk);
}

static void
a_corrupt_window_is_remembered_for_one_second (void)
{
  struct disk disk;
  const struct segment *bad;
  uint64_t start = now_ns ();
  const struct timespec tick = { .tv_nsec = 10 * NS_PER_MS };
  int status;

  disk_init (&disk, 2 * MIB);
  bad = &disk.segments.list[5];
  fake_fail (disk.f.driver, &bad->root, -EBADMSG);
  CHECK_EQ (read_segment (&disk, 5), -EBADMSG);
  fake_fail (disk.f.driver, &bad->root, 0);
  start = now_ns ();
  while ((status = read_segment (&disk, 5)) == -EBADMSG) {
    CHECK_EQ (fake_fetches (disk.f.driver, &bad->root), 1);
    CHECK (now_ns () - start < 10 * NS_PER_SEC);
    nanosleep (&tick, NULL);
  }
  CHECK_EQ (status, 0);
  CHECK_EQ (fake_fetches (disk.f.driver, &bad->root), 2);
  CHECK (now_ns () - start > NS_PER_SEC * 8 / 10);
  disk_done (&disk);
}

/* The status of segment I when what is remembered of it has gone. */
static int
read_when_forgotten (struct disk *disk, size_t i)
{
  const struct timespec tick = { .tv_nsec = 10 * NS_PER_MS };
  int status;

  while ((status = read_segment (disk, i)) == -EBADMSG)
    nanosleep (&tick, NULL);
  return status;
}

static void
a_remembered_failure_may_be_followed_by_another_kind (void)
{
  struct disk disk;
  size_t last; /* Far away from the other, so not fetched with it. */

  disk_init (&disk, 2 * MIB);
  last = disk.segments.count - 1;
  fake_fail (disk.f.driver, &disk.segments.list[5].root, -EBADMSG);
  CHECK_EQ (read_segment (&disk, 5), -EBADMSG);
  fake_fail (disk.f.driver, &disk.segments.list[5].root, -EIO);
  CHECK_EQ (read_when_forgotten (&disk, 5), -EIO);
  fake_wait_idle (disk.f.driver);
  /* Old failures are looked through when a new one comes. */
  fake_fail (disk.f.driver, &disk.segments.list[last].root, -EBADMSG);
  CHECK_EQ (read_segment (&disk, last), -EBADMSG);
  fake_fail (disk.f.driver, &disk.segments.list[5].root, 0);
  CHECK_EQ (read_segment (&disk, 5), 0);
  disk_done (&disk);
}

static void
what_the_driver_could_not_read_is_tried_again_at_once (void)
{
  struct disk disk;

  disk_init (&disk, 2 * MIB);
  fake_fail (disk.f.driver, &disk.segments.list[3].root, -EIO);
  CHECK_EQ (read_segment (&disk, 3), -EIO);
  fake_fail (disk.f.driver, &disk.segments.list[3].root, 0);
  CHECK_EQ (read_segment (&disk, 3), 0);
  disk_done (&disk);
}

static void
absence_and_nonsense_keep_their_codes (void)
{
  struct disk disk;

  disk_init (&disk, 2 * MIB);
  fake_fail (disk.f.driver, &disk.segments.list[1].root, -ENOENT);
  fake_fail (disk.f.driver, &disk.segments.list[6].root, -EPROTO);
  CHECK_EQ (read_segment (&disk, 1), -ENOENT);
  CHECK_EQ (read_segment (&disk, 6), -EPROTO);
  CHECK_EQ (read_segment (&disk, 3), 0);
  disk_done (&disk);
}

static void
the_memory_of_a_timed_out_fetch_is_kept_until_it_is_retired (void)
{
  struct disk disk;
  const struct bp_root *root;
  uint64_t used;

  disk_init (&disk, 2 * MIB);
  root = &disk.segments.list[5].root;
  fake_fail (disk.f.driver, root, -ETIMEDOUT);
  CHECK_EQ (read_segment (&disk, 5), -EIO);
  fake_wait_idle (disk.f.driver);
  used = METRIC_GET (cache_used_bytes);

  /* The late answer goes nowhere that anybody reads. */
  fake_fail (disk.f.driver, root, 0);
  CHECK_EQ (read_segment (&disk, 5), 0);
  fake_retire (disk.f.driver);
  CHECK_EQ (read_segment (&disk, 5), 0);
  CHECK_EQ (fake_fetches (disk.f.driver, root), 2);
  fake_wait_idle (disk.f.driver);
  /* The window and its struct came, the page-in's went. */
  CHECK (METRIC_GET (cache_used_bytes) <= used + 4 * KIB);
  disk_done (&disk);
}

static void
failures_do_not_eat_the_budget (void)
{
  struct disk disk;
  uint64_t used;
  unsigned round;

  disk_init (&disk, 2 * MIB);
  fake_fail (disk.f.driver, &disk.segments.list[5].root, -EIO);
  CHECK_EQ (read_segment (&disk, 5), -EIO);
  fake_wait_idle (disk.f.driver);
  used = METRIC_GET (cache_used_bytes);
  for (round = 0; round < 100; round++)
    CHECK_EQ (read_segment (&disk, 5), -EIO);
  fake_wait_idle (disk.f.driver);
  CHECK (METRIC_GET (cache_used_bytes) <= used + 16 * KIB);
  disk_done (&disk);
}

/* ---- A malformed index ---- */

/* An image whose index has several windows: 4 KiB segments. */
static uint8_t *
striped_bytes (size_t len)
{
  uint8_t *image = image_bytes (len, 9, false);
  size_t i;

  for (i = 0; i < len; i += 8192)
    memset (image + i, 0, 4096);
  return image;
}

/* Set the flags of the entry at PLACE of the index, and serve that as
 * "disk".
 */
static void
serve_malformed (struct fixture *f, struct index_blob *blob, size_t place,
                 uint64_t size)
{
  struct bp_root root;

  put_le32 (blob->bytes + place + 12, 1);
  root = fake_add_blob (f->driver, blob->bytes, blob->index.blob_size);
  fake_set_tag (f->driver, "disk", &root, size, blob->index.nr_entries);
}

static void
a_malformed_index_window_fails_what_it_covers (void)
{
  enum {
    SIZE = 64 * MIB
  };
  struct fixture f;
  uint8_t *image = striped_bytes (SIZE);
  struct segments segments;
  struct index_blob blob;
  struct export *export;
  struct test_read read;
  uint64_t from, to;

  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "disk", image, SIZE);
  segments_of (&segments, image, SIZE, SIZE);
  index_of (&blob, &segments);
  CHECK (blob.index.nr_fences >= 3);
  from = get_le64 (blob.bytes + BP_INDEX_HEADER_SIZE + 8);
  to = get_le64 (blob.bytes + BP_INDEX_HEADER_SIZE + 16);
  serve_malformed (&f, &blob, 2 * BP_WINDOW_SIZE + 4800, SIZE);

  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  CHECK_EQ (read_and_compare (export, image, from - 8192, 8192), 0);
  CHECK_EQ (read_and_compare (export, image, from, 1), -EPROTO);
  CHECK_EQ (read_and_compare (export, image, to - 1, 1), -EPROTO);
  CHECK_EQ (read_and_compare (export, image, to, 4096), 0);
  CHECK_EQ (read_and_compare (export, image, from - 8192, 16384), -EPROTO);

  /* What the plan has before it. */
  test_read_start (&read, export, from - MIB, 2 * MIB);
  CHECK_EQ (test_read_wait (&read), -EPROTO);
  CHECK_EQ (read.op.bad_offset, from);
  test_read_compare (&read, image + from - MIB);
  test_read_release (&read);

  fixture_close (export);
  fake_wait_idle (f.driver);
  fixture_done (&f);
  index_done (&blob);
  segments_done (&segments);
  free (image);
}

static void
an_image_with_a_malformed_first_window_does_not_attach (void)
{
  struct fixture f;
  uint8_t *image = image_bytes (MIB, 1, false);
  struct segments segments;
  struct index_blob blob;
  struct export *export;

  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "disk", image, MIB);
  segments_of (&segments, image, MIB, MIB);
  index_of (&blob, &segments);
  serve_malformed (&f, &blob, BP_INDEX_HEADER_SIZE, MIB);
  CHECK_EQ (fixture_open (&f, "disk", &export), -EPROTO);
  fixture_done (&f);
  index_done (&blob);
  segments_done (&segments);
  free (image);
}

int
main (void)
{
  RUN (a_corrupt_blob_fails_exactly_its_range);
  RUN (what_precedes_a_failure_is_delivered);
  RUN (a_corrupt_window_is_remembered_for_one_second);
  RUN (a_remembered_failure_may_be_followed_by_another_kind);
  RUN (what_the_driver_could_not_read_is_tried_again_at_once);
  RUN (absence_and_nonsense_keep_their_codes);
  RUN (the_memory_of_a_timed_out_fetch_is_kept_until_it_is_retired);
  RUN (failures_do_not_eat_the_budget);
  RUN (a_malformed_index_window_fails_what_it_covers);
  RUN (an_image_with_a_malformed_first_window_does_not_attach);
  return 0;
}
