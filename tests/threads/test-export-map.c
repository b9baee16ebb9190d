/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Maps of exports: what is a hole, what is in memory, and what asking
 * costs.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "tests/harness/check.h"
#include "tests/harness/image.h"
#include "tests/harness/pager-fixture.h"
#include "tests/harness/vectors.h"

enum {
  KIB = 1 << 10,
  MIB = 1 << 20,
  PER_WINDOW = 2730, /* Entries of an index window. */
};

static const struct export_map
  both = { .wanted = { true, true }, .max = 1000 },
  allocation = { .wanted = { [MAP_ALLOCATION] = true }, .max = 1000 },
  residency = { .wanted = { [MAP_RESIDENCY] = true }, .max = 1000 };

/* ---- Images that are but an index: no blob of theirs can be fetched ---- */

struct disk {
  struct fixture f;
  struct segments segments;
  struct index_blob index;
  struct bp_root root;
  struct export *export;
};

/* NR_RUNS runs of NR_SEGMENTS segments of SEGMENT bytes each, each run
 * with a hole of HOLE bytes behind it.
 */
static void
disk_init (struct disk *disk, size_t nr_runs, size_t nr_segments,
           uint32_t segment, uint64_t hole)
{
  uint64_t offset = 0;
  size_t i;

  memset (disk, 0, sizeof *disk);
  disk->segments.count = nr_runs * nr_segments;
  disk->segments.list =
    calloc (disk->segments.count, sizeof *disk->segments.list);
  CHECK (disk->segments.list != NULL);
  for (i = 0; i < disk->segments.count; i++) {
    fill_splitmix (disk->segments.list[i].root.bytes, BP_ROOT_SIZE, i);
    disk->segments.list[i].offset = offset;
    disk->segments.list[i].len = segment;
    offset += segment + ((i + 1) % nr_segments == 0 ? hole : 0);
  }
  disk->segments.image_size = offset;
  index_of (&disk->index, &disk->segments);
  fixture_init (&disk->f, 64 * MIB);
  disk->root = fake_add_blob (disk->f.driver, disk->index.bytes,
                              disk->index.index.blob_size);
  fake_set_tag (disk->f.driver, "disk", &disk->root, offset,
                disk->segments.count);
  CHECK_EQ (fixture_open (&disk->f, "disk", &disk->export), 0);
}

static void
disk_done (struct disk *disk)
{
  fixture_close (disk->export);
  fake_wait_idle (disk->f.driver);
  fixture_done (&disk->f);
  index_done (&disk->index);
  segments_done (&disk->segments);
}

/* ---- Checking ---- */

/* Bytes that the extents of KIND describe; no two neighbours are alike. */
static uint64_t
covered (const struct export_map *map, enum map_kind kind)
{
  const struct map_extent *extents = map->extents[kind];
  uint64_t sum = 0;
  uint32_t i;

  CHECK (map->count[kind] >= 1);
  CHECK (map->count[kind] <= map->max);
  for (i = 0; i < map->count[kind]; i++) {
    CHECK (extents[i].len > 0);
    CHECK (i == 0 || extents[i].state != extents[i - 1].state);
    sum += extents[i].len;
  }
  return sum;
}

/* A map that must succeed; to be released. */
static struct export_map
map_of (struct test_read *read, const struct export_map *wanted,
        struct export *export, uint64_t offset, uint32_t len)
{
  struct export_map map = *wanted;
  unsigned i;

  test_map_start (read, &map, export, offset, len);
  CHECK_EQ (test_read_wait (read), 0);
  CHECK_EQ (read->op.nr_pieces, 0);
  for (i = 0; i < NR_MAP_KINDS; i++) {
    CHECK_EQ (map.extents[i] != NULL, wanted->wanted[i]);
    if (wanted->wanted[i])
      CHECK (covered (&map, i) <= len);
  }
  return map;
}

/* The whole of OFFSET, LEN is in STATE. */
static void
expect_state (const struct export_map *wanted, enum map_kind kind,
              struct export *export, uint64_t offset, uint32_t len,
              uint32_t state)
{
  struct test_read read;
  const struct export_map map = map_of (&read, wanted, export, offset, len);

  CHECK_EQ (map.count[kind], 1);
  CHECK_EQ (map.extents[kind][0].len, len);
  CHECK_EQ (map.extents[kind][0].state, state);
  test_read_release (&read);
}

/* ---- What lies where ---- */

/* Where the run of zero blocks, or of others, at OFFSET ends. */
static uint64_t
end_of_run (const uint8_t *image, uint64_t size, uint64_t offset)
{
  const uint64_t block = 4 * KIB;
  uint64_t at = round_down (offset, block);
  const bool is_zero = bytes_are_zero (image + at, MIN (block, size - at));

  while (at < size &&
         bytes_are_zero (image + at, MIN (block, size - at)) == is_zero)
    at += block;
  return MIN (at, size);
}

static void
expect_true_map (struct export *export, const uint8_t *image, uint64_t size,
                 uint64_t offset, uint32_t len)
{
  struct test_read read;
  const struct export_map map =
    map_of (&read, &allocation, export, offset, len);
  const uint64_t end = offset + len;
  uint32_t i;

  for (i = 0; i < map.count[MAP_ALLOCATION]; i++) {
    const struct map_extent *extent = &map.extents[MAP_ALLOCATION][i];
    const uint64_t run_end = end_of_run (image, size, offset);

    CHECK_EQ (extent->len, MIN (run_end, end) - offset);
    CHECK_EQ (extent->state == MAP_HOLE,
              bytes_are_zero (image + offset, extent->len));
    offset += extent->len;
  }
  CHECK_EQ (offset, end);
  test_read_release (&read);
}

static void
a_map_has_one_extent_for_each_run_of_segments_and_each_gap (void)
{
  const uint64_t size = 3 * MIB + 777;
  struct fixture f;
  uint8_t *image = image_bytes (size, 5, true);
  struct export *export;
  uint64_t state = 1;
  int i;

  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "disk", image, size);
  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  expect_true_map (export, image, size, 0, (uint32_t) size);
  expect_true_map (export, image, size, size - 1, 1);
  for (i = 0; i < 300; i++) {
    const uint64_t offset = splitmix64 (&state) % size;

    expect_true_map (export, image, size, offset,
                     1 + (uint32_t) (splitmix64 (&state) % (size - offset)));
  }
  /* Nothing but the index has been fetched for all that. */
  CHECK_EQ (fake_fetches (f.driver, NULL), 1);
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

static void
a_blob_is_all_data (void)
{
  struct fixture f;
  uint8_t *bytes = image_bytes (MIB + 5, 7, true);
  struct export *export;
  struct bp_root root;
  char name[80] = "blob/";

  fixture_init (&f, 64 * MIB);
  root = fake_add_blob (f.driver, bytes, MIB + 5);
  bp_root_format (&root, name + 5);
  CHECK_EQ (fixture_open (&f, name, &export), 0);
  expect_state (&both, MAP_ALLOCATION, export, 0, MIB + 5, MAP_DATA);
  expect_state (&both, MAP_RESIDENCY, export, 0, 768 * KIB, MAP_ABSENT);
  CHECK_EQ (read_and_compare (export, bytes, 128 * KIB, 1), 0);
  fake_wait_idle (f.driver);
  expect_state (&both, MAP_RESIDENCY, export, 128 * KIB, 128 * KIB,
                MAP_VERIFIED);
  fixture_close (export);
  fixture_done (&f);
  free (bytes);
}

static void
a_hole_of_any_size_is_one_extent_of_the_length_asked_for (void)
{
  struct disk disk;
  const uint64_t hole = (UINT64_C (1) << 62) - 4096;
  const uint64_t places[] = { 4096, UINT64_C (1) << 32, UINT64_C (1) << 40,
                              hole - 1 };
  size_t i;

  disk_init (&disk, 1, 1, 4096, hole);
  CHECK_EQ (export_get_info (disk.export)->size, UINT64_C (1) << 62);
  for (i = 0; i < ARRAY_LEN (places); i++) {
    const uint32_t len =
      (uint32_t) MIN (UINT32_MAX, (UINT64_C (1) << 62) - places[i]);

    expect_state (&both, MAP_ALLOCATION, disk.export, places[i], len,
                  MAP_HOLE);
    expect_state (&both, MAP_RESIDENCY, disk.export, places[i], len,
                  MAP_VERIFIED);
  }
  disk_done (&disk);
}

static void
runs_are_merged_over_the_windows_of_the_index (void)
{
  struct disk disk;

  disk_init (&disk, 1, 3 * PER_WINDOW, 128 * KIB, 0);
  expect_state (&allocation, MAP_ALLOCATION, disk.export, 300 * MIB + 77,
                400 * MIB, MAP_DATA);
  disk_done (&disk);
}

/* ---- Limits ---- */

static void
no_more_extents_than_there_is_room_for (void)
{
  struct disk disk;
  struct export_map wanted = both;
  struct test_read read;
  uint32_t max;

  disk_init (&disk, 500, 2, 8 * KIB, 4 * KIB);
  for (max = 1; max < 100; max += 7) {
    wanted.max = max;
    map_of (&read, &wanted, disk.export, 4 * KIB, MIB);
    test_read_release (&read);
  }
  /* One extent: as long as it is, or as was asked. */
  wanted.max = 1;
  expect_state (&wanted, MAP_ALLOCATION, disk.export, 0, 4 * KIB, MAP_DATA);
  map_of (&read, &wanted, disk.export, 0, MIB);
  test_read_release (&read);
  {
    const struct export_map map =
      map_of (&read, &wanted, disk.export, 8 * KIB, MIB);

    CHECK_EQ (map.count[MAP_ALLOCATION], 1);
    CHECK_EQ (map.extents[MAP_ALLOCATION][0].len, 8 * KIB);
    test_read_release (&read);
  }
  disk_done (&disk);
}

/* Calls that it takes to map DISK from end to end. */
static unsigned
calls_for (struct disk *disk, const struct export_map *wanted,
           enum map_kind kind)
{
  const uint64_t size = disk->segments.image_size;
  uint64_t offset = 0;
  unsigned calls = 0;

  while (offset < size) {
    struct test_read read;
    const struct export_map map =
      map_of (&read, wanted, disk->export, offset,
              (uint32_t) MIN (size - offset, UINT32_MAX));

    CHECK_EQ (map.count[kind], 1);
    offset += covered (&map, kind);
    test_read_release (&read);
    calls++;
  }
  CHECK_EQ (offset, size);
  return calls;
}

static void
a_range_of_many_segments_is_answered_in_part (void)
{
  struct disk disk;

  disk_init (&disk, 1, 100000, 4 * KIB, 0);
  CHECK_EQ (calls_for (&disk, &allocation, MAP_ALLOCATION), 25);
  CHECK_EQ (calls_for (&disk, &residency, MAP_RESIDENCY), 74);
  disk_done (&disk);
}

/* ---- What is in memory ---- */

static void
residency_tells_absent_from_on_its_way_from_verified (void)
{
  struct fixture f;
  uint8_t *image = image_bytes (4 * MIB, 5, false);
  struct export *export;
  struct test_read read;

  memset (image + MIB, 0, MIB);
  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "disk", image, 4 * MIB);
  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  expect_state (&residency, MAP_RESIDENCY, export, 2 * MIB, 2 * MIB,
                MAP_ABSENT);
  expect_state (&both, MAP_RESIDENCY, export, MIB, MIB, MAP_VERIFIED);

  fake_hold (f.driver);
  CHECK (!test_read_start (&read, export, 0, MIB));
  expect_state (&both, MAP_RESIDENCY, export, 0, MIB, MAP_ON_ITS_WAY);
  fake_let_go (f.driver);
  CHECK_EQ (test_read_wait (&read), 0);
  test_read_release (&read);
  expect_state (&both, MAP_RESIDENCY, export, 0, 2 * MIB, MAP_VERIFIED);
  expect_state (&both, MAP_ALLOCATION, export, 0, MIB, MAP_DATA);
  fake_wait_idle (f.driver);
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

static void
what_failed_is_absent (void)
{
  struct disk disk;

  disk_init (&disk, 1, 8, 128 * KIB, 0);
  CHECK_EQ (read_and_compare (disk.export, NULL, 0, 1), -ENOENT);
  fake_wait_idle (disk.f.driver);
  expect_state (&both, MAP_RESIDENCY, disk.export, 0, MIB, MAP_ABSENT);
  disk_done (&disk);
}

/* ---- What it costs ---- */

static void
saw_read (void *opaque, struct export *export, uint64_t offset, uint32_t len)
{
  (void) opaque;
  (void) export;
  (void) offset;
  (void) len;
  CHECK (!"a map is no read");
}

static void
saw_served (void *opaque, const struct read_op *op)
{
  saw_read (opaque, op->export, op->offset, op->len);
}

static void
saw_entered (void *opaque, struct export *export)
{
  (void) opaque;
  (void) export;
}

static void
saw_left (void *opaque, struct export *export, unsigned remaining)
{
  (void) opaque;
  (void) export;
  (void) remaining;
}

static void
a_map_is_no_read_no_stall_and_no_use (void)
{
  const struct pager_observer observer = { saw_entered, saw_left, saw_read,
                                           saw_served, NULL };
  const uint64_t hits = METRIC_GET (cache_hits);
  const uint64_t misses = METRIC_GET (cache_misses);
  struct disk disk;
  struct export_counts counts;

  disk_init (&disk, 1, 3 * PER_WINDOW, 128 * KIB, 0);
  pager_observe (disk.f.pager, &observer);
  export_watch (disk.export, 1);
  expect_state (&allocation, MAP_ALLOCATION, disk.export, 0, 400 * MIB,
                MAP_DATA);
  expect_state (&allocation, MAP_ALLOCATION, disk.export, 900 * MIB, MIB,
                MAP_DATA);
  /* Of the index: what opening fetched, and windows 1 and 2. */
  CHECK_EQ (fake_fetches (disk.f.driver, &disk.root), 3);
  CHECK_EQ (fake_fetches (disk.f.driver, NULL), 3);
  export_get_counts (disk.export, &counts);
  CHECK_EQ (counts.reads, 0);
  CHECK_EQ (counts.bytes_read, 0);
  CHECK_EQ (counts.stalls, 0);
  CHECK_EQ (METRIC_GET (cache_hits), hits);
  CHECK_EQ (METRIC_GET (cache_misses), misses);
  export_watch (disk.export, -1);
  pager_observe (disk.f.pager, NULL);
  disk_done (&disk);
}

/* ---- Failures ---- */

static void
a_map_ends_where_the_index_cannot_be_read (void)
{
  struct disk disk;
  struct export_map map = allocation;
  struct test_read read;
  uint64_t known;

  disk_init (&disk, 1, 3 * PER_WINDOW, 128 * KIB, 0);
  fake_fail (disk.f.driver, &disk.root, -EIO);
  map = map_of (&read, &allocation, disk.export, 0, 1000 * MIB);
  known = covered (&map, MAP_ALLOCATION);
  CHECK (known > 300 * MIB && known < 400 * MIB);
  test_read_release (&read);

  map = allocation;
  test_map_start (&read, &map, disk.export, known, MIB);
  CHECK_EQ (test_read_wait (&read), -EIO);
  CHECK_EQ (read.op.bad_offset, known);
  test_read_release (&read);

  fake_fail (disk.f.driver, &disk.root, 0);
  expect_state (&allocation, MAP_ALLOCATION, disk.export, known, MIB,
                MAP_DATA);
  disk_done (&disk);
}

static void
a_map_that_waits_can_be_cancelled (void)
{
  struct disk disk;
  struct export_map map;
  struct test_read read;
  unsigned i;

  for (i = 0; i < 50; i++) {
    disk_init (&disk, 1, 3 * PER_WINDOW, 128 * KIB, 0);
    fake_hold (disk.f.driver);
    map = allocation;
    CHECK (!test_map_start (&read, &map, disk.export, 0, 1000 * MIB));
    fake_wait_queued (disk.f.driver, 1);
    /* In half of the rounds it may be going on just now. */
    if (i % 2 == 0)
      fake_let_go (disk.f.driver);
    read_op_cancel (&read.op);
    test_read_wait (&read);
    CHECK (read.op.status == 0 || read.op.status == -ESHUTDOWN);
    CHECK (i % 2 == 0 || read.op.status == -ESHUTDOWN);
    test_read_release (&read);
    memset (&map, 0xdd, sizeof map); /* It is nobody's any more. */
    fake_let_go (disk.f.driver);
    disk_done (&disk);
  }
}

int
main (void)
{
  RUN (a_map_has_one_extent_for_each_run_of_segments_and_each_gap);
  RUN (a_blob_is_all_data);
  RUN (a_hole_of_any_size_is_one_extent_of_the_length_asked_for);
  RUN (runs_are_merged_over_the_windows_of_the_index);
  RUN (no_more_extents_than_there_is_room_for);
  RUN (a_range_of_many_segments_is_answered_in_part);
  RUN (residency_tells_absent_from_on_its_way_from_verified);
  RUN (what_failed_is_absent);
  RUN (a_map_is_no_read_no_stall_and_no_use);
  RUN (a_map_ends_where_the_index_cannot_be_read);
  RUN (a_map_that_waits_can_be_cancelled);
  return 0;
}
