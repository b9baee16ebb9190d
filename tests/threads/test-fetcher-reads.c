/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the fetcher delivers is what the store holds, whatever the shape of
 * the blobs, the lanes and the order; and what it cannot deliver fails with
 * the code that says why.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "lib/base/cleanup.h"
#include "tests/harness/fetching.h"

/* Blobs of the store, by number. */
enum {
  FIRST_SMALL = 0,
  NR_SMALL = 300,
  LARGE = NR_SMALL,   /* 1 level of nodes. */
  LARGER = LARGE + 1, /* 2 levels of nodes, and an odd end. */
  ONE_BYTE = LARGER + 1,
  NR_BLOBS,
};

static struct test_store store;
static struct driver *driver;
static struct fetcher *fetcher;

static void
delivers_segments_as_the_store_holds_them (void)
{
  test_fetch_all (fetcher, &store, FIRST_SMALL, 64, FETCH_DEMAND, NULL);
  test_fetch_all (fetcher, &store, 64, 64, FETCH_REPLAY, NULL);
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[ONE_BYTE], 0, NULL), 0);
}

static void
delivers_windows_of_large_blobs_through_their_tree (void)
{
  test_fetch_all (fetcher, &store, LARGE, 2, FETCH_DEMAND, NULL);
  test_fetch_all (fetcher, &store, LARGE, 2, FETCH_REPLAY, NULL);
}

static void
needs_the_nodes_of_a_large_blob_once (void)
{
  const struct test_blob *blob = &store.blobs[LARGER];
  struct test_blob other = *blob;
  const uint64_t nodes = METRIC_GET (driver_nodes);

  /* Known since they were read; verified all the same. */
  CHECK (nodes > 0);
  test_fetch_all (fetcher, &store, LARGE, 2, FETCH_DEMAND, NULL);
  CHECK_EQ (METRIC_GET (driver_nodes), nodes);

  /* Of that root alone. */
  other.root.bytes[31] ^= 1;
  CHECK_EQ (test_fetch_one (fetcher, &other, 0, NULL), -ENOENT);
}

static void
opens_a_blob_once_however_many_race_for_it (void)
{
  const struct test_blob *blob = &store.blobs[130];
  struct test_fetch *fetches = test_fetches (40);
  const uint64_t opens = METRIC_GET (driver_opens);

  for (int i = 0; i < 40; i++) {
    test_fetch_set (&fetches[i], blob, 0,
                    i % 2 ? FETCH_REPLAY : FETCH_DEMAND, NULL);
    test_submit (fetcher, &fetches[i], 1);
  }
  test_wait (fetches, 40);
  for (int i = 0; i < 40; i++)
    test_expect (&fetches[i], 0);
  CHECK_EQ (METRIC_GET (driver_opens), opens + 1);
  test_fetches_free (fetches, 40);
}

static void
says_that_a_blob_is_missing (void)
{
  const uint64_t missing = METRIC_GET (driver_missing);
  const uint64_t errors = METRIC_GET (driver_errors);
  struct test_blob absent = store.blobs[0];

  memset (absent.root.bytes, 0x5a, sizeof absent.root.bytes);
  CHECK_EQ (test_fetch_one (fetcher, &absent, 0, NULL), -ENOENT);
  CHECK_EQ (METRIC_GET (driver_missing), missing + 1);
  CHECK_EQ (METRIC_GET (driver_errors), errors);
  CHECK_EQ (METRIC_GET (verify_corrupt), 0);
}

static void
refuses_a_blob_of_another_size_than_asked_for (void)
{
  struct test_blob blob = store.blobs[140];

  blob.size -= 1;
  CHECK_EQ (test_fetch_one (fetcher, &blob, 0, NULL), -EPROTO);
  /* Known to be open by now. */
  CHECK_EQ (test_fetch_one (fetcher, &blob, 0, NULL), -EPROTO);
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[140], 0, NULL), 0);
}

static void
fails_exactly_the_corrupt_blob (void)
{
  const uint64_t errors = METRIC_GET (driver_errors);
  const uint64_t reads = METRIC_GET (driver_reads);

  test_corrupt (&store, &store.blobs[150], 1000);
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[150], 0, NULL),
            -EBADMSG);
  CHECK_EQ (METRIC_GET (verify_corrupt), 1);
  CHECK_EQ (METRIC_GET (driver_errors), errors);
  CHECK_EQ (METRIC_GET (driver_reads), reads + 2); /* Once more. */
  test_fetch_all (fetcher, &store, 140, 10, FETCH_DEMAND, NULL);
  test_fetch_all (fetcher, &store, 151, 10, FETCH_DEMAND, NULL);
}

static void
fails_exactly_the_corrupt_window_of_a_large_blob (void)
{
  const struct test_blob *blob = &store.blobs[LARGE];

  test_corrupt (&store, blob, BP_WINDOW_SIZE + 5000);
  CHECK_EQ (test_fetch_one (fetcher, blob, 0, NULL), 0);
  CHECK_EQ (test_fetch_one (fetcher, blob, BP_WINDOW_SIZE, NULL),
            -EBADMSG);
  CHECK_EQ (test_fetch_one (fetcher, blob, 2 * BP_WINDOW_SIZE, NULL), 0);
  CHECK_EQ (METRIC_GET (verify_corrupt), 2);
}

static void
hands_a_promoted_fetch_to_a_demand_lane (void)
{
  struct test_fetch *fetches = test_fetches (NR_SMALL);

  for (int i = 0; i < NR_SMALL; i++)
    test_fetch_set (&fetches[i], &store.blobs[i == 150 ? 0 : i], 0,
                    FETCH_REPLAY, NULL);
  test_submit (fetcher, fetches, NR_SMALL);
  for (int i = NR_SMALL - 1; i >= 0; i--)
    fetcher_promote (fetcher, &fetches[i].fetch);
  test_wait (fetches, NR_SMALL);
  for (int i = 0; i < NR_SMALL; i++)
    test_expect (&fetches[i], 0);
  test_fetches_free (fetches, NR_SMALL);
}

int
main (void)
{
  test_requires_plugin ();
  log_init ("test-fetcher-reads", false);
  test_store_init (&store);
  test_store_add (&store, NR_SMALL, 40000, 1);
  test_store_add (&store, 1, 10 * BP_WINDOW_SIZE, 2);
  test_store_add (&store, 1, 20 * BP_WINDOW_SIZE + 12345, 3);
  test_store_add (&store, 1, 1, 4);
  CHECK_EQ (store.nr_blobs, NR_BLOBS);
  driver = test_driver (&store, 10);
  fetcher = driver_fetcher (driver);

  RUN (delivers_segments_as_the_store_holds_them);
  RUN (delivers_windows_of_large_blobs_through_their_tree);
  RUN (needs_the_nodes_of_a_large_blob_once);
  RUN (opens_a_blob_once_however_many_race_for_it);
  RUN (says_that_a_blob_is_missing);
  RUN (refuses_a_blob_of_another_size_than_asked_for);
  RUN (fails_exactly_the_corrupt_blob);
  RUN (fails_exactly_the_corrupt_window_of_a_large_blob);
  RUN (hands_a_promoted_fetch_to_a_demand_lane);

  driver_free (driver);
  test_store_done (&store);
  return 0;
}
