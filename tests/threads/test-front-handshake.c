/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Negotiation, proper and otherwise.  Where the protocol lets a server go
 * on, the same connection attaches with GO afterwards.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "harness/check.h"
#include "harness/front-client.h"

static struct front_fixture fixture;

/* OPTION with DATA is refused with TYPE, and FD goes on. */
static void
expect_refused (uint32_t option, const void *data, size_t len, uint32_t type)
{
  const int fd = client_greeted (&fixture);

  client_send_option (fd, option, data, len);
  CHECK_EQ (client_end_option (fd, option), type);
  client_expect_goes_on (&fixture, fd);
}

static void
unknown_options_are_refused_and_the_connection_kept (void)
{
  static const uint32_t options[] = { 0, 4, 11, 12, 99, UINT32_MAX };
  const int fd = client_greeted (&fixture);
  uint8_t data[5000];
  size_t i;

  memset (data, 0x49, sizeof data);
  for (i = 0; i < ARRAY_LEN (options); i++) {
    client_send_option (fd, options[i], data, i * 500);
    CHECK_EQ (client_end_option (fd, options[i]), NBD_REP_ERR_UNSUP);
  }
  client_expect_goes_on (&fixture, fd);
}

/* The transmission flags that INFO tells on FD. */
static uint16_t
flags_of_export (int fd)
{
  uint8_t data[NBD_MAX_STRING];
  size_t len;

  client_send_info (fd, NBD_OPT_INFO, "fast");
  CHECK_EQ (client_recv_option (fd, NBD_OPT_INFO, data, &len), NBD_REP_INFO);
  CHECK_EQ (get_be16 (data), NBD_INFO_EXPORT);
  CHECK_EQ (client_end_option (fd, NBD_OPT_INFO), NBD_REP_ACK);
  return get_be16 (data + 10);
}

static void
structured_replies_are_accepted_once_and_bring_df (void)
{
  const uint32_t option = NBD_OPT_STRUCTURED_REPLY;
  const int fd = client_greeted (&fixture);

  CHECK_EQ (flags_of_export (fd), FIXTURE_FLAGS);
  client_send_option (fd, option, "x", 1);
  CHECK_EQ (client_end_option (fd, option), NBD_REP_ERR_INVALID);
  CHECK_EQ (flags_of_export (fd), FIXTURE_FLAGS);
  client_send_option (fd, option, NULL, 0);
  CHECK_EQ (client_end_option (fd, option), NBD_REP_ACK);
  CHECK_EQ (flags_of_export (fd), FIXTURE_FLAGS | NBD_FLAG_SEND_DF);
  client_send_option (fd, option, NULL, 0);
  CHECK_EQ (client_end_option (fd, option), NBD_REP_ERR_INVALID);
  CHECK_EQ (flags_of_export (fd), FIXTURE_FLAGS | NBD_FLAG_SEND_DF);
  close (fd);
}

static void
malformed_options_are_refused_and_the_connection_kept (void)
{
  static const uint8_t
    short_data[] = { 0, 0, 0, 0, 0 },
    name_past_end[] = { 0, 0, 0, 2, 'a', 0, 0 },
    huge_name[] = { 255, 255, 255, 255, 'a', 0, 0 },
    items_past_end[] = { 0, 0, 0, 1, 'a', 0, 2, 0, 3 },
    many_items[] = { 0, 0, 0, 1, 'a', 255, 255, 0, 3 },
    trailing[] = { 0, 0, 0, 1, 'a', 0, 0, 0 },
    zero_in_name[] = { 0, 0, 0, 3, 'a', 0, 'b', 0, 0 };
  static const struct {
    const uint8_t *data;
    size_t len;
  } bad[] = {
    { NULL, 0 },
    { short_data, sizeof short_data },
    { name_past_end, sizeof name_past_end },
    { huge_name, sizeof huge_name },
    { items_past_end, sizeof items_past_end },
    { many_items, sizeof many_items },
    { trailing, sizeof trailing },
    { zero_in_name, sizeof zero_in_name },
  };
  size_t i;

  for (i = 0; i < ARRAY_LEN (bad); i++) {
    expect_refused (NBD_OPT_GO, bad[i].data, bad[i].len,
                    NBD_REP_ERR_INVALID);
    expect_refused (NBD_OPT_INFO, bad[i].data, bad[i].len,
                    NBD_REP_ERR_INVALID);
  }
  expect_refused (NBD_OPT_LIST, "x", 1, NBD_REP_ERR_INVALID);
}

/* A GO for a name of LEN letters. */
static uint8_t *
long_name (size_t len, size_t *ret_len)
{
  uint8_t *data = malloc (len + 6);

  CHECK (data != NULL);
  put_be32 (data, (uint32_t) len);
  memset (data + 4, 'n', len);
  put_be16 (data + 4 + len, 0);
  *ret_len = len + 6;
  return data;
}

static void
expect_name_refused (size_t name_len, uint32_t type)
{
  size_t len;
  uint8_t *data = long_name (name_len, &len);

  expect_refused (NBD_OPT_GO, data, len, type);
  free (data);
}

static void
oversize_options_are_refused (void)
{
  int fd;

  expect_name_refused (255, NBD_REP_ERR_UNKNOWN);
  expect_name_refused (256, NBD_REP_ERR_UNKNOWN);
  expect_name_refused (4096, NBD_REP_ERR_UNKNOWN);
  expect_name_refused (4097, NBD_REP_ERR_TOO_BIG);
  expect_name_refused ((64 << 10) - 6, NBD_REP_ERR_TOO_BIG);
  expect_name_refused (64 << 10, NBD_REP_ERR_TOO_BIG);
  expect_name_refused ((32 << 20) - 6, NBD_REP_ERR_TOO_BIG);

  fd = client_greeted (&fixture);
  client_send_option (fd, NBD_OPT_GO, NULL, (32 << 20) + 1);
  client_expect_closed (fd);
  fd = client_greeted (&fixture);
  client_send_option (fd, 77, NULL, UINT32_MAX);
  client_expect_closed (fd);
}

/* Each cause has its own answer: absence, policy, damage. */
static void
exports_that_cannot_be_opened_say_why (void)
{
  static const struct {
    const char *name;
    uint32_t type;
  } cases[] = {
    { "nobody", NBD_REP_ERR_UNKNOWN },
    { "session", NBD_REP_ERR_UNKNOWN },
    { "../x", NBD_REP_ERR_UNKNOWN },
    { "denied", NBD_REP_ERR_POLICY },
    { "broken", NBD_REP_ERR_PLATFORM },
  };
  const int fd = client_greeted (&fixture);
  size_t i;

  for (i = 0; i < ARRAY_LEN (cases); i++) {
    client_send_info (fd, NBD_OPT_INFO, cases[i].name);
    CHECK_EQ (client_end_option (fd, NBD_OPT_INFO), cases[i].type);
    client_send_info (fd, NBD_OPT_GO, cases[i].name);
    CHECK_EQ (client_end_option (fd, NBD_OPT_GO), cases[i].type);
  }
  client_expect_goes_on (&fixture, fd);
}

static void
list_names_every_tag_and_not_the_session (void)
{
  const int fd = client_greeted (&fixture);
  uint8_t data[NBD_MAX_STRING];
  size_t len, count = 0;
  uint32_t name_len;

  client_send_option (fd, NBD_OPT_LIST, NULL, 0);
  while (client_recv_option (fd, NBD_OPT_LIST, data, &len) ==
         NBD_REP_SERVER) {
    name_len = get_be32 (data);
    CHECK (name_len <= len - 4);
    CHECK (name_len != 7 || memcmp (data + 4, "session", 7) != 0);
    CHECK (len > 4 + name_len); /* A description follows. */
    count++;
  }
  CHECK_EQ (len, 0);
  CHECK_EQ (count, 10);
  client_expect_goes_on (&fixture, fd);
}

static void
abort_is_acknowledged (void)
{
  const int fd = client_greeted (&fixture);
  uint8_t data[NBD_MAX_STRING];
  size_t len;

  client_send_option (fd, NBD_OPT_ABORT, NULL, 0);
  CHECK_EQ (client_recv_option (fd, NBD_OPT_ABORT, data, &len), NBD_REP_ACK);
  client_expect_closed (fd);
}

static void
lost_framing_ends_the_connection (void)
{
  int fd = client_connect (&fixture);

  client_greet (fd, 1 << 2); /* A flag that nobody offered. */
  client_expect_closed (fd);
  fd = client_greeted (&fixture);
  client_send (fd, "IHAVEOPS\0\0\0\7\0\0\0\0", NBD_OPTION_HEADER_SIZE);
  client_expect_closed (fd);
}

/* Flags, three options and two reads. */
static size_t
whole_dialogue (uint8_t *data)
{
  uint8_t *p = data;
  int i;

  put_be32 (p, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  p += 4;
  for (i = 0; i < 3; i++) {
    static const uint32_t options[] = { 99, NBD_OPT_LIST, NBD_OPT_GO };
    const uint32_t len = options[i] == NBD_OPT_GO ? 10 : 0;

    put_be64 (p, NBD_OPTION_MAGIC);
    put_be32 (p + 8, options[i]);
    put_be32 (p + 12, len);
    if (len > 0)
      memcpy (p + 16, "\0\0\0\4slow\0\0", 10);
    p += 16 + len;
  }
  for (i = 0; i < 2; i++) {
    memset (p, 0, NBD_REQUEST_SIZE);
    put_be32 (p, NBD_REQUEST_MAGIC);
    put_be64 (p + 8, (uint64_t) i);
    put_be32 (p + 24, 512);
    p += NBD_REQUEST_SIZE;
  }
  return (size_t) (p - data);
}

/* Answers to whole_dialogue. */
static void
expect_dialogue (int fd)
{
  uint8_t greeting[NBD_GREETING_SIZE];
  uint64_t cookie;
  int i;

  client_recv (fd, greeting, sizeof greeting);
  CHECK_EQ (client_end_option (fd, 99), NBD_REP_ERR_UNSUP);
  CHECK_EQ (client_end_option (fd, NBD_OPT_LIST), NBD_REP_ACK);
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
  for (i = 0; i < 2; i++) {
    CHECK_EQ (client_recv_reply (fd, &cookie), 0);
    client_recv_bytes (&fixture, fd, 0, 512);
  }
  close (fd);
}

static void
a_client_may_send_everything_at_once (void)
{
  const int fd = client_connect (&fixture);
  uint8_t data[256];

  client_send (fd, data, whole_dialogue (data));
  expect_dialogue (fd);
}

static void
a_client_may_send_byte_by_byte (void)
{
  const int fd = client_connect (&fixture);
  uint8_t data[256];
  const size_t len = whole_dialogue (data);
  size_t i;

  for (i = 0; i < len; i++)
    client_send (fd, data + i, 1);
  expect_dialogue (fd);
}

/* 2,000 questions, whose answers fit no socket buffer, before the first
 * answer is read.
 */
static void
answers_that_nobody_reads_yet_are_not_lost (void)
{
  enum {
    COUNT = 2000
  };
  const int fd = client_greeted (&fixture);
  const int other = client_attach (&fixture, "fast");
  static uint8_t options[COUNT * NBD_OPTION_HEADER_SIZE];
  int i;

  for (i = 0; i < COUNT; i++) {
    put_be64 (options + i * NBD_OPTION_HEADER_SIZE, NBD_OPTION_MAGIC);
    put_be32 (options + i * NBD_OPTION_HEADER_SIZE + 8, NBD_OPT_LIST);
  }
  client_send (fd, options, sizeof options);
  client_expect_bytes (&fixture, other, 0, 1 << 20);
  close (other);
  for (i = 0; i < COUNT; i++)
    CHECK_EQ (client_end_option (fd, NBD_OPT_LIST), NBD_REP_ACK);
  client_expect_goes_on (&fixture, fd);
}

int
main (void)
{
  fixture_start (&fixture);
  RUN (unknown_options_are_refused_and_the_connection_kept);
  RUN (structured_replies_are_accepted_once_and_bring_df);
  RUN (malformed_options_are_refused_and_the_connection_kept);
  RUN (oversize_options_are_refused);
  RUN (exports_that_cannot_be_opened_say_why);
  RUN (list_names_every_tag_and_not_the_session);
  RUN (abort_is_acknowledged);
  RUN (lost_framing_ends_the_connection);
  RUN (a_client_may_send_everything_at_once);
  RUN (a_client_may_send_byte_by_byte);
  RUN (answers_that_nobody_reads_yet_are_not_lost);
  fixture_stop (&fixture);
  return EXIT_SUCCESS;
}
