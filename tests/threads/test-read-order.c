/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Admission, cancelling, waiting. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "daemon/metrics.h"
#include "tests/harness/check.h"
#include "tests/harness/pager-fixture.h"

enum {
  KIB = 1 << 10,
  MIB = 1 << 20,
  SIZE = 24 * MIB
};

struct disk {
  struct fixture f;
  uint8_t *image;
  struct export *export;
};

static void
disk_init (struct disk *disk, uint64_t budget)
{
  disk->image = image_bytes (SIZE, 31, false);
  fixture_init (&disk->f, budget);
  fake_add_image (disk->f.driver, "disk", disk->image, SIZE);
  CHECK_EQ (fixture_open (&disk->f, "disk", &disk->export), 0);
}

static void
disk_done (struct disk *disk)
{
  if (disk->export)
    fixture_close (disk->export);
  fake_wait_idle (disk->f.driver);
  fixture_done (&disk->f);
  free (disk->image);
  CHECK_EQ (METRIC_GET (cache_used_bytes), 0);
}

static void
finish_read (struct test_read *read, const uint8_t *image)
{
  CHECK_EQ (test_read_wait (read), 0);
  test_read_compare (read, image + read->op.offset);
  test_read_release (read);
}

/* ---- Admission ---- */

static void
reads_are_admitted_in_order_of_arrival (void)
{
  struct disk disk;
  struct test_read first, second, small;

  disk_init (&disk, 8 * MIB); /* Replies hold 2 MiB. */
  test_read_start (&first, disk.export, 0, MIB + 512 * KIB);
  CHECK_EQ (test_read_wait (&first), 0);
  CHECK (!test_read_start (&second, disk.export, 4 * MIB,
                           MIB + 512 * KIB));
  CHECK (!test_read_start (&small, disk.export, 8 * MIB, 4096));
  fake_wait_idle (disk.f.driver);

  /* The small one would fit, but it is not its turn. */
  CHECK (!test_read_is_complete (&second));
  CHECK (!test_read_is_complete (&small));
  finish_read (&first, disk.image);
  finish_read (&second, disk.image);
  finish_read (&small, disk.image);
  disk_done (&disk);
}

static void
the_oldest_read_is_admitted_whatever_its_size (void)
{
  struct disk disk;

  disk_init (&disk, 8 * MIB);
  CHECK_EQ (read_and_compare (disk.export, disk.image, 0, 5 * MIB), 0);
  disk_done (&disk);
}

static void
a_read_that_is_released_makes_room_for_many (void)
{
  enum {
    WAITERS = 40
  };
  struct disk disk;
  struct test_read large, reads[WAITERS];
  size_t i;

  disk_init (&disk, 8 * MIB);
  test_read_start (&large, disk.export, 0, 4 * MIB);
  CHECK_EQ (test_read_wait (&large), 0);
  for (i = 0; i < WAITERS; i++)
    CHECK (!test_read_start (&reads[i], disk.export, i * 400 * KIB,
                             100 * KIB));
  finish_read (&large, disk.image);
  for (i = 0; i < WAITERS; i++)
    finish_read (&reads[i], disk.image);
  disk_done (&disk);
}

static void
a_reply_is_charged_what_it_holds (void)
{
  enum {
    REPLIES = 16
  };
  struct disk disk;
  struct test_read reads[REPLIES];
  size_t i;

  disk_init (&disk, 8 * MIB); /* Replies hold 2 MiB. */
  CHECK_EQ (read_and_compare (disk.export, disk.image, 0, 2 * MIB), 0);
  fake_wait_idle (disk.f.driver);
  for (i = 0; i < REPLIES; i++) /* Of a window each, of 90 KiB or so. */
    CHECK (test_read_start (&reads[i], disk.export, i * 128 * KIB, 4096));
  for (i = 0; i < REPLIES; i++)
    finish_read (&reads[i], disk.image);
  disk_done (&disk);
}

/* ---- Cancelling ---- */

static void
a_cancelled_read_completes_at_once_and_its_fetches_go_on (void)
{
  struct disk disk;
  struct test_read read;
  size_t fetches;

  disk_init (&disk, 64 * MIB);
  fake_hold (disk.f.driver);
  CHECK (!test_read_start (&read, disk.export, MIB, 256 * KIB));
  read_op_cancel (&read.op);
  CHECK (test_read_is_complete (&read));
  CHECK_EQ (test_read_wait (&read), -ESHUTDOWN);
  test_read_release (&read);
  fake_let_go (disk.f.driver);
  fake_wait_idle (disk.f.driver);

  fetches = fake_fetches (disk.f.driver, NULL);
  CHECK_EQ (read_and_compare (disk.export, disk.image, MIB, 256 * KIB), 0);
  CHECK_EQ (fake_fetches (disk.f.driver, NULL), fetches);
  disk_done (&disk);
}

static void
a_read_that_waits_to_be_admitted_can_be_cancelled (void)
{
  struct disk disk;
  struct test_read first, second, third;

  disk_init (&disk, 8 * MIB);
  test_read_start (&first, disk.export, 0, MIB);
  CHECK_EQ (test_read_wait (&first), 0);
  CHECK (!test_read_start (&second, disk.export, 4 * MIB, 2 * MIB));
  CHECK (!test_read_start (&third, disk.export, 8 * MIB, 4096));
  read_op_cancel (&second.op);
  CHECK_EQ (test_read_wait (&second), -ESHUTDOWN);
  test_read_release (&second);
  /* Nobody stands before the third any more. */
  finish_read (&third, disk.image);
  finish_read (&first, disk.image);
  disk_done (&disk);
}

static void
the_client_and_its_export_may_go_while_fetches_are_under_way (void)
{
  struct disk disk;
  struct test_read read;

  disk_init (&disk, 64 * MIB);
  fake_hold (disk.f.driver);
  CHECK (!test_read_start (&read, disk.export, 0, 4 * MIB));
  read_op_cancel (&read.op);
  test_read_release (&read);
  fixture_close (disk.export);
  disk.export = NULL;
  fake_let_go (disk.f.driver);
  disk_done (&disk);
}

static void
cancelling_a_completed_read_does_nothing (void)
{
  struct disk disk;
  struct test_read read;

  disk_init (&disk, 64 * MIB);
  test_read_start (&read, disk.export, 0, 4096);
  CHECK_EQ (test_read_wait (&read), 0);
  read_op_cancel (&read.op);
  finish_read (&read, disk.image);
  disk_done (&disk);
}

struct canceller {
  pthread_t thread;
  struct disk *disk;
  unsigned number;
};

static void *
read_and_cancel (void *opaque)
{
  const struct canceller *canceller = opaque;
  const struct disk *disk = canceller->disk;
  uint64_t x = canceller->number;
  struct test_read read;
  unsigned i;
  int status;

  for (i = 0; i < 500; i++) {
    x = x * UINT64_C (6364136223846793005) + 1442695040888963407;
    test_read_start (&read, disk->export, (x >> 20) % (SIZE - MIB),
                     1 + (uint32_t) (x >> 40) % (600 * KIB));
    if (x >> 60 > 4)
      read_op_cancel (&read.op);
    status = test_read_wait (&read);
    CHECK (status == 0 || status == -ESHUTDOWN);
    if (status == 0)
      test_read_compare (&read, disk->image + read.op.offset);
    test_read_release (&read);
    CHECK_EQ (read.completions, 1);
  }
  return NULL;
}

static void
a_cancel_that_races_with_the_bytes_completes_the_read_once (void)
{
  enum {
    THREADS = 4
  };
  struct disk disk;
  struct canceller cancellers[THREADS];
  unsigned i;

  disk_init (&disk, 8 * MIB);
  for (i = 0; i < THREADS; i++) {
    cancellers[i] = (struct canceller){ .disk = &disk, .number = i };
    CHECK_EQ (pthread_create (&cancellers[i].thread, NULL, read_and_cancel,
                              &cancellers[i]),
              0);
  }
  for (i = 0; i < THREADS; i++)
    pthread_join (cancellers[i].thread, NULL);
  CHECK_EQ (read_and_compare (disk.export, disk.image, 0, MIB), 0);
  disk_done (&disk);
}

/* ---- What is counted and told ---- */

static void
a_stall_is_the_union_of_what_the_reads_wait (void)
{
  struct disk disk;
  struct test_read first, second;
  struct export_counts counts;
  const uint64_t start = now_ns ();

  disk_init (&disk, 64 * MIB);
  fake_hold (disk.f.driver);
  CHECK (!test_read_start (&first, disk.export, 0, 4096));
  CHECK (!test_read_start (&second, disk.export, 8 * MIB, 4096));
  while (now_ns () - start < 20 * NS_PER_MS)
    ;
  export_get_counts (disk.export, &counts);
  CHECK_EQ (counts.stalls, 1);
  CHECK (counts.stall_ns > 0);
  fake_let_go (disk.f.driver);
  finish_read (&first, disk.image);
  finish_read (&second, disk.image);
  export_get_counts (disk.export, &counts);
  CHECK_EQ (counts.stalls, 1);
  CHECK (counts.stall_ns <= now_ns () - start);
  CHECK_EQ (counts.reads, 2);
  CHECK_EQ (counts.bytes_read, 8192);

  CHECK_EQ (read_and_compare (disk.export, disk.image, 0, 4096), 0);
  export_get_counts (disk.export, &counts);
  CHECK_EQ (counts.stalls, 1); /* A hit is none. */
  disk_done (&disk);
}

struct watcher {
  _Atomic unsigned entered;
  _Atomic unsigned started;
  _Atomic unsigned served;
  _Atomic unsigned index_touches;
  _Atomic unsigned warm;
  _Atomic unsigned cold;
};

static void
saw_entered (void *opaque, struct export *export)
{
  struct watcher *watcher = opaque;

  (void) export;
  atomic_fetch_add (&watcher->entered, 1);
}

static void
saw_left (void *opaque, struct export *export, unsigned remaining)
{
  struct watcher *watcher = opaque;

  (void) export;
  CHECK_EQ (remaining, 0);
  atomic_fetch_sub (&watcher->entered, 1);
}

static void
saw_started (void *opaque, struct export *export, uint64_t offset,
             uint32_t len)
{
  struct watcher *watcher = opaque;

  (void) export;
  CHECK_EQ (offset, MIB);
  CHECK_EQ (len, 256 * KIB);
  atomic_fetch_add (&watcher->started, 1);
}

static void
saw_served (void *opaque, const struct read_op *op)
{
  struct watcher *watcher = opaque;
  const struct bp_root *index = &export_get_info (op->export)->root;
  size_t i;

  atomic_fetch_add (&watcher->served, 1);
  for (i = 0; i < op->nr_touches; i++) {
    if (bp_root_equal (window_root (op->touches[i].window), index))
      atomic_fetch_add (&watcher->index_touches, 1);
    else if (op->touches[i].warm)
      atomic_fetch_add (&watcher->warm, 1);
    else
      atomic_fetch_add (&watcher->cold, 1);
  }
}

static void
a_watcher_hears_of_each_window_that_a_read_needed (void)
{
  struct watcher watcher = { 0 };
  const struct pager_observer observer = { saw_entered, saw_left,
                                           saw_started, saw_served,
                                           &watcher };
  struct disk disk;
  unsigned windows;

  disk_init (&disk, 64 * MIB);
  pager_observe (disk.f.pager, &observer);
  export_client_entered (disk.export);
  CHECK_EQ (watcher.entered, 1);
  CHECK_EQ (read_and_compare (disk.export, disk.image, 0, 4096), 0);
  CHECK_EQ (watcher.started, 0); /* Not watched yet. */

  export_watch (disk.export, 1);
  CHECK_EQ (read_and_compare (disk.export, disk.image, MIB, 256 * KIB), 0);
  CHECK_EQ (watcher.served, 1);
  CHECK_EQ (watcher.index_touches, 1);
  windows = watcher.cold + watcher.warm;
  CHECK (windows >= 3);
  CHECK (watcher.cold >= 2);
  CHECK_EQ (read_and_compare (disk.export, disk.image, MIB, 256 * KIB), 0);
  CHECK_EQ (watcher.served, 2);
  CHECK_EQ (watcher.warm + watcher.cold, 2 * windows);
  CHECK (watcher.warm >= windows);

  export_watch (disk.export, -1);
  CHECK_EQ (read_and_compare (disk.export, disk.image, MIB, 4096), 0);
  CHECK_EQ (watcher.started, 2);
  pager_observe (disk.f.pager, NULL);
  export_client_left (disk.export);
  disk_done (&disk);
}

static void
the_cache_command_pages_in_what_nobody_waits_for (void)
{
  struct disk disk;
  struct export_counts counts;
  struct test_read read;

  disk_init (&disk, 64 * MIB);
  export_prefetch (disk.export, 100, 6 * MIB);
  while (!test_read_start (&read, disk.export, 6 * MIB - 4096, 4096)) {
    CHECK_EQ (test_read_wait (&read), 0);
    test_read_release (&read);
  }
  finish_read (&read, disk.image);
  fake_wait_idle (disk.f.driver);
  CHECK (test_read_start (&read, disk.export, 100, 2 * MIB));
  finish_read (&read, disk.image);
  export_get_counts (disk.export, &counts);
  CHECK (counts.bytes_read < 3 * MIB);
  export_prefetch (disk.export, SIZE, 4096); /* Outside: nothing. */
  export_prefetch (disk.export, 0, 0);
  disk_done (&disk);
}

int
main (void)
{
  RUN (reads_are_admitted_in_order_of_arrival);
  RUN (the_oldest_read_is_admitted_whatever_its_size);
  RUN (a_read_that_is_released_makes_room_for_many);
  RUN (a_reply_is_charged_what_it_holds);
  RUN (a_cancelled_read_completes_at_once_and_its_fetches_go_on);
  RUN (a_read_that_waits_to_be_admitted_can_be_cancelled);
  RUN (the_client_and_its_export_may_go_while_fetches_are_under_way);
  RUN (cancelling_a_completed_read_does_nothing);
  RUN (a_cancel_that_races_with_the_bytes_completes_the_read_once);
  RUN (a_stall_is_the_union_of_what_the_reads_wait);
  RUN (a_watcher_hears_of_each_window_that_a_read_needed);
  RUN (the_cache_command_pages_in_what_nobody_waits_for);
  return 0;
}
