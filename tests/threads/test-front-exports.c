/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* INFO, GO and EXPORT_NAME: what they tell, and which export is served. */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "harness/check.h"
#include "harness/front-client.h"

static struct front_fixture fixture;

/* ---- INFO and GO ---- */

static void
info_tells_all_that_was_asked_and_go_serves (void)
{
  const int fd = client_greeted (&fixture);
  uint8_t data[NBD_MAX_STRING];
  size_t len;

  client_send_info (fd, NBD_OPT_INFO, "slow");
  CHECK_EQ (client_recv_option (fd, NBD_OPT_INFO, data, &len), NBD_REP_INFO);
  CHECK_EQ (len, 12);
  CHECK_EQ (get_be16 (data), NBD_INFO_EXPORT);
  CHECK_EQ (get_be64 (data + 2), FAKE_SIZE);
  CHECK_EQ (get_be16 (data + 10), FIXTURE_FLAGS);
  CHECK_EQ (client_recv_option (fd, NBD_OPT_INFO, data, &len), NBD_REP_INFO);
  CHECK_EQ (get_be16 (data), NBD_INFO_NAME);
  CHECK_EQ (len, 2 + strlen ("slow"));
  CHECK (memcmp (data + 2, "slow", 4) == 0);
  CHECK_EQ (client_recv_option (fd, NBD_OPT_INFO, data, &len), NBD_REP_INFO);
  CHECK_EQ (get_be16 (data), NBD_INFO_DESCRIPTION);
  CHECK (memcmp (data + 2, "an image in memory", len - 2) == 0);
  CHECK_EQ (client_recv_option (fd, NBD_OPT_INFO, data, &len), NBD_REP_INFO);
  CHECK_EQ (len, 14);
  CHECK_EQ (get_be16 (data), NBD_INFO_BLOCK_SIZE);
  CHECK_EQ (get_be32 (data + 2), 1);
  CHECK_EQ (get_be32 (data + 6), 4096);
  CHECK_EQ (get_be32 (data + 10), 32 << 20);
  CHECK_EQ (client_recv_option (fd, NBD_OPT_INFO, data, &len), NBD_REP_ACK);
  CHECK_EQ (len, 0);
  client_expect_goes_on (&fixture, fd);
}

static void
the_empty_name_is_told_its_real_one (void)
{
  const int fd = client_greeted (&fixture);
  uint8_t data[NBD_MAX_STRING];
  size_t len;

  client_send_info (fd, NBD_OPT_INFO, "");
  client_recv_option (fd, NBD_OPT_INFO, data, &len);
  client_recv_option (fd, NBD_OPT_INFO, data, &len);
  CHECK_EQ (len, 2 + strlen ("fast"));
  CHECK (memcmp (data + 2, "fast", 4) == 0);
  CHECK_EQ (client_end_option (fd, NBD_OPT_INFO), NBD_REP_ACK);
  client_expect_goes_on (&fixture, fd);
}

/* GO for "fast" that requests COUNT items from the list ITEMS. */
static void
expect_items (const uint16_t *items, uint16_t count)
{
  uint8_t data[4 + 4 + 2 + 2 * 300] = { 0, 0, 0, 4, 'f', 'a', 's', 't' };
  const int fd = client_greeted (&fixture);
  size_t len, told[4] = { 0 };
  uint16_t i;

  put_be16 (data + 8, count);
  for (i = 0; i < count; i++)
    put_be16 (data + 10 + 2 * i, items[i]);
  client_send_option (fd, NBD_OPT_GO, data, 10 + 2 * (size_t) count);
  while (client_recv_option (fd, NBD_OPT_GO, data, &len) == NBD_REP_INFO) {
    CHECK (get_be16 (data) < ARRAY_LEN (told));
    told[get_be16 (data)]++;
  }
  CHECK_EQ (told[NBD_INFO_EXPORT], 1);
  CHECK_EQ (told[NBD_INFO_BLOCK_SIZE], 1);
  CHECK_EQ (told[NBD_INFO_NAME], count > 0);
  CHECK_EQ (told[NBD_INFO_DESCRIPTION], count > 0);
  client_expect_bytes (&fixture, fd, 1, 2);
  close (fd);
}

static void
items_asked_for_twice_or_unknown_are_told_once_or_not (void)
{
  uint16_t items[300] = { 0 };
  size_t i;

  expect_items (items, 0);
  for (i = 0; i < ARRAY_LEN (items); i++)
    items[i] = (uint16_t) (i % 2 ? i : i % 4);
  expect_items (items, ARRAY_LEN (items));
}

/* Whatever was asked about before, the last one is served. */
static void
the_export_that_go_names_is_served (void)
{
  uint8_t reply[10];
  uint64_t cookie;
  int fd = client_greeted (&fixture);

  client_send_info (fd, NBD_OPT_INFO, "corrupt");
  CHECK_EQ (client_end_option (fd, NBD_OPT_INFO), NBD_REP_ACK);
  client_send_info (fd, NBD_OPT_GO, "broken");
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ERR_PLATFORM);
  client_send_info (fd, NBD_OPT_INFO, "corrupt");
  CHECK_EQ (client_end_option (fd, NBD_OPT_INFO), NBD_REP_ACK);
  client_send_info (fd, NBD_OPT_GO, "fast");
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
  client_expect_bytes (&fixture, fd, FAKE_BAD_OFFSET, 4096);
  close (fd);

  fd = client_greeted (&fixture);
  client_send_info (fd, NBD_OPT_INFO, "fast");
  CHECK_EQ (client_end_option (fd, NBD_OPT_INFO), NBD_REP_ACK);
  client_send_option (fd, NBD_OPT_EXPORT_NAME, "corrupt", 7);
  client_recv (fd, reply, sizeof reply);
  client_send_request (fd, 0, NBD_CMD_READ, 1, FAKE_BAD_OFFSET, 1);
  CHECK_EQ (client_recv_reply (fd, &cookie), NBD_EIO);
  close (fd);
}

/* ---- EXPORT_NAME ---- */

/* The old way to attach: WANTED_ZEROES behind size and flags. */
static void
expect_export_name (uint32_t flags, size_t wanted_zeroes)
{
  const int fd = client_connect (&fixture);
  uint8_t reply[10 + 124];

  client_greet (fd, flags);
  client_send_option (fd, NBD_OPT_EXPORT_NAME, "mixed", 5);
  client_recv (fd, reply, 10 + wanted_zeroes);
  CHECK_EQ (get_be64 (reply), FAKE_SIZE);
  CHECK_EQ (get_be16 (reply + 8), FIXTURE_FLAGS);
  if (wanted_zeroes)
    CHECK (bytes_are_zero (reply + 10, wanted_zeroes));
  client_expect_bytes (&fixture, fd, 1, 4096);
  close (fd);
}

static void
export_name_attaches_with_and_without_zeroes (void)
{
  int fd;

  expect_export_name (NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES, 0);
  expect_export_name (NBD_FLAG_FIXED_NEWSTYLE, 124);
  expect_export_name (0, 124);

  /* It has no error reply. */
  fd = client_greeted (&fixture);
  client_send_option (fd, NBD_OPT_EXPORT_NAME, "nobody", 6);
  client_expect_closed (fd);
}

static void
export_name_of_any_length_ends_in_order (void)
{
  static const uint32_t lengths[] = { 256, 4096, 4097, 64 << 10,
                                      (64 << 10) + 1, 1 << 20 };
  uint8_t *name = malloc (1 << 20);
  size_t i;
  int fd;

  CHECK (name != NULL);
  memset (name, 'n', 1 << 20);
  for (i = 0; i < ARRAY_LEN (lengths); i++) {
    fd = client_greeted (&fixture);
    client_send_option (fd, NBD_OPT_EXPORT_NAME, name, lengths[i]);
    client_expect_closed (fd);
  }
  free (name);
  fd = client_greeted (&fixture);
  client_send_option (fd, NBD_OPT_EXPORT_NAME, NULL, UINT32_MAX);
  client_expect_closed (fd);
}

int
main (void)
{
  fixture_start (&fixture);
  RUN (info_tells_all_that_was_asked_and_go_serves);
  RUN (the_empty_name_is_told_its_real_one);
  RUN (items_asked_for_twice_or_unknown_are_told_once_or_not);
  RUN (the_export_that_go_names_is_served);
  RUN (export_name_attaches_with_and_without_zeroes);
  RUN (export_name_of_any_length_ends_in_order);
  fixture_stop (&fixture);
  return EXIT_SUCCESS;
}
