/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a session reads of a blob: decoded bytes of any range, stored
 * bytes that decode to the same, and a tree and frames that fit them;
 * and what its recordings say of it.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/profile.h"
#include "harness/test-driver.h"
#include "harness/test-session.h"

enum {
  BLOB_SIZE = 5 * BP_WINDOW_SIZE + 777,
  NR_WINDOWS = 6
};
static uint8_t text[BLOB_SIZE], noise[BLOB_SIZE];
static struct bp_root text_root, noise_root;

static struct lane
new_session (const char *socket, char id[BP_SESSION_ID_SIZE])
{
  struct lane lane = lane_connect (socket, "session");

  EXPECT_EQ (lane_hello (&lane, id), 0);
  return lane;
}

static void
expect_bytes (struct lane *lane, uint64_t key, const uint8_t *data,
              uint64_t offset, size_t len)
{
  CLEANUP_FREE uint8_t *got = malloc (len);

  EXPECT_EQ (lane_read (lane, got, len, bp_data_offset (key, offset, false)),
             0);
  if (memcmp (got, data + offset, len) != 0)
    FAIL ("%zu bytes at %llu differ", len, (unsigned long long) offset);
}

static void
any_range_of_a_blob_can_be_read (const char *socket)
{
  static const size_t lens[] = { 1, 2, 4095, 4097, 131072, 300000 };
  char id[BP_SESSION_ID_SIZE];
  struct lane lane = new_session (socket, id);
  struct bp_open_result result;

  EXPECT_EQ (lane_open (&lane, 1, &text_root, &result), 0);
  EXPECT_EQ (result.codec, BP_CODEC_ZSTD);
  EXPECT (result.stored_size < BLOB_SIZE / 2);
  EXPECT_EQ (lane_open (&lane, 2, &noise_root, &result), 0);
  for (size_t i = 0; i < ARRAY_LEN (lens); i++)
    for (uint64_t offset = 0; offset + lens[i] <= BLOB_SIZE;
         offset += 65535 + lens[i] / 3) {
      expect_bytes (&lane, 1, text, offset, lens[i]);
      expect_bytes (&lane, 2, noise, offset, lens[i]);
    }
  expect_bytes (&lane, 1, text, 0, BLOB_SIZE);
  lane_close (&lane);
}

/* The sizes of all frames of key 1. */
static void
read_frames (struct lane *lane, uint32_t frames[NR_WINDOWS])
{
  const struct bp_request request = {
    .op = BP_OP_FRAMES,
    .key = 1,
    .nr = NR_WINDOWS,
  };
  CLEANUP_FREE uint8_t *payload = NULL;
  size_t len;

  EXPECT_EQ (lane_request (lane, &request, NULL, NULL, &payload, &len), 0);
  EXPECT_EQ (len, NR_WINDOWS * 4);
  for (int i = 0; i < NR_WINDOWS; i++)
    frames[i] = get_le32 (payload + 4 * i);
}

static void
stored_frames_decode_to_the_windows (const char *socket)
{
  static uint8_t stored[BLOB_SIZE], decoded[BP_WINDOW_SIZE];
  char id[BP_SESSION_ID_SIZE];
  struct lane lane = new_session (socket, id);
  uint32_t frames[NR_WINDOWS];
  struct bp_open_result result;
  uint64_t at = 0;

  EXPECT_EQ (lane_open (&lane, 1, &text_root, &result), 0);
  read_frames (&lane, frames);
  for (int w = 0; w < NR_WINDOWS; w++) {
    const size_t len = (size_t)
      MIN (BP_WINDOW_SIZE, BLOB_SIZE - w * BP_WINDOW_SIZE);

    EXPECT_EQ (lane_read (&lane, stored, frames[w],
                          bp_data_offset (1, at, true)),
               0);
    if (frames[w] < len)
      EXPECT_EQ (ZSTD_decompress (decoded, len, stored, frames[w]), len);
    else
      memcpy (decoded, stored, len);
    EXPECT (memcmp (decoded, text + (size_t) w * BP_WINDOW_SIZE, len) == 0);
    at += frames[w];
  }
  EXPECT_EQ (at, result.stored_size);
  EXPECT_EQ (lane_read (&lane, stored, 1, bp_data_offset (1, at, true)),
             EINVAL);
  lane_close (&lane);
}

static void
the_tree_verifies_a_window (const char *socket)
{
  char id[BP_SESSION_ID_SIZE];
  struct lane lane = new_session (socket, id);
  struct bp_request request = {
    .op = BP_OP_TREE,
    .key = 1,
    .nr = (uint32_t) bp_merkle_level_count (BLOB_SIZE, 0),
  };
  CLEANUP_FREE uint8_t *leaves = NULL;
  const uint8_t *nodes[BP_MERKLE_MAX_LEVELS];
  struct bp_window window = {
    .size = BLOB_SIZE,
    .offset = BP_WINDOW_SIZE,
    .data = text + BP_WINDOW_SIZE,
    .len = BP_WINDOW_SIZE,
    .root = &text_root,
    .nodes = nodes,
  };
  size_t len;

  EXPECT_EQ (lane_open (&lane, 1, &text_root, NULL), 0);
  EXPECT_EQ (bp_merkle_nr_levels (BLOB_SIZE), 1);
  EXPECT_EQ (lane_request (&lane, &request, NULL, NULL, &leaves, &len), 0);
  nodes[0] = leaves;
  bp_verify_windows (&window, 1);
  EXPECT_EQ (window.status, 0);
  request.first = 1;
  EXPECT_EQ (lane_request (&lane, &request, NULL, NULL, NULL, NULL),
             -EINVAL);
  request.key = 3;
  EXPECT_EQ (lane_request (&lane, &request, NULL, NULL, NULL, NULL),
             -EINVAL);
  lane_close (&lane);
}

/* ---- Recordings ---- */

static uint64_t
start_recording (struct lane *lane)
{
  const struct bp_request request = { .op = BP_OP_RECORD_START };
  CLEANUP_FREE uint8_t *payload = NULL;
  size_t len;

  EXPECT_EQ (lane_request (lane, &request, NULL, NULL, &payload, &len), 0);
  EXPECT_EQ (len, 8);
  return get_le64 (payload);
}

static int
end_recording (struct lane *lane, enum bp_op op, uint64_t id,
               struct bp_file_message **ret_messages, size_t *ret_count)
{
  const struct bp_request request = { .op = op, .recording = id };
  CLEANUP_FREE uint8_t *payload = NULL;
  size_t len;
  const int status =
    lane_request (lane, &request, NULL, NULL, &payload, &len);

  if (status == 0 && ret_messages)
    EXPECT_EQ (bp_profile_decode_files (payload, len, ret_messages,
                                        ret_count, NULL),
               0);
  return status;
}

static void
read_or_fail (struct lane *lane, uint64_t key, uint64_t offset, size_t len,
              bool is_stored)
{
  static uint8_t buf[BLOB_SIZE];

  EXPECT_EQ (lane_read (lane, buf, len,
                        bp_data_offset (key, offset, is_stored)),
             0);
}

/* One message for each window that a read of any connection covers, in
 * order; from the start to the stop of each recording.
 */
static void
a_recording_logs_the_reads_of_all_connections (const char *socket)
{
  static const struct bp_file_message wanted[] = {
    { 1, 0 }, { 2, 0 }, { 2, 131072 }, { 1, 131072 }, /* one by one */
    { 1, 0 },
    { 1, 131072 },
    { 1, 262144 },
    { 1, 655360 }, /* from b on */
    { 1, 262144 },
    { 1, 393216 }, /* stored */
  };
  CLEANUP_FREE struct bp_file_message *got = NULL, *later = NULL;
  char id[BP_SESSION_ID_SIZE], name[64];
  struct lane first = new_session (socket, id), second;
  uint32_t frames[NR_WINDOWS];
  size_t nr_got, nr_later;
  uint64_t a, b;

  snprintf (name, sizeof name, "session/%s", id);
  second = lane_connect (socket, name);
  EXPECT_EQ (lane_open (&first, 1, &text_root, NULL), 0);
  EXPECT_EQ (lane_open (&first, 2, &noise_root, NULL), 0);
  read_frames (&first, frames);
  read_or_fail (&first, 1, 0, 1, false); /* Before: in no log. */

  a = start_recording (&first);
  read_or_fail (&first, 1, 4096, 1, false);
  read_or_fail (&second, 2, 131071, 2, false);
  read_or_fail (&first, 1, 131072, 131072, false);
  b = start_recording (&second);
  EXPECT (a != b);
  read_or_fail (&second, 1, 1, 300000, false);
  read_or_fail (&first, 1, BLOB_SIZE - 1, 1, false);
  read_or_fail (&first, 1, frames[0] + frames[1] + frames[2] - 1, 2, true);

  EXPECT_EQ (end_recording (&second, BP_OP_RECORD_STOP, a, &got, &nr_got),
             0);
  EXPECT_EQ (nr_got, ARRAY_LEN (wanted));
  for (size_t i = 0; i < nr_got; i++)
    if (got[i].id != wanted[i].id || got[i].offset != wanted[i].offset)
      FAIL ("message %zu is %llu, %llu", i, (unsigned long long) got[i].id,
            (unsigned long long) got[i].offset);
  EXPECT_EQ (end_recording (&first, BP_OP_RECORD_STOP, b, &later,
                            &nr_later),
             0);
  EXPECT_EQ (nr_later, 6);

  EXPECT_EQ (end_recording (&first, BP_OP_RECORD_STOP, a, NULL, NULL),
             -EINVAL);
  EXPECT_EQ (end_recording (&first, BP_OP_RECORD_ABORT,
                            start_recording (&first), NULL, NULL),
             0);
  lane_close (&first);
  lane_close (&second);
}

int
main (void)
{
  const char *socket;

  test_begin ();
  test_fill_text (text, sizeof text, 1);
  test_fill_noise (noise, sizeof noise, 1);
  text_root = test_add_blob (BP_CODEC_ZSTD, text, sizeof text);
  noise_root = test_add_blob (BP_CODEC_RAW, noise, sizeof noise);

  socket = test_start_driver (NULL, NULL);
  any_range_of_a_blob_can_be_read (socket);
  stored_frames_decode_to_the_windows (socket);
  the_tree_verifies_a_window (socket);
  a_recording_logs_the_reads_of_all_connections (socket);
  return 0;
}
