/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Prefetch for a replay: pins, their share, and how clients take over. */
#include <config.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/metrics.h"
#include "tests/harness/check.h"
#include "tests/harness/image.h"
#include "tests/harness/pager-fixture.h"

enum {
  KIB = 1 << 10,
  MIB = 1 << 20,
  SIZE = 40 * MIB,
  BUDGET = 8 * MIB
};

/* What replays were told. */
struct told {
  _Atomic unsigned calls;
  _Atomic uint64_t bytes;
  _Atomic int status; /* Of the last. */
};

struct disk {
  struct fixture f;
  uint8_t *image;
  struct segments segments;
  struct export *export;
  struct fetch_user *user;
  struct told told;
};

static void
disk_init (struct disk *disk)
{
  disk->told = (struct told){ 0 };
  disk->image = image_bytes (SIZE, 41, false);
  fixture_init (&disk->f, BUDGET);
  fake_add_image (disk->f.driver, "disk", disk->image, SIZE);
  segments_of (&disk->segments, disk->image, SIZE, SIZE);
  CHECK_EQ (fixture_open (&disk->f, "disk", &disk->export), 0);
  disk->user = fetcher_user_new (driver_fetcher (disk->f.driver));
}

static void
disk_done (struct disk *disk)
{
  fixture_close (disk->export);
  fake_wait_idle (disk->f.driver);
  fetcher_user_free (driver_fetcher (disk->f.driver), disk->user);
  fixture_done (&disk->f);
  segments_done (&disk->segments);
  free (disk->image);
  CHECK_EQ (METRIC_GET (cache_used_bytes), 0);
  CHECK_EQ (METRIC_GET (cache_pinned_bytes), 0);
}

static void
prefetched (void *opaque, uint32_t len, int status)
{
  struct told *told = opaque;

  atomic_store (&told->status, status);
  atomic_fetch_add (&told->bytes, len);
  atomic_fetch_add (&told->calls, 1);
}

static int
prefetch (struct disk *disk, size_t i, struct pin_set *pins)
{
  const struct segment *segment = &disk->segments.list[i];

  return pager_prefetch (disk->f.pager, &segment->root, segment->len, 0,
                         disk->user, pins, prefetched, &disk->told);
}

static int
read_segment (struct disk *disk, size_t i)
{
  const struct segment *segment = &disk->segments.list[i];

  return read_and_compare (disk->export, disk->image, segment->offset,
                           segment->len);
}

static bool
is_resident (struct disk *disk, size_t i)
{
  return pager_is_resident (disk->f.pager, &disk->segments.list[i].root, 0);
}

static void
scan (struct disk *disk, uint64_t from)
{
  for (; from + 64 * KIB <= SIZE; from += 64 * KIB)
    CHECK_EQ (read_and_compare (disk->export, disk->image, from, 64 * KIB),
              0);
}

static uint64_t
segments_bytes (const struct disk *disk, size_t from, size_t to)
{
  uint64_t bytes = 0;

  for (; from < to; from++)
    bytes += disk->segments.list[from].len;
  return bytes;
}

static void
what_is_pinned_survives_a_scan_and_is_counted_once (void)
{
  enum {
    PINNED = 20
  };
  struct disk disk;
  struct pin_set *pins;
  struct pin_set_counts counts;
  uint64_t used = 0;
  size_t i;

  disk_init (&disk);
  pins = pin_set_new (disk.f.pager);
  for (i = 0; i < PINNED; i++)
    CHECK_EQ (prefetch (&disk, i, pins), 0);
  fake_wait_idle (disk.f.driver);
  CHECK_EQ (disk.told.calls, PINNED);
  CHECK_EQ (disk.told.bytes, segments_bytes (&disk, 0, PINNED));
  for (i = 0; i < PINNED; i++) /* Again: resident. */
    CHECK_EQ (prefetch (&disk, i, pins), 1);
  CHECK_EQ (METRIC_GET (cache_pinned_bytes),
            segments_bytes (&disk, 0, PINNED));
  scan (&disk, disk.segments.list[PINNED + 6].offset);
  for (i = 0; i < PINNED; i++)
    CHECK (is_resident (&disk, i));

  for (i = 5; i < 9; i++) {
    CHECK_EQ (read_segment (&disk, i), 0);
    used += disk.segments.list[i].len;
  }
  pin_set_count (pins, &counts);
  CHECK_EQ (counts.prefetched_bytes, segments_bytes (&disk, 0, PINNED));
  CHECK_EQ (counts.used_bytes, used);
  CHECK_EQ (counts.wasted_bytes, counts.prefetched_bytes - used);
  CHECK_EQ (counts.late, 0);

  pin_set_free (pins);
  CHECK_EQ (METRIC_GET (cache_pinned_bytes), 0);
  scan (&disk, disk.segments.list[PINNED + 6].offset);
  CHECK (!is_resident (&disk, 0));
  disk_done (&disk);
}

static void
at_most_half_of_the_budget_is_pinned (void)
{
  struct disk disk;
  struct pin_set *pins, *others;
  size_t i = 0;
  int r;

  disk_init (&disk);
  pins = pin_set_new (disk.f.pager);
  others = pin_set_new (disk.f.pager);
  while ((r = prefetch (&disk, i, pins)) == 0) {
    fake_wait_idle (disk.f.driver);
    i++;
  }
  CHECK_EQ (r, -ENOSPC);
  CHECK (METRIC_GET (cache_pinned_bytes) <= BUDGET / 2);
  CHECK (METRIC_GET (cache_pinned_bytes) > BUDGET / 2 - 128 * KIB);
  /* Pinned by another set too, it takes no more. */
  CHECK_EQ (prefetch (&disk, 0, others), 1);
  pin_set_free (pins);
  CHECK_EQ (METRIC_GET (cache_pinned_bytes), disk.segments.list[0].len);
  scan (&disk, 8 * MIB);
  CHECK (is_resident (&disk, 0));
  pin_set_free (others);
  disk_done (&disk);
}

static void
pins_give_way_to_a_client_when_nothing_else_is_left (void)
{
  struct disk disk;
  struct pin_set *pins;
  struct pin_set_counts before, after;
  size_t i = 0;

  disk_init (&disk);
  pins = pin_set_new (disk.f.pager);
  while (prefetch (&disk, i, pins) == 0) {
    fake_wait_idle (disk.f.driver);
    i++;
  }
  CHECK_EQ (read_segment (&disk, 0), 0);
  pin_set_count (pins, &before);
  CHECK_EQ (read_and_compare (disk.export, disk.image, 20 * MIB, 6 * MIB),
            0);
  CHECK (METRIC_GET (cache_pinned_bytes) < BUDGET / 2);
  pin_set_count (pins, &after); /* What was is not forgotten. */
  CHECK_EQ (after.prefetched_bytes, before.prefetched_bytes);
  CHECK_EQ (after.used_bytes, before.used_bytes);
  pin_set_free (pins);
  disk_done (&disk);
}

static void
a_client_takes_over_what_is_queued_for_replay (void)
{
  struct disk disk;
  struct pin_set *pins;
  struct pin_set_counts counts;
  struct test_read read;
  const struct segment *segment;
  size_t i;

  disk_init (&disk);
  segment = &disk.segments.list[7];
  pins = pin_set_new (disk.f.pager);
  fake_hold (disk.f.driver);
  for (i = 0; i < 8; i++)
    CHECK_EQ (prefetch (&disk, i, pins), 0);
  CHECK (!test_read_start (&read, disk.export, segment->offset,
                           segment->len));
  CHECK_EQ (fake_promotions (disk.f.driver), 1);
  fake_let_some (disk.f.driver, 1); /* Demand before replay: that one. */
  CHECK_EQ (test_read_wait (&read), 0);
  test_read_compare (&read, disk.image + segment->offset);
  test_read_release (&read);
  CHECK_EQ (fake_fetches (disk.f.driver, &segment->root), 1);

  fake_let_go (disk.f.driver);
  fake_wait_idle (disk.f.driver);
  CHECK_EQ (disk.told.calls, 8);
  pin_set_count (pins, &counts);
  CHECK_EQ (counts.late, 1);
  CHECK_EQ (counts.used_bytes, segment->len);
  pin_set_free (pins);
  disk_done (&disk);
}

static void
a_replay_joins_what_a_client_fetches (void)
{
  struct disk disk;
  struct pin_set *pins;
  struct pin_set_counts counts;
  struct test_read read;

  disk_init (&disk);
  pins = pin_set_new (disk.f.pager);
  fake_hold (disk.f.driver);
  CHECK (!test_read_start (&read, disk.export, 0, 4096));
  CHECK_EQ (prefetch (&disk, 0, pins), 0);
  fake_let_go (disk.f.driver);
  CHECK_EQ (test_read_wait (&read), 0);
  test_read_release (&read);
  fake_wait_idle (disk.f.driver);
  CHECK_EQ (disk.told.calls, 1);
  CHECK_EQ (disk.told.bytes, 0); /* Not fetched for it. */
  pin_set_count (pins, &counts);
  CHECK_EQ (counts.prefetched_bytes, 0);
  CHECK_EQ (counts.late, 1);
  scan (&disk, 8 * MIB);
  CHECK (is_resident (&disk, 0));
  pin_set_free (pins);
  disk_done (&disk);
}

static void
a_prefetch_that_fails_says_so_and_pins_nothing (void)
{
  struct disk disk;
  struct pin_set *pins;
  struct pin_set_counts counts;

  disk_init (&disk);
  pins = pin_set_new (disk.f.pager);
  fake_fail (disk.f.driver, &disk.segments.list[2].root, -EBADMSG);
  CHECK_EQ (prefetch (&disk, 2, pins), 0);
  fake_wait_idle (disk.f.driver);
  CHECK_EQ (disk.told.calls, 1);
  CHECK_EQ (disk.told.status, -EBADMSG);
  CHECK_EQ (METRIC_GET (cache_pinned_bytes), 0);
  pin_set_count (pins, &counts);
  CHECK_EQ (counts.prefetched_bytes, 0);
  pin_set_free (pins);
  disk_done (&disk);
}

static void
a_pin_set_may_go_while_its_prefetches_are_under_way (void)
{
  struct disk disk;
  struct pin_set *pins;
  size_t i;

  disk_init (&disk);
  pins = pin_set_new (disk.f.pager);
  fake_hold (disk.f.driver);
  for (i = 0; i < 10; i++)
    CHECK_EQ (prefetch (&disk, i, pins), 0);
  pin_set_free (pins);
  CHECK_EQ (METRIC_GET (cache_pinned_bytes), 0);
  fake_let_go (disk.f.driver);
  fake_wait_idle (disk.f.driver);
  CHECK_EQ (disk.told.calls, 10);
  CHECK (is_resident (&disk, 3));
  disk_done (&disk);
}

static void
an_offset_beyond_the_blob_is_refused (void)
{
  struct disk disk;
  struct pin_set *pins;
  const struct segment *segment;

  disk_init (&disk);
  segment = &disk.segments.list[0];
  pins = pin_set_new (disk.f.pager);
  CHECK_EQ (pager_prefetch (disk.f.pager, &segment->root, segment->len,
                            segment->len, disk.user, pins, prefetched,
                            &disk.told),
            -EINVAL);
  CHECK_EQ (pager_prefetch (disk.f.pager, &segment->root, 0, 0, disk.user,
                            pins, prefetched, &disk.told),
            -EINVAL);
  pin_set_free (pins);
  disk_done (&disk);
}

int
main (void)
{
  RUN (what_is_pinned_survives_a_scan_and_is_counted_once);
  RUN (at_most_half_of_the_budget_is_pinned);
  RUN (pins_give_way_to_a_client_when_nothing_else_is_left);
  RUN (a_client_takes_over_what_is_queued_for_replay);
  RUN (a_replay_joins_what_a_client_fetches);
  RUN (a_prefetch_that_fails_says_so_and_pins_nothing);
  RUN (a_pin_set_may_go_while_its_prefetches_are_under_way);
  RUN (an_offset_beyond_the_blob_is_refused);
  return 0;
}
