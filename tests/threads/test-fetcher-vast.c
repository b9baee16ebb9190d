/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Windows of blobs whose leaves alone are hundreds of megabytes. */
#include <config.h>

#include <errno.h>
#include <signal.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "tests/harness/fetching.h"

#define GIB (UINT64_C (1) << 30)

enum {
  SMALL,
  VAST,    /* 100 GiB; */
  LARGEST, /* 1 TiB. */
};

/* The first of the 16 windows that can be verified, far from any end. */
static const uint64_t offsets[] = {
  [VAST] = 77 * GIB + 6 * BP_NODE_DIGESTS * BP_BLOCK_SIZE,
  [LARGEST] = 1023 * GIB + 6 * BP_NODE_DIGESTS * BP_BLOCK_SIZE,
};

static struct test_store store;
static struct fetcher *fetcher;

struct counts {
  uint64_t nodes, node_bytes, reads;
};

static struct counts
counts_now (void)
{
  return (struct counts){
    .nodes = METRIC_GET (driver_nodes),
    .node_bytes = METRIC_GET (driver_node_bytes),
    .reads = METRIC_GET (driver_reads),
  };
}

/* Fetch window number W of those that can be verified. */
static void
fetch (size_t which, uint64_t w)
{
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[which],
                            offsets[which] + w * BP_WINDOW_SIZE, NULL),
            0);
}

/* Since BEFORE, NODES nodes, of BYTES together, and READS reads. */
static void
expect_since (const struct counts *before, uint64_t nodes, uint64_t bytes,
              uint64_t reads)
{
  const struct counts now = counts_now ();

  CHECK_EQ (now.nodes - before->nodes, nodes);
  CHECK_EQ (now.node_bytes - before->node_bytes, bytes);
  CHECK_EQ (now.reads - before->reads, reads);
}

static void
a_first_read_of_100_gib_fetches_22_kib_of_tree (void)
{
  const struct counts before = counts_now ();

  fetch (VAST, 3);
  /* Two whole nodes, and the topmost list of 200 digests. */
  expect_since (&before, 3, (256 + 256 + 200) * BP_ROOT_SIZE, 1);
}

static void
a_first_read_of_1_tib_fetches_24_kib_of_tree (void)
{
  const struct counts before = counts_now ();

  fetch (LARGEST, 15);
  expect_since (&before, 4, (256 + 256 + 256 + 8) * BP_ROOT_SIZE, 1);
}

static void
the_fifteen_neighbours_of_a_window_need_no_more_of_it (void)
{
  const struct counts before = counts_now ();

  for (uint64_t w = 0; w < BP_NODE_WINDOWS; w++) {
    fetch (VAST, w);
    fetch (LARGEST, w);
  }
  expect_since (&before, 0, 0, 2 * BP_NODE_WINDOWS);
}

/* Nothing vouches for the zeros there. */
static void
what_the_tree_does_not_lead_to_is_corrupt (void)
{
  const uint64_t beyond = offsets[VAST] + BP_NODE_WINDOWS * BP_WINDOW_SIZE;

  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[VAST], beyond, NULL),
            -EBADMSG);
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[VAST], 0, NULL), -EBADMSG);
  fetch (VAST, 0);
}

int
main (void)
{
  struct driver *driver;

  test_requires_plugin ();
  log_init ("test-fetcher-vast", false);
  test_store_init (&store);
  test_store_add (&store, 1, 1000, 1);
  test_store_add_vast (&store, 100 * GIB, offsets[VAST]);
  test_store_add_vast (&store, BP_BLOB_MAX_SIZE, offsets[LARGEST]);
  driver = test_driver (&store, 20);
  fetcher = driver_fetcher (driver);

  RUN (a_first_read_of_100_gib_fetches_22_kib_of_tree);
  RUN (a_first_read_of_1_tib_fetches_24_kib_of_tree);
  RUN (the_fifteen_neighbours_of_a_window_need_no_more_of_it);
  RUN (what_the_tree_does_not_lead_to_is_corrupt);

  driver_free (driver);
  test_store_done (&store);
  return 0;
}
