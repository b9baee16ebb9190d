/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Everything that the session protocol does not allow is answered with
 * one error, and the connection goes on.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "harness/test-driver.h"
#include "harness/test-session.h"

enum {
  BLOB_SIZE = 200000
};
static uint8_t data[BLOB_SIZE];
static struct bp_root root;

static const struct bp_request list_images = { .op = BP_OP_LIST_IMAGES };

static struct lane
new_session (const char *socket)
{
  struct lane lane = lane_connect (socket, "session");
  char id[BP_SESSION_ID_SIZE];

  EXPECT_EQ (lane_hello (&lane, id), 0);
  return lane;
}

static void
before_hello_everything_is_refused_at_once (const char *socket)
{
  struct lane lane = lane_connect (socket, "session");
  uint8_t bytes[16] = { BP_OP_OPEN };
  char id[BP_SESSION_ID_SIZE];

  EXPECT_EQ (lane_read (&lane, bytes, 1, 0), EINVAL);
  EXPECT_EQ (lane_read (&lane, bytes, 1, bp_data_offset (1, 0, false)),
             EINVAL);
  EXPECT_EQ (lane_read (&lane, bytes, 1, bp_control_offset (1)), EINVAL);
  EXPECT_EQ (lane_write (&lane, bytes, sizeof bytes, bp_control_offset (0)),
             EINVAL);
  EXPECT_EQ (lane_wait (&lane, lane_send_request (&lane, &list_images, NULL,
                                                  NULL)),
             EINVAL);
  lane.next = 0;
  EXPECT_EQ (lane_hello (&lane, id), 0);
  lane_close (&lane);
}

static void
hello_comes_once_and_names_a_version (const char *socket)
{
  struct lane lane = lane_connect (socket, "session");
  struct bp_request hello = { .op = BP_OP_HELLO, .version = 99 };
  uint8_t byte;

  EXPECT_EQ (lane_request (&lane, &hello, NULL, NULL, NULL, NULL),
             -EOPNOTSUPP);
  EXPECT_EQ (lane_read (&lane, &byte, 1, bp_data_offset (1, 0, false)),
             EINVAL);
  lane_close (&lane);

  lane = new_session (socket);
  hello.version = BP_SESSION_VERSION;
  EXPECT_EQ (lane_request (&lane, &hello, NULL, NULL, NULL, NULL), -EINVAL);
  lane_close (&lane);
}

static void
lanes_join_a_session_that_exists_and_share_its_keys (const char *socket)
{
  struct lane first = lane_connect (socket, "session"), second;
  char id[BP_SESSION_ID_SIZE], name[64];
  struct bp_request hello = { .op = BP_OP_HELLO, .version = 1 };
  uint8_t byte;

  EXPECT_EQ (lane_hello (&first, id), 0);
  snprintf (name, sizeof name, "session/%s", id);
  second = lane_connect (socket, name);
  EXPECT_EQ (lane_open (&second, 7, &root, NULL), 0);
  EXPECT_EQ (lane_request (&second, &hello, NULL, NULL, NULL, NULL),
             -EINVAL);
  EXPECT_EQ (lane_read (&first, &byte, 1, bp_data_offset (7, 9, false)), 0);
  EXPECT_EQ (byte, data[9]);

  /* The session lives as long as one connection of it, whichever. */
  lane_close (&first);
  EXPECT_EQ (lane_read (&second, &byte, 1, bp_data_offset (7, 9, false)),
             0);
  lane_close (&second);

  EXPECT (!lane_try (socket, "session/", &second));
  EXPECT (!lane_try (socket, "session/00000000000000000000000000000000",
                     &second));
  EXPECT (!lane_try (socket, "session/../session", &second));
}

static void
a_request_that_does_not_decode_has_run (const char *socket)
{
  struct lane lane = new_session (socket);
  uint8_t bytes[BP_REPLY_HEADER_SIZE], junk[100];

  test_fill_noise (junk, sizeof junk, 3);
  EXPECT_EQ (lane_write (&lane, junk, sizeof junk, bp_control_offset (1)),
             0);
  EXPECT_EQ (lane_read (&lane, bytes, sizeof bytes, bp_control_offset (1)),
             0);
  EXPECT_EQ ((int32_t) get_le32 (bytes), -EINVAL);
  lane.next = 2;
  EXPECT_EQ (lane_request (&lane, &list_images, NULL, NULL, NULL, NULL), 0);
  lane_close (&lane);
}

static void
a_number_is_used_once (const char *socket)
{
  struct lane lane = new_session (socket);

  EXPECT_EQ (lane_request (&lane, &list_images, NULL, NULL, NULL, NULL), 0);
  lane.next = 1;
  EXPECT_EQ (lane_wait (&lane, lane_send_request (&lane, &list_images, NULL,
                                                  NULL)),
             EINVAL);
  EXPECT_EQ (lane_request (&lane, &list_images, NULL, NULL, NULL, NULL), 0);

  /* 64 may be unanswered: the one behind them is refused at once. */
  lane.next = 3 + BP_MAX_UNANSWERED;
  EXPECT_EQ (lane_wait (&lane, lane_send_request (&lane, &list_images, NULL,
                                                  NULL)),
             EINVAL);
  lane_close (&lane);
}

static void
writes_elsewhere_zeroes_and_trim_are_refused (const char *socket)
{
  struct lane lane = new_session (socket);
  uint8_t bytes[24] = { BP_OP_LIST_IMAGES };
  struct nbd_handle *nbd = lane.nbd;

  EXPECT_EQ (lane_write (&lane, bytes, 8, 0), EINVAL);
  EXPECT_EQ (lane_write (&lane, bytes, 8, bp_data_offset (1, 0, false)),
             EINVAL);
  EXPECT_EQ (lane_write (&lane, bytes, 8, bp_control_offset (1) + 8),
             EINVAL);
  EXPECT (nbd_zero (nbd, 4096, bp_control_offset (1), 0) == -1);
  EXPECT_EQ (nbd_get_errno (), EINVAL);
  EXPECT (nbd_trim (nbd, 4096, bp_control_offset (1), 0) == -1);
  EXPECT_EQ (nbd_get_errno (), EINVAL);

  EXPECT_EQ (lane_request (&lane, &list_images, NULL, NULL, NULL, NULL), 0);
  lane_close (&lane);
}

static void
old_replies_are_forgotten (const char *socket)
{
  struct lane lane = new_session (socket);
  uint8_t bytes[BP_REPLY_HEADER_SIZE], zeros[64];

  while (lane.next <= BP_MAX_UNANSWERED)
    EXPECT_EQ (lane_request (&lane, &list_images, NULL, NULL, NULL, NULL),
               0);
  EXPECT_EQ (lane_read (&lane, bytes, sizeof bytes, bp_control_offset (0)),
             EINVAL);
  EXPECT_EQ (lane_read (&lane, bytes, sizeof bytes, bp_control_offset (1)),
             0);
  EXPECT_EQ (get_le64 (bytes + 8), BP_REPLY_HEADER_SIZE + 13);

  /* Past its end an area is zeros; past the area is nowhere. */
  EXPECT_EQ (lane_read (&lane, zeros, sizeof zeros,
                        bp_control_offset (2) - sizeof zeros),
             0);
  EXPECT (bytes_are_zero (zeros, sizeof zeros));
  EXPECT_EQ (lane_read (&lane, zeros, sizeof zeros,
                        bp_control_offset (2) - sizeof zeros + 1),
             EINVAL);
  lane_close (&lane);
}

static void
keys_have_their_rules (const char *socket)
{
  struct lane lane = new_session (socket);
  const struct bp_root missing = { { 0xde, 0xad } };
  struct bp_open_result result;
  unsigned took_ms;

  EXPECT_EQ (lane_read_timed (&lane, 5, &took_ms), EINVAL);
  EXPECT_EQ (lane_open (&lane, 1, &root, &result), 0);
  EXPECT_EQ (result.size, BLOB_SIZE);
  EXPECT_EQ (lane_open (&lane, 1, &root, NULL), -EEXIST);
  EXPECT_EQ (lane_open (&lane, 1 + BP_NR_SLOTS, &root, NULL), -EEXIST);
  EXPECT_EQ (lane_close_key (&lane, 1 + BP_NR_SLOTS), 0);
  EXPECT_EQ (lane_read_timed (&lane, bp_data_offset (1, 0, false),
                              &took_ms),
             0);
  EXPECT_EQ (lane_read_timed (&lane,
                              bp_data_offset (1, BLOB_SIZE - 1, false),
                              &took_ms),
             0);
  EXPECT_EQ (lane_read_timed (&lane, bp_data_offset (1, BLOB_SIZE, false),
                              &took_ms),
             EINVAL);

  /* A failed open is remembered until it is closed. */
  EXPECT_EQ (lane_open (&lane, 2, &missing, NULL), -ENOENT);
  EXPECT_EQ (lane_read_timed (&lane, bp_data_offset (2, 0, false),
                              &took_ms),
             EINVAL);
  EXPECT_EQ (lane_open (&lane, 2, &root, NULL), -EEXIST);
  EXPECT_EQ (lane_close_key (&lane, 2), 0);
  EXPECT_EQ (lane_close_key (&lane, 2), 0);
  EXPECT_EQ (lane_open (&lane, 2, &root, NULL), 0);
  lane_close (&lane);
}

static void
a_read_only_driver_has_no_session (void)
{
  static const char *const options[] = { "-r", NULL };
  const char *socket = test_start_driver (options, NULL);
  struct lane lane;

  EXPECT (!lane_try (socket, "session", &lane));
  EXPECT (strstr (nbd_get_error (), "session") != NULL);
  test_stop ();
}

int
main (void)
{
  const char *socket;

  test_begin ();
  test_fill_noise (data, sizeof data, 1);
  root = test_add_blob (BP_CODEC_RAW, data, sizeof data);

  socket = test_start_driver (NULL, NULL);
  before_hello_everything_is_refused_at_once (socket);
  hello_comes_once_and_names_a_version (socket);
  lanes_join_a_session_that_exists_and_share_its_keys (socket);
  a_request_that_does_not_decode_has_run (socket);
  a_number_is_used_once (socket);
  writes_elsewhere_zeroes_and_trim_are_refused (socket);
  old_replies_are_forgotten (socket);
  keys_have_their_rules (socket);
  test_stop ();
  a_read_only_driver_has_no_session ();
  return 0;
}
