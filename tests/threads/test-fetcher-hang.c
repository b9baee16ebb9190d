/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Blobs whose reads hang in the store, as on a file server that has gone:
 * they cost their own readers time, and nobody else.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "tests/harness/fetching.h"

enum {
  NR_SMALL = 100,
  NR_LARGE = 5,
  NR_WINDOWS = 40, /* Of a large blob. */
  TIMEOUT_S = 5,
};

static struct test_store store;
static struct driver *driver;
static struct fetcher *fetcher;
static char hang_file[128];

static void
start_hanging (void)
{
  CLEANUP_CLOSE int fd = open (hang_file, O_CREAT | O_WRONLY, 0600);

  CHECK (fd >= 0);
}

static void
stop_hanging (void)
{
  CHECK_EQ (unlink (hang_file), 0);
}

/* Ask for every window of large blobs FIRST … FIRST + COUNT - 1. */
static struct test_fetch *
ask_for_large (size_t first, size_t count)
{
  struct test_fetch *fetches = test_fetches (count * NR_WINDOWS);

  for (size_t i = 0; i < count * NR_WINDOWS; i++)
    test_fetch_set (&fetches[i],
                    &store.blobs[NR_SMALL + first + i / NR_WINDOWS],
                    i % NR_WINDOWS * BP_WINDOW_SIZE, FETCH_DEMAND, NULL);
  test_submit (fetcher, fetches, count * NR_WINDOWS);
  return fetches;
}

/* They all failed for want of time; what was owed is given back once they
 * hang no more.
 */
static void
expect_hung (struct test_fetch *fetches, size_t count)
{
  test_wait (fetches, count * NR_WINDOWS);
  stop_hanging ();
  for (size_t i = 0; i < count * NR_WINDOWS; i++)
    if (fetches[i].status == -ETIMEDOUT)
      test_wait_retired (&fetches[i]);
    else
      test_expect (&fetches[i], -EIO);
  test_fetches_free (fetches, count * NR_WINDOWS);
}

static void
fetch_small_within (unsigned seconds)
{
  const uint64_t start = now_ns ();

  test_fetch_all (fetcher, &store, 0, NR_SMALL, FETCH_DEMAND, NULL);
  CHECK (now_ns () - start < seconds * NS_PER_SEC);
}

static void
a_blob_that_hangs_does_not_delay_others (void)
{
  struct test_fetch *fetches;

  start_hanging ();
  fetches = ask_for_large (2, 1);
  for (int i = 0; i < 20; i++)
    fetch_small_within (1);
  expect_hung (fetches, 1);
  test_fetch_all (fetcher, &store, NR_SMALL + 2, 1, FETCH_DEMAND, NULL);
}

/* More reads than the lanes have workers at the other end.  (nbdkit may fail
 * an assertion when reads of a connection that was left are answered at
 * last: then another one is started.)
 */
static void
many_blobs_that_hang_let_the_others_be_read_in_time (void)
{
  struct test_fetch *fetches;

  start_hanging ();
  fetches = ask_for_large (1, NR_LARGE - 1);
  fetch_small_within (TIMEOUT_S);
  expect_hung (fetches, NR_LARGE - 1);
  test_fetch_all (fetcher, &store, NR_SMALL, NR_LARGE, FETCH_DEMAND, NULL);
}

int
main (void)
{
  test_requires_plugin ();
  log_init ("test-fetcher-hang", false);
  test_store_init (&store);
  test_store_add (&store, NR_SMALL, 20000, 1);
  test_store_add (&store, NR_LARGE, NR_WINDOWS * BP_WINDOW_SIZE, 2);
  snprintf (hang_file, sizeof hang_file, "%s/hang", store.dir);
  setenv ("HANG_WHILE", hang_file, 1);
  /* All large blobs but the first: beyond the pack of the small ones, and
   * before the trees.
   */
  setenv ("HANG_FROM", "5242944", 1);
  setenv ("HANG_TO", "26214400", 1);
  test_nbdkit_preload ("hang-pread.so");
  driver = test_driver (&store, TIMEOUT_S);
  fetcher = driver_fetcher (driver);

  RUN (a_blob_that_hangs_does_not_delay_others);
  RUN (many_blobs_that_hang_let_the_others_be_read_in_time);

  driver_free (driver);
  test_store_done (&store);
  return 0;
}
