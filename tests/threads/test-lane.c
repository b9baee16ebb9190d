/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A lane under many workers that overtake each other all the time: its
 * requests run in the order of their numbers, every reply is the one of
 * its request, reads find what was opened before them, and when the client
 * goes every worker comes back.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "nbdkit-plugin/lane.h"
#include "harness/stub-nbdkit.h"
#include "harness/test-driver.h"

/* A client has 64 requests unanswered at most: it waits for all of them
 * after so many keys.
 */
enum {
  NR_WORKERS = 16,
  NR_ROUNDS = 8,
  ROUND_KEYS = 60,
  BLOB_SIZE = 1000,
};

static struct session_config config;
static struct lane *lane;
static struct bp_root root;
static uint8_t data[BLOB_SIZE];

/* What a client sends for key k, each as one step: request k (an OPEN of
 * key k), the read of its reply, a data read of key k; in this order.
 * Workers take steps in order and run them as they like.
 */
static atomic_uint next_step;
static unsigned end_step; /* Of this round. */

static void
send_request (uint64_t n, const struct bp_request *request,
              const struct bp_open_item *items)
{
  CLEANUP_FREE uint8_t *bytes = NULL;
  size_t len;

  EXPECT_EQ (bp_request_encode (request, items, NULL, &bytes, &len), 0);
  EXPECT_EQ (lane_pwrite (lane, bytes, (uint32_t) len,
                          bp_control_offset (n), NULL),
             0);
}

static void
open_key (uint64_t key)
{
  const struct bp_open_item item = { .key = key, .root = root };
  const struct bp_request request = { .op = BP_OP_OPEN, .count = 1 };

  send_request (key, &request, &item);
}

static void
read_open_reply (uint64_t n)
{
  uint8_t bytes[BP_REPLY_HEADER_SIZE + BP_OPEN_RESULT_SIZE];
  struct bp_open_result result;

  EXPECT_EQ (lane_pread (lane, bytes, sizeof bytes, bp_control_offset (n),
                         NULL),
             0);
  EXPECT_EQ (get_le32 (bytes), 0);
  EXPECT_EQ (bp_open_result_decode (bytes + BP_REPLY_HEADER_SIZE, &result),
             0);
  EXPECT_EQ (result.status, 0);
  EXPECT_EQ (result.size, BLOB_SIZE);
}

static void
read_key (uint64_t key)
{
  const uint64_t offset = key % BLOB_SIZE;
  uint8_t byte;

  EXPECT_EQ (lane_pread (lane, &byte, 1, bp_data_offset (key, offset, false),
                         NULL),
             0);
  EXPECT_EQ (byte, data[offset]);
}

/* As nbdkit's worker: takes what was sent next, but may be held up before
 * it gets to run it.
 */
static void *
work (void *opaque)
{
  unsigned seed = (unsigned) (uintptr_t) opaque;
  unsigned step;

  while ((step = atomic_fetch_add (&next_step, 1)) < end_step) {
    const uint64_t key = 1 + step / 3;

    if (rand_r (&seed) % 4 == 0)
      usleep ((useconds_t) (rand_r (&seed) % 300));
    switch (step % 3) {
    case 0: open_key (key); break;
    case 1: read_open_reply (key); break;
    default: read_key (key); break;
    }
  }
  return NULL;
}

static void
run_workers (void *(*fn) (void *) )
{
  pthread_t workers[NR_WORKERS];

  for (uintptr_t i = 0; i < NR_WORKERS; i++)
    EXPECT_EQ (pthread_create (&workers[i], NULL, fn, (void *) (i + 1)), 0);
  for (int i = 0; i < NR_WORKERS; i++)
    pthread_join (workers[i], NULL);
}

static void
say_hello (void)
{
  const struct bp_request hello = {
    .op = BP_OP_HELLO,
    .version = BP_SESSION_VERSION,
  };

  EXPECT_EQ (lane_new (&lane, &config, NULL, NULL), 0);
  send_request (0, &hello, NULL);
}

static void
requests_run_in_order_under_overtaking_workers (void)
{
  say_hello ();
  for (unsigned round = 0; round < NR_ROUNDS; round++) {
    atomic_store (&next_step, 3 * round * ROUND_KEYS);
    end_step = 3 * (round + 1) * ROUND_KEYS;
    run_workers (work);
  }
  lane_free (lane);
}

static void *
wait_for_nothing (void *opaque)
{
  const uint64_t i = (uintptr_t) opaque;
  uint8_t byte;

  EXPECT_EQ (lane_pread (lane, &byte, 1,
                         i % 2 ? bp_control_offset (i)
                               : bp_data_offset (i, 0, false),
                         NULL),
             -ESHUTDOWN);
  return NULL;
}

static void
workers_come_back_when_the_client_goes (void)
{
  say_hello ();
  atomic_store (&client_has_gone, true);
  run_workers (wait_for_nothing);
  lane_free (lane);
}

int
main (void)
{
  struct bp_error err;

  test_begin ();
  test_fill_noise (data, sizeof data, 1);
  root = test_add_blob (BP_CODEC_RAW, data, sizeof data);
  if (bp_store_open (&config.store, "store", BP_STORE_READ, &err) < 0)
    FAIL ("%s", err.msg);

  requests_run_in_order_under_overtaking_workers ();
  workers_come_back_when_the_client_goes ();
  bp_store_close (config.store);
  return 0;
}
