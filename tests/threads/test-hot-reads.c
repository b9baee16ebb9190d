/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Reads of what is in the cache: what they hold on to, and what they leave
 * alone.
 */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "lib/merkle.h"
#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "daemon/pager/internal.h"
#include "tests/harness/check.h"
#include "tests/harness/pager-fixture.h"

enum {
  KIB = 1 << 10,
  MIB = 1 << 20,
};

static void
scan (struct export *export, const uint8_t *image, uint64_t size)
{
  uint64_t offset;

  for (offset = 0; offset + 64 * KIB <= size; offset += 64 * KIB)
    CHECK_EQ (read_and_compare (export, image, offset, 64 * KIB), 0);
}

/* Evict all that nobody holds, the hot set too: of a budget of 8 MiB. */
static void
push_out (struct export *export, const uint8_t *image, uint64_t size)
{
  scan (export, image, size);
  CHECK_EQ (read_and_compare (export, image, 0, 7 * MIB), 0);
}

/* Is window 0 of the index of the image ROOT in the cache? */
static bool
has_index (struct fixture *f, const struct bp_root *root)
{
  return pager_is_resident (f->pager, root, 0);
}

/* ---- What a hot read does not do ---- */

/* Take (or let go of) every lock of the pager and its cache, but only
 * those shards' that are even or odd: ThreadSanitizer allows a thread no
 * more.
 */
static void
for_each_lock (struct export *export, unsigned odd,
               int (*lock_or_unlock) (pthread_mutex_t *lock))
{
  struct pager *pager = export->pager;
  struct cache *cache = pager->cache;
  unsigned i;

  lock_or_unlock (&pager->exports_lock);
  lock_or_unlock (&pager->admission.lock);
  lock_or_unlock (&export->stall_lock);
  lock_or_unlock (&export->ahead.lock);
  lock_or_unlock (&cache->lock);
  for (i = odd; i < CACHE_SHARDS; i += 2)
    lock_or_unlock (&cache->shards[i].lock);
  lock_or_unlock (&cache->pool.lock);
  lock_or_unlock (&cache->blobs_lock);
  lock_or_unlock (&cache->idle_lock);
}

struct hot_reader {
  struct export *export;
  const uint8_t *image;
};

static void *
read_while_locked (void *opaque)
{
  const struct hot_reader *reader = opaque;
  struct test_read reads[8];
  unsigned i;

  for (i = 0; i < ARRAY_LEN (reads); i++) {
    CHECK (test_read_start (&reads[i], reader->export, i * 100 * KIB,
                            (i + 1) * 20000));
    CHECK_EQ (test_read_wait (&reads[i]), 0);
  }
  for (i = 0; i < ARRAY_LEN (reads); i++) {
    test_read_compare (&reads[i], reader->image + i * 100 * KIB);
    test_read_release (&reads[i]);
  }
  return NULL;
}

static void
read_with_locks_held (struct hot_reader *reader, unsigned odd)
{
  struct timespec deadline;
  pthread_t thread;

  for_each_lock (reader->export, odd, pthread_mutex_lock);
  CHECK_EQ (pthread_create (&thread, NULL, read_while_locked, reader), 0);
  clock_gettime (CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 60; /* Else it waits for a lock, for ever. */
  CHECK_EQ (pthread_timedjoin_np (thread, NULL, &deadline), 0);
  for_each_lock (reader->export, odd, pthread_mutex_unlock);
}

static void
a_hot_read_takes_no_lock (void)
{
  struct fixture f;
  uint8_t *image = image_bytes (MIB, 5, true);
  struct hot_reader reader = { .image = image };

  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "disk", image, MIB);
  CHECK_EQ (fixture_open (&f, "disk", &reader.export), 0);
  CHECK_EQ (read_and_compare (reader.export, image, 0, MIB), 0);
  fake_wait_idle (f.driver);
  read_with_locks_held (&reader, 0);
  read_with_locks_held (&reader, 1);
  fixture_close (reader.export);
  fixture_done (&f);
  free (image);
}

static void
a_hot_read_takes_no_memory (void)
{
  enum {
    AT_ONCE = 12
  };
  struct fixture f;
  uint8_t *image = image_bytes (MIB, 5, false);
  struct test_read reads[AT_ONCE];
  struct export *export;
  uint64_t used = 0;
  unsigned round, i;

  fixture_init (&f, 64 * MIB);
  fake_add_image (f.driver, "disk", image, MIB);
  CHECK_EQ (fixture_open (&f, "disk", &export), 0);
  CHECK_EQ (read_and_compare (export, image, 0, MIB), 0);
  fake_wait_idle (f.driver);
  for (round = 0; round < 10; round++) {
    for (i = 0; i < AT_ONCE; i++)
      CHECK (test_read_start (&reads[i], export, i * 64 * KIB, 64 * KIB));
    if (round == 0)
      used = METRIC_GET (cache_used_bytes);
    CHECK_EQ (METRIC_GET (cache_used_bytes), used);
    for (i = 0; i < AT_ONCE; i++)
      test_read_release (&reads[i]);
    CHECK_EQ (METRIC_GET (cache_used_bytes), used);
  }
  fixture_close (export);
  fixture_done (&f);
  free (image);
}

/* ---- Index windows ---- */

static void
an_export_keeps_its_index_until_nobody_refers_to_it (void)
{
  enum {
    BUDGET = 8 * MIB,
    SIZE = 40 * MIB
  };
  struct fixture f;
  uint8_t *image = image_bytes (SIZE, 5, false);
  struct export *used, *unused, *other;
  struct bp_root root, unused_root;

  fixture_init (&f, BUDGET);
  root = fake_add_image (f.driver, "used", image, MIB);
  unused_root = fake_add_image (f.driver, "unused", image + MIB, MIB);
  fake_add_image (f.driver, "other", image, SIZE);
  CHECK_EQ (fixture_open (&f, "used", &used), 0);
  CHECK_EQ (fixture_open (&f, "unused", &unused), 0);
  CHECK_EQ (fixture_open (&f, "other", &other), 0);
  CHECK_EQ (read_and_compare (used, image, 0, 4096), 0);
  push_out (other, image, SIZE);
  CHECK (has_index (&f, &root));
  CHECK (!has_index (&f, &unused_root)); /* No client has read of it. */

  fixture_close (used);
  CHECK (has_index (&f, &root));
  push_out (other, image, SIZE);
  CHECK (!has_index (&f, &root));

  /* And again, with the same export. */
  CHECK_EQ (fixture_open (&f, "used", &used), 0);
  CHECK_EQ (read_and_compare (used, image, 0, 4096), 0);
  push_out (other, image, SIZE);
  CHECK (has_index (&f, &root));
  fixture_close (used);
  fixture_close (unused);
  fixture_close (other);
  fixture_done (&f);
  free (image);
  CHECK_EQ (METRIC_GET (cache_used_bytes), 0);
}

static void
all_exports_together_keep_a_sixteenth_of_the_budget (void)
{
  enum {
    BUDGET = 8 * MIB,
    SIZE = 40 * MIB,
    PAGE = 4 * KIB,
    IMAGES = 200 /* Each with an index of a page. */
  };
  struct fixture f;
  uint8_t *image = image_bytes (SIZE, 5, false);
  struct export *exports[IMAGES], *other;
  struct bp_root roots[IMAGES];
  char hex[BP_ROOT_HEX_SIZE];
  unsigned i, nr_kept = 0;

  fixture_init (&f, BUDGET);
  fake_add_image (f.driver, "other", image, SIZE);
  CHECK_EQ (fixture_open (&f, "other", &other), 0);
  for (i = 0; i < IMAGES; i++) {
    const uint8_t *bytes = image + i * 64 * KIB;

    roots[i] = fake_add_image (f.driver, "disk", bytes, PAGE);
    bp_root_format (&roots[i], hex);
    CHECK_EQ (fixture_open (&f, hex, &exports[i]), 0);
    CHECK_EQ (read_and_compare (exports[i], bytes, 0, PAGE), 0);
  }
  scan (other, image, SIZE);
  scan (other, image, SIZE);
  for (i = 0; i < IMAGES; i++)
    nr_kept += has_index (&f, &roots[i]);
  fprintf (stderr, "  %u of %d kept\n", nr_kept, IMAGES);
  CHECK (nr_kept * PAGE <= BUDGET / 16);
  CHECK (nr_kept * PAGE > BUDGET / 32);

  for (i = 0; i < IMAGES; i++) { /* Kept or not, it serves. */
    CHECK_EQ (read_and_compare (exports[i], image + i * 64 * KIB, 0, PAGE),
              0);
    fixture_close (exports[i]);
  }
  CHECK_EQ (atomic_load (&f.pager->kept_bytes), 0);
  fixture_close (other);
  fixture_done (&f);
  free (image);
}

int
main (void)
{
  RUN (a_hot_read_takes_no_lock);
  RUN (a_hot_read_takes_no_memory);
  RUN (an_export_keeps_its_index_until_nobody_refers_to_it);
  RUN (all_exports_together_keep_a_sixteenth_of_the_budget);
  return 0;
}
