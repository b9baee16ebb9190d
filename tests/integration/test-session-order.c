/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Requests of a connection run in the order of their numbers, and what
 * waits for one of them waits, but never for ever.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "lib/base/range.h"
#include "harness/test-driver.h"
#include "harness/test-session.h"

enum {
  BLOB_SIZE = 300000
};
static uint8_t data[BLOB_SIZE];
static struct bp_root root;

/* HELLO, the read of its reply, OPEN, the read of its reply and a data
 * read are all sent before anything is answered, as far as the rules
 * allow: only HELLO must be answered before the rest.
 */
static void
opens_and_reads_are_pipelined (const char *socket)
{
  struct lane lane = lane_connect (socket, "session");
  const struct bp_open_item item = { .key = 1, .root = root };
  const struct bp_request open = { .op = BP_OP_OPEN, .count = 1 };
  char id[BP_SESSION_ID_SIZE];
  uint8_t reply[BP_REPLY_HEADER_SIZE + BP_OPEN_RESULT_SIZE];
  uint8_t bytes[1000];
  int64_t cookies[3];

  EXPECT_EQ (lane_hello (&lane, id), 0);
  EXPECT_EQ (strlen (id), 32);
  cookies[0] = lane_send_request (&lane, &open, &item, NULL);
  cookies[1] =
    lane_send_read (&lane, reply, sizeof reply, bp_control_offset (1));
  cookies[2] = lane_send_read (&lane, bytes, sizeof bytes,
                               bp_data_offset (1, 200000, false));
  for (size_t i = 0; i < ARRAY_LEN (cookies); i++)
    EXPECT_EQ (lane_wait (&lane, cookies[i]), 0);
  EXPECT (memcmp (bytes, data + 200000, sizeof bytes) == 0);
  lane_close (&lane);
}

/* A read of a key that nobody opens fails after a wait of about a second,
 * while another connection goes on as if nothing were.
 */
static void
a_read_before_its_open_fails_and_harms_nobody (const char *socket)
{
  struct lane waiting = lane_connect (socket, "session");
  struct lane other = lane_connect (socket, "session");
  char id[BP_SESSION_ID_SIZE];
  int64_t cookies[16];
  uint8_t bytes[16], byte;

  EXPECT_EQ (lane_hello (&waiting, id), 0);
  EXPECT_EQ (lane_hello (&other, id), 0);
  EXPECT_EQ (lane_open (&other, 1, &root, NULL), 0);
  for (size_t i = 0; i < ARRAY_LEN (cookies); i++)
    cookies[i] =
      lane_send_read (&waiting, &bytes[i], 1, bp_data_offset (9, i, false));

  for (uint64_t i = 0; i < 100; i++) {
    EXPECT_EQ (lane_read (&other, &byte, 1,
                          bp_data_offset (1, i * 1000, false)),
               0);
    EXPECT_EQ (byte, data[i * 1000]);
  }
  for (size_t i = 0; i < ARRAY_LEN (cookies); i++)
    EXPECT_EQ (lane_wait (&waiting, cookies[i]), EINVAL);

  /* The connection that broke the rules is of use again, too. */
  EXPECT_EQ (lane_open (&waiting, 9, &root, NULL), 0);
  EXPECT_EQ (lane_read (&waiting, &byte, 1, bp_data_offset (9, 5, false)),
             0);
  lane_close (&waiting);
  lane_close (&other);
}

/* The filter holds every write back for a while, so every read overtakes
 * the OPEN that it was sent behind: it finds its slot free, and waits.
 */
static void
a_read_that_overtakes_its_open_waits_for_it (void)
{
  static const char *const options[] = { "--filter=delay", NULL };
  static const char *const parameters[] = { "delay-write=300ms", NULL };
  const char *socket = test_start_driver (options, parameters);
  struct lane lane = lane_connect (socket, "session");
  char id[BP_SESSION_ID_SIZE];

  EXPECT_EQ (lane_hello (&lane, id), 0);
  for (uint64_t key = 1; key <= 3; key++) {
    const struct bp_open_item item = { .key = key, .root = root };
    const struct bp_request open = { .op = BP_OP_OPEN, .count = 1 };
    int64_t cookies[2];
    uint8_t byte;

    cookies[0] = lane_send_request (&lane, &open, &item, NULL);
    cookies[1] =
      lane_send_read (&lane, &byte, 1, bp_data_offset (key, 77, false));
    EXPECT_EQ (lane_wait (&lane, cookies[1]), 0);
    EXPECT_EQ (byte, data[77]);
    EXPECT_EQ (lane_wait (&lane, cookies[0]), 0);
  }
  lane_close (&lane);
  test_stop ();
}

/* A number that is skipped holds up the next for a second at most, and
 * takes nothing from it: it runs once the gap is filled.
 */
static void
a_request_waits_for_the_one_before_it (const char *socket)
{
  const struct bp_request list = { .op = BP_OP_LIST_IMAGES };
  struct lane lane = lane_connect (socket, "session");
  char id[BP_SESSION_ID_SIZE];
  int64_t later, first;

  EXPECT_EQ (lane_hello (&lane, id), 0);

  lane.next = 2;
  later = lane_send_request (&lane, &list, NULL, NULL);
  EXPECT_EQ (lane_wait (&lane, later), EINVAL);

  lane.next = 2;
  later = lane_send_request (&lane, &list, NULL, NULL);
  lane.next = 1;
  first = lane_send_request (&lane, &list, NULL, NULL);
  EXPECT_EQ (lane_wait (&lane, later), 0);
  EXPECT_EQ (lane_wait (&lane, first), 0);
  lane_close (&lane);
}

int
main (void)
{
  const char *socket;

  test_begin ();
  test_fill_noise (data, sizeof data, 1);
  root = test_add_blob (BP_CODEC_RAW, data, sizeof data);

  socket = test_start_driver (NULL, NULL);
  opens_and_reads_are_pipelined (socket);
  a_read_before_its_open_fails_and_harms_nobody (socket);
  a_request_waits_for_the_one_before_it (socket);
  test_stop ();
  a_read_that_overtakes_its_open_waits_for_it ();
  return 0;
}
