/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* One round trip from touch to bytes, at a round trip so long that nothing
 * else counts.
 */
#include <config.h>

#include <signal.h>

#include "daemon/log.h"
#include "lib/base/clock.h"
#include "tests/harness/fetching.h"

enum {
  RTT_MS = 300,
  NR_BLOBS = 64,
};
#define GIB (UINT64_C (1) << 30)

static struct test_store store;
static struct fetcher *fetcher;

static void
expect_one_round_trip (uint64_t start)
{
  const uint64_t ms = (now_ns () - start) / NS_PER_MS;

  fprintf (stderr, "  %u ms\n", (unsigned) ms);
  CHECK (ms >= RTT_MS);
  CHECK (ms < 2 * RTT_MS);
}

static void
sixty_four_blobs_are_opened_and_read_in_one_round_trip (void)
{
  const uint64_t start = now_ns ();

  test_fetch_all (fetcher, &store, 0, NR_BLOBS, FETCH_DEMAND, NULL);
  expect_one_round_trip (start);
}

static void
a_window_of_a_large_blob_comes_with_its_nodes_in_one_round_trip (void)
{
  const uint64_t start = now_ns ();

  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[NR_BLOBS],
                            17 * BP_WINDOW_SIZE, NULL),
            0);
  expect_one_round_trip (start);
}

static void
a_window_of_100_gib_comes_with_its_nodes_in_one_round_trip (void)
{
  const uint64_t start = now_ns ();

  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[NR_BLOBS + 2], 50 * GIB,
                            NULL),
            0);
  expect_one_round_trip (start);
}

/* The second is handed to the lane whose OPEN is on its way. */
static void
who_comes_while_a_blob_is_being_opened_rides_behind_the_open (void)
{
  struct test_fetch *fetches = test_fetches (2);
  const uint64_t start = now_ns ();

  for (int i = 0; i < 2; i++) {
    test_fetch_set (&fetches[i], &store.blobs[NR_BLOBS + 1],
                    (uint64_t) i * BP_WINDOW_SIZE, FETCH_DEMAND, NULL);
    test_submit (fetcher, &fetches[i], 1);
  }
  test_wait (fetches, 2);
  for (int i = 0; i < 2; i++)
    test_expect (&fetches[i], 0);
  expect_one_round_trip (start);
  test_fetches_free (fetches, 2);
}

int
main (void)
{
  struct driver *driver;
  struct bp_error err;
  pid_t nbdkit, lagsim;

  test_requires_plugin ();
  log_init ("test-fetcher-lag", false);
  test_store_init (&store);
  test_store_add (&store, NR_BLOBS, 30000, 1);
  test_store_add (&store, 2, 40 * BP_WINDOW_SIZE, 2);
  test_store_add_vast (&store, 100 * GIB, 50 * GIB);
  nbdkit = test_nbdkit_start (&store, NULL, NULL);
  lagsim = test_lagsim_start (&store, RTT_MS);
  driver = test_driver_at (&store, "far", 20);
  CHECK_EQ (driver_wait_ready (driver, 20, &err), 0);
  fetcher = driver_fetcher (driver);
  /* The lanes are connected, too. */
  test_fetch_all (fetcher, &store, 0, 1, FETCH_DEMAND, NULL);
  test_fetch_all (fetcher, &store, 0, 1, FETCH_DEMAND, NULL);

  RUN (sixty_four_blobs_are_opened_and_read_in_one_round_trip);
  RUN (a_window_of_a_large_blob_comes_with_its_nodes_in_one_round_trip);
  RUN (a_window_of_100_gib_comes_with_its_nodes_in_one_round_trip);
  RUN (who_comes_while_a_blob_is_being_opened_rides_behind_the_open);

  driver_free (driver);
  test_kill (lagsim, SIGTERM);
  test_kill (nbdkit, SIGTERM);
  test_store_done (&store);
  return 0;
}
