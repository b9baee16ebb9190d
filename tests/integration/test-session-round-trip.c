/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Sixty-four opens, the reads of their replies and the first reads of
 * their bytes, pipelined on one connection over a long link, are answered
 * in one round trip.  The link is so long that nothing else counts.
 */
#include <config.h>

#include <string.h>

#include "lib/base/clock.h"
#include "harness/test-driver.h"
#include "harness/test-session.h"

enum {
  RTT_MS = 600,
  NR_BLOBS = 64,
  BLOB_SIZE = 16384
};

static uint8_t data[NR_BLOBS][BLOB_SIZE], got[NR_BLOBS][BLOB_SIZE];
static struct bp_root roots[NR_BLOBS];

static void
make_blobs (void)
{
  for (int i = 0; i < NR_BLOBS; i++) {
    test_fill_noise (data[i], BLOB_SIZE, (uint64_t) i);
    roots[i] = test_add_blob (BP_CODEC_ZSTD, data[i], BLOB_SIZE);
  }
}

/* Three commands a blob, all sent before the first is waited for. */
static void
open_and_read_all (struct lane *lane)
{
  static uint8_t replies[NR_BLOBS]
                        [BP_REPLY_HEADER_SIZE + BP_OPEN_RESULT_SIZE];
  const struct bp_request open = { .op = BP_OP_OPEN, .count = 1 };
  int64_t cookies[NR_BLOBS][3];

  for (int i = 0; i < NR_BLOBS; i++) {
    const uint64_t key = (uint64_t) i + 1;
    const struct bp_open_item item = { .key = key, .root = roots[i] };
    const uint64_t n = lane->next;

    cookies[i][0] = lane_send_request (lane, &open, &item, NULL);
    cookies[i][1] = lane_send_read (lane, replies[i], sizeof replies[i],
                                    bp_control_offset (n));
    cookies[i][2] = lane_send_read (lane, got[i], BLOB_SIZE,
                                    bp_data_offset (key, 0, false));
  }
  for (int i = 0; i < NR_BLOBS; i++)
    for (int j = 0; j < 3; j++)
      EXPECT_EQ (lane_wait (lane, cookies[i][j]), 0);
}

int
main (void)
{
  char id[BP_SESSION_ID_SIZE];
  uint64_t start, took_ms;
  struct lane lane;

  test_begin ();
  make_blobs ();
  lane = lane_connect (
    test_start_lagsim (test_start_driver (NULL, NULL), RTT_MS), "session");
  EXPECT_EQ (lane_hello (&lane, id), 0);

  start = now_ns ();
  open_and_read_all (&lane);
  took_ms = (now_ns () - start) / NS_PER_MS;
  if (took_ms < RTT_MS || took_ms >= 2 * RTT_MS)
    FAIL ("%d opens and reads took %llu ms; a round trip is %d ms",
          NR_BLOBS, (unsigned long long) took_ms, RTT_MS);
  for (int i = 0; i < NR_BLOBS; i++)
    EXPECT (memcmp (got[i], data[i], BLOB_SIZE) == 0);
  lane_close (&lane);
  return 0;
}
