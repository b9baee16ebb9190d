/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* BLOCK_STATUS: what a client puts together from the answers is the map of
 * the export.
 */
#include <config.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "daemon/front/meta-context.h"
#include "harness/check.h"
#include "harness/fake-map.h"
#include "harness/front-client.h"

enum {
  MAX_MAPS = 4,
  MAX_EXTENTS = 100,
  REQ_ONE = NBD_CMD_FLAG_REQ_ONE,
};

static struct front_fixture fixture;

static const char *const both[] = { "base:allocation", "blobpager:residency",
                                    NULL };

/* Attach to NAME with QUERIES selected. */
static int
attach (const char *name, const char *const *queries)
{
  const int fd = client_connect (&fixture);

  client_greet_structured (fd);
  client_send_queries (fd, NBD_OPT_SET_META_CONTEXT, name, queries);
  CHECK_EQ (client_recv_contexts (fd, NBD_OPT_SET_META_CONTEXT).type,
            NBD_REP_ACK);
  client_send_info (fd, NBD_OPT_GO, name);
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
  return fd;
}

/* What one answer says of one context. */
struct status {
  uint32_t count;   /* Extents. */
  uint64_t covered; /* Bytes. */
};

/* A chunk of context KIND about what starts at OFFSET: every extent says
 * what is true.
 */
static struct status
take_status (int fd, enum map_kind kind, uint64_t offset)
{
  const struct client_chunk chunk = client_recv_chunk (fd);
  static uint8_t payload[4 + 8 * 65536];
  struct status status = { .count = (chunk.len - 4) / 8 };
  uint32_t i, len, flags, last = UINT32_MAX;

  CHECK_EQ (chunk.type, NBD_REPLY_TYPE_BLOCK_STATUS);
  CHECK (chunk.len >= 12 && chunk.len % 8 == 4);
  CHECK (chunk.len <= sizeof payload);
  client_recv (fd, payload, chunk.len);
  CHECK_EQ (get_be32 (payload), context_id (kind));
  for (i = 0; i < status.count; i++) {
    const uint64_t start = offset + status.covered;
    uint64_t at;

    len = get_be32 (payload + 4 + 8 * (size_t) i);
    flags = get_be32 (payload + 8 + 8 * (size_t) i);
    CHECK (len > 0);
    CHECK (flags != last);
    last = flags;
    for (at = start; at < start + len; at = fake_map_next (at))
      CHECK_EQ (flags, context_flags (kind, fake_map_state (kind, at)));
    status.covered += len;
  }
  return status;
}

/* Ask both contexts, and return what is said of the allocation. */
static struct status
ask (int fd, uint16_t flags, uint64_t offset, uint32_t len)
{
  struct status status, residency;

  client_send_request (fd, flags, NBD_CMD_BLOCK_STATUS, 1, offset, len);
  status = take_status (fd, MAP_ALLOCATION, offset);
  residency = take_status (fd, MAP_RESIDENCY, offset);
  CHECK (status.covered <= len);
  CHECK (residency.covered <= len);
  if (flags & REQ_ONE) {
    CHECK_EQ (status.count, 1);
    CHECK_EQ (residency.count, 1);
  }
  return status;
}

static void
walks_of_any_step_put_the_true_map_together (void)
{
  static const char *const exports[] = { "fast", "slow" };
  static const uint16_t flags[] = { 0, REQ_ONE };
  static const uint32_t steps[] = { 48 << 10, 100000, 1 << 20, 33333333,
                                    UINT32_MAX };
  size_t i;

  for (i = 0; i < 4 * ARRAY_LEN (steps); i++) {
    const int fd = attach (exports[i % 2], both);
    uint64_t offset = 0;

    while (offset < FAKE_SIZE)
      offset += ask (fd, flags[i / 2 % 2], offset,
                     (uint32_t) MIN (FAKE_SIZE - offset, steps[i / 4]))
                  .covered;
    CHECK_EQ (offset, FAKE_SIZE);
    close (fd);
  }
}

static void
a_byte_is_an_extent (void)
{
  const int fd = attach ("fast", both);

  CHECK_EQ (ask (fd, 0, 0, 1).covered, 1);
  CHECK_EQ (ask (fd, 0, FAKE_SIZE - 1, 1).covered, 1);
  CHECK_EQ (ask (fd, REQ_ONE, 12345, 1).covered, 1);
  close (fd);
}

static void
one_context_has_one_chunk (void)
{
  static const char *const residency[] = { "blobpager:residency", NULL };
  const int fd = attach ("slow", residency);

  client_send_request (fd, 0, NBD_CMD_BLOCK_STATUS, 5, 0, 1 << 20);
  CHECK (take_status (fd, MAP_RESIDENCY, 0).count > 5);
  client_send_request (fd, 0, NBD_CMD_READ, 6, 0, 1);
  CHECK_EQ (client_recv_chunk (fd).cookie, 6);
  close (fd);
}

static void
an_answer_has_a_bounded_number_of_extents (void)
{
  const int fd = attach ("fast", both);
  const struct status status = ask (fd, 0, 0, FAKE_SIZE);

  /* Four pieces of data and a hole in turn. */
  CHECK_EQ (status.count, MAX_EXTENTS);
  CHECK_EQ (status.covered, MAX_EXTENTS / 2 * 5 * (48 << 10));
  close (fd);
}

/* ---- Refusals ---- */

static void
expect_refused (int fd, uint16_t flags, uint64_t offset, uint32_t len)
{
  struct client_chunk chunk;
  uint64_t bad_offset;

  client_send_request (fd, flags, NBD_CMD_BLOCK_STATUS, 9, offset, len);
  chunk = client_recv_chunk (fd);
  CHECK_EQ (chunk.cookie, 9);
  CHECK_EQ (chunk.flags, NBD_REPLY_FLAG_DONE);
  CHECK_EQ (client_recv_error (fd, &chunk, &bad_offset), NBD_EINVAL);
  CHECK_EQ (bad_offset, UINT64_MAX);
}

static void
requests_that_make_no_sense_are_refused_and_the_connection_kept (void)
{
  const int fd = attach ("fast", both);
  unsigned bit;

  expect_refused (fd, 0, 0, 0);
  expect_refused (fd, 0, FAKE_SIZE, 0);
  expect_refused (fd, 0, FAKE_SIZE, 1);
  expect_refused (fd, 0, FAKE_SIZE - 1, 2);
  expect_refused (fd, 0, 0, FAKE_SIZE + 1);
  expect_refused (fd, 0, 0, UINT32_MAX);
  expect_refused (fd, 0, UINT64_MAX, 1);
  expect_refused (fd, 0, UINT64_MAX - 4, UINT32_MAX);
  expect_refused (fd, REQ_ONE, UINT64_C (1) << 63, 1 << 20);
  for (bit = 0; bit < 16; bit++)
    if (1u << bit != REQ_ONE)
      expect_refused (fd, (uint16_t) (1u << bit), 0, 1);
  CHECK_EQ (ask (fd, 0, 0, 1).covered, 1);
  close (fd);
}

static void
a_client_without_structured_replies_gets_a_simple_refusal (void)
{
  const int fd = client_attach (&fixture, "fast");

  CHECK_EQ (client_request (fd, 0, NBD_CMD_BLOCK_STATUS, 0, 1), NBD_EINVAL);
  client_expect_bytes (&fixture, fd, 0, 4096);
  close (fd);
}

static void
a_map_that_cannot_be_made_is_an_error_at_its_offset (void)
{
  const int fd = attach ("corrupt", both);
  struct client_chunk chunk;
  uint64_t bad_offset;

  client_send_request (fd, 0, NBD_CMD_BLOCK_STATUS, 3, FAKE_BAD_OFFSET, 1);
  chunk = client_recv_chunk (fd);
  CHECK_EQ (client_recv_error (fd, &chunk, &bad_offset), NBD_EIO);
  CHECK_EQ (bad_offset, FAKE_BAD_OFFSET);
  CHECK_EQ (chunk.flags, NBD_REPLY_FLAG_DONE);
  CHECK_EQ (ask (fd, 0, 0, 1).covered, 1);
  close (fd);
}

/* ---- Many at once ---- */

static void
few_maps_are_under_way_for_a_client_and_none_is_lost (void)
{
  enum {
    COUNT = 200
  };
  const int fd = attach ("held", both);
  const int other = attach ("fast", both);
  bool is_answered[COUNT] = { false };
  struct client_chunk chunk;
  uint8_t payload[64];
  unsigned i;

  for (i = 0; i < COUNT; i++)
    client_send_request (fd, REQ_ONE, NBD_CMD_BLOCK_STATUS, i, i * 4096ull,
                         4096);
  while (fake_pager_counts (fixture.pager).waiting < MAX_MAPS)
    poll (NULL, 0, 1);
  CHECK_EQ (ask (other, 0, 0, 1).covered, 1);
  CHECK_EQ (fake_pager_counts (fixture.pager).waiting, MAX_MAPS);
  fake_pager_let_go (fixture.pager);
  for (i = 0; i < 2 * COUNT; i++) {
    chunk = client_recv_chunk (fd);
    CHECK_EQ (chunk.len, 12);
    client_recv (fd, payload, chunk.len);
    CHECK (chunk.cookie < COUNT);
    CHECK (!is_answered[chunk.cookie]);
    is_answered[chunk.cookie] = chunk.flags & NBD_REPLY_FLAG_DONE;
  }
  fake_pager_hold_again (fixture.pager);
  close (fd);
  close (other);
}

static void
maps_of_a_vanished_client_are_cancelled (void)
{
  const unsigned before = fake_pager_counts (fixture.pager).cancelled;
  const int fd = attach ("held", both);
  unsigned i;

  for (i = 0; i < 10; i++)
    client_send_request (fd, 0, NBD_CMD_BLOCK_STATUS, i, 0, 1 << 20);
  while (fake_pager_counts (fixture.pager).waiting < MAX_MAPS)
    poll (NULL, 0, 1);
  close (fd);
  while (fake_pager_counts (fixture.pager).cancelled < before + MAX_MAPS)
    poll (NULL, 0, 1);
  CHECK (fake_pager_wait_idle (fixture.pager));
}

static void
a_client_that_does_not_read_maps_loses_none (void)
{
  enum {
    COUNT = 300 /* More answers than a socket takes. */
  };
  const int fd = attach ("fast", both);
  unsigned i;

  for (i = 0; i < COUNT; i++)
    client_send_request (fd, 0, NBD_CMD_BLOCK_STATUS, i, 0, FAKE_SIZE);
  for (i = 0; i < COUNT; i++) {
    CHECK_EQ (take_status (fd, MAP_ALLOCATION, 0).count, MAX_EXTENTS);
    CHECK_EQ (take_status (fd, MAP_RESIDENCY, 0).count, MAX_EXTENTS);
  }
  close (fd);
}

int
main (void)
{
  fixture.limits = default_front_limits;
  fixture.limits.max_maps = MAX_MAPS;
  fixture.limits.max_extents = MAX_EXTENTS;
  fixture.limits.stall_ns = 10 * NS_PER_MS;
  fixture_start (&fixture);
  RUN (walks_of_any_step_put_the_true_map_together);
  RUN (a_byte_is_an_extent);
  RUN (one_context_has_one_chunk);
  RUN (an_answer_has_a_bounded_number_of_extents);
  RUN (requests_that_make_no_sense_are_refused_and_the_connection_kept);
  RUN (a_client_without_structured_replies_gets_a_simple_refusal);
  RUN (a_map_that_cannot_be_made_is_an_error_at_its_offset);
  RUN (few_maps_are_under_way_for_a_client_and_none_is_lost);
  RUN (maps_of_a_vanished_client_are_cancelled);
  RUN (a_client_that_does_not_read_maps_loses_none);
  fixture_stop (&fixture);
  return EXIT_SUCCESS;
}
