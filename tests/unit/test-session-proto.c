/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Requests of a session: what is sent is what arrives, and what nobody
 * could mean is refused.
 */
#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/hex.h"
#include "lib/base/range.h"
#include "lib/profile.h"
#include "lib/session-proto.h"
#include "lib/store.h"

static struct bp_root
root_of (uint8_t byte)
{
  struct bp_root root;

  memset (root.bytes, byte, sizeof root.bytes);
  return root;
}

/* A request with a name. */
static struct bp_request
named (enum bp_op op, const char *name)
{
  struct bp_request request = { .op = op };

  strncpy (request.name, name, sizeof request.name - 1);
  return request;
}

/* REQUEST encoded and decoded; *RET_BYTES is what was between, which the
 * result borrows from.
 */
static struct bp_request
sent (const struct bp_request *request, const struct bp_open_item *items,
      const uint64_t *keys, uint8_t **ret_bytes)
{
  struct bp_request got = { 0 };
  struct bp_error err = { .msg = "" };
  size_t len;

  cr_assert_eq (bp_request_encode (request, items, keys, ret_bytes, &len),
                0);
  cr_assert_eq (bp_request_decode (*ret_bytes, len, &got, &err), 0, "%s",
                err.msg);
  cr_assert_eq (got.op, request->op);
  cr_assert_eq (got.count, request->count);
  return got;
}

/* What decoding the encoded REQUEST returns, and CUT bytes less or more
 * of it.
 */
static int
decode_status (const struct bp_request *request,
               const struct bp_open_item *items, const uint64_t *keys,
               int cut)
{
  CLEANUP_FREE uint8_t *bytes = NULL;
  struct bp_request got;
  size_t len;

  cr_assert_eq (bp_request_encode (request, items, keys, &bytes, &len), 0);
  bytes = realloc (bytes, len + 8);
  memset (bytes + len, 0, 8);
  return bp_request_decode (bytes, len + (size_t) cut, &got, NULL);
}

static void
assert_bytes (const uint8_t *bytes, const char *hex)
{
  char got[512];

  cr_assert_lt (strlen (hex), sizeof got);
  bp_hex_encode (bytes, strlen (hex) / 2, got);
  cr_assert_str_eq (got, hex);
}

/* ---- Offsets ---- */

Test (session_proto, offsets_have_the_bits_of_the_manual)
{
  cr_assert_eq (bp_data_offset (1, 0, false), UINT64_C (1) << 40);
  cr_assert_eq (bp_data_offset (1, 0x20000, true),
                UINT64_C (1) << 61 | UINT64_C (1) << 40 | 0x20000);
  /* The slot is the key mod 2^21. */
  cr_assert_eq (bp_data_offset ((UINT64_C (5) << 21) + 7, 0, false),
                UINT64_C (7) << 40);
  cr_assert_eq (bp_control_offset (0), UINT64_C (1) << 62);
  cr_assert_eq (bp_control_offset (3),
                (UINT64_C (1) << 62) + 3 * (UINT64_C (32) << 20));
}

/* ---- Requests ---- */

Test (session_proto, hello_arrives)
{
  const struct bp_request request = { .op = BP_OP_HELLO, .version = 1 };
  CLEANUP_FREE uint8_t *bytes = NULL;

  cr_assert_eq (sent (&request, NULL, NULL, &bytes).version, 1);
  assert_bytes (bytes, "01000000"
                       "00000000"
                       "01000000"
                       "00000000");
}

Test (session_proto, open_arrives_item_by_item)
{
  const struct bp_open_item items[2] = {
    { .key = 1, .root = root_of (0xaa), .flags = BP_OPEN_WILL_READ },
    { .key = (UINT64_C (3) << 21) + 2, .root = root_of (0xbb) },
  };
  const struct bp_request request = { .op = BP_OP_OPEN, .count = 2 };
  CLEANUP_FREE uint8_t *bytes = NULL;
  const struct bp_request got = sent (&request, items, NULL, &bytes);

  assert_bytes (bytes, "02000000"
                       "02000000"
                       "0100000000000000"
                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                       "01000000"
                       "00000000"
                       "0200600000000000");
  for (uint32_t i = 0; i < 2; i++) {
    struct bp_open_item item;

    bp_request_open_item (&got, i, &item);
    cr_assert_eq (item.key, items[i].key);
    cr_assert_eq (item.flags, items[i].flags);
    cr_assert (bp_root_equal (&item.root, &items[i].root));
  }
}

Test (session_proto, close_arrives_key_by_key)
{
  const uint64_t keys[3] = { 7, UINT64_MAX, 1 };
  const struct bp_request request = { .op = BP_OP_CLOSE, .count = 3 };
  CLEANUP_FREE uint8_t *bytes = NULL;
  const struct bp_request got = sent (&request, NULL, keys, &bytes);

  for (uint32_t i = 0; i < 3; i++)
    cr_assert_eq (bp_request_close_key (&got, i), keys[i]);
}

Test (session_proto, tree_and_frames_arrive)
{
  const struct bp_request tree = {
    .op = BP_OP_TREE,
    .key = 5,
    .level = 3,
    .first = 256,
    .nr = BP_MAX_TREE_COUNT,
  };
  const struct bp_request frames = {
    .op = BP_OP_FRAMES,
    .key = 6,
    .first = 9,
    .nr = BP_MAX_FRAMES_COUNT,
  };
  CLEANUP_FREE uint8_t *a = NULL, *b = NULL;
  struct bp_request got = sent (&tree, NULL, NULL, &a);

  cr_assert_eq (got.key, 5);
  cr_assert_eq (got.level, 3);
  cr_assert_eq (got.first, 256);
  cr_assert_eq (got.nr, BP_MAX_TREE_COUNT);
  assert_bytes (a, "03000000"
                   "00000000"
                   "0500000000000000"
                   "03000000"
                   "00100000"
                   "0001000000000000");
  got = sent (&frames, NULL, NULL, &b);
  cr_assert_eq (got.key, 6);
  cr_assert_eq (got.first, 9);
  cr_assert_eq (got.nr, BP_MAX_FRAMES_COUNT);
  assert_bytes (b, "04000000"
                   "00000000"
                   "0600000000000000"
                   "0900000000000000"
                   "00400000"
                   "00000000");
}

Test (session_proto, recordings_are_named_by_their_id)
{
  static const enum bp_op ops[] = { BP_OP_RECORD_STOP, BP_OP_RECORD_ABORT };

  for (size_t i = 0; i < ARRAY_LEN (ops); i++) {
    const struct bp_request request = { .op = ops[i], .recording = 77 };
    CLEANUP_FREE uint8_t *bytes = NULL;

    cr_assert_eq (sent (&request, NULL, NULL, &bytes).recording, 77);
  }
}

Test (session_proto, requests_of_nothing_arrive)
{
  static const enum bp_op ops[] = { BP_OP_RECORD_START, BP_OP_LIST_IMAGES,
                                    BP_OP_LIST_PROFILES };

  for (size_t i = 0; i < ARRAY_LEN (ops); i++) {
    const struct bp_request request = { .op = ops[i] };
    CLEANUP_FREE uint8_t *bytes = NULL;

    sent (&request, NULL, NULL, &bytes);
    cr_assert_eq (decode_status (&request, NULL, NULL, 1), -EINVAL);
  }
}

Test (session_proto, names_arrive)
{
  static const enum bp_op ops[] = { BP_OP_GET_IMAGE, BP_OP_GET_PROFILE,
                                    BP_OP_DELETE_PROFILE };

  for (size_t i = 0; i < ARRAY_LEN (ops); i++) {
    const struct bp_request request = named (ops[i], "debian-12:v1");
    CLEANUP_FREE uint8_t *bytes = NULL;

    cr_assert_str_eq (sent (&request, NULL, NULL, &bytes).name,
                      "debian-12:v1");
  }
}

Test (session_proto, a_profile_arrives_with_its_metadata)
{
  struct bp_request request = named (BP_OP_WRITE_PROFILE, ".boot"), got;
  CLEANUP_FREE uint8_t *bytes = NULL;
  CLEANUP_FREE uint8_t *data = calloc (1, BP_PROFILE_MAX_SIZE);

  data[BP_PROFILE_MAX_SIZE - 1] = 0x5a;
  request.meta = "{}";
  request.meta_len = 2;
  request.data = data;
  request.data_len = BP_PROFILE_MAX_SIZE;
  got = sent (&request, NULL, NULL, &bytes);
  cr_assert_str_eq (got.name, ".boot");
  cr_assert_eq (got.meta_len, 2);
  cr_assert_eq (memcmp (got.meta, "{}", 2), 0);
  cr_assert_eq (got.data_len, BP_PROFILE_MAX_SIZE);
  cr_assert_eq (memcmp (got.data, data, got.data_len), 0);
}

Test (session_proto, an_empty_profile_arrives)
{
  struct bp_request request = named (BP_OP_WRITE_PROFILE, "x"), got;
  CLEANUP_FREE uint8_t *bytes = NULL;

  request.meta = "{}";
  request.meta_len = 2;
  got = sent (&request, NULL, NULL, &bytes);
  cr_assert_eq (got.data_len, 0);
}

Test (session_proto, counters_of_a_replay_arrive)
{
  struct bp_request request = named (BP_OP_PROFILE_USED, "web"), got;
  CLEANUP_FREE uint8_t *bytes = NULL;

  request.root = root_of (0x17);
  request.meta = "{\"late\":1}";
  request.meta_len = strlen (request.meta);
  got = sent (&request, NULL, NULL, &bytes);
  cr_assert_str_eq (got.name, "web");
  assert_bytes (bytes, "0d000000"
                       "00000000"
                       "03000000"
                       "0a000000"
                       "17171717171717171717171717171717"
                       "17171717171717171717171717171717"
                       "776562"
                       "7b226c617465223a317d");
  cr_assert (bp_root_equal (&got.root, &request.root));
  cr_assert_eq (got.meta_len, request.meta_len);
  cr_assert_eq (memcmp (got.meta, request.meta, got.meta_len), 0);
}

/* ---- What is refused ---- */

Test (session_proto, a_request_of_the_wrong_length_is_refused)
{
  const struct bp_open_item item = { .key = 1 };
  const uint64_t key = 1;
  struct bp_request requests[] = {
    { .op = BP_OP_HELLO, .version = 1 },
    { .op = BP_OP_OPEN, .count = 1 },
    { .op = BP_OP_TREE, .key = 1, .nr = 1 },
    { .op = BP_OP_FRAMES, .key = 1, .nr = 1 },
    { .op = BP_OP_CLOSE, .count = 1 },
    { .op = BP_OP_RECORD_STOP, .recording = 1 },
    named (BP_OP_WRITE_PROFILE, "x"),
    named (BP_OP_PROFILE_USED, "x"),
  };

  for (size_t i = 0; i < ARRAY_LEN (requests); i++) {
    const struct bp_request *request = &requests[i];

    cr_assert_eq (decode_status (request, &item, &key, 0), 0, "op %d",
                  request->op);
    cr_assert_eq (decode_status (request, &item, &key, 1), -EINVAL, "op %d",
                  request->op);
    cr_assert_eq (decode_status (request, &item, &key, -1), -EINVAL,
                  "op %d", request->op);
    cr_assert_eq (decode_status (request, &item, &key, 8), -EINVAL, "op %d",
                  request->op);
  }
}

Test (session_proto, less_than_a_header_is_refused)
{
  const uint8_t bytes[8] = { BP_OP_LIST_IMAGES };
  struct bp_request got;

  for (size_t len = 0; len < 8; len++)
    cr_assert_eq (bp_request_decode (bytes, len, &got, NULL), -EINVAL);
  cr_assert_eq (bp_request_decode (bytes, 8, &got, NULL), 0);
}

Test (session_proto, an_unknown_op_is_refused)
{
  static const uint32_t bad[] = { 0, 16, 255, UINT32_MAX };
  uint8_t bytes[8] = { 0 };
  struct bp_request got;

  for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
    put_le32 (bytes, bad[i]);
    cr_assert_eq (bp_request_decode (bytes, sizeof bytes, &got, NULL),
                  -EINVAL, "op %u", bad[i]);
  }
}

Test (session_proto, a_count_without_a_batch_is_refused)
{
  const struct bp_request request = { .op = BP_OP_LIST_IMAGES, .count = 1 };

  cr_assert_eq (decode_status (&request, NULL, NULL, 0), -EINVAL);
}

Test (session_proto, an_empty_batch_is_refused_and_a_huge_one_is_too_large)
{
  static const enum bp_op ops[] = { BP_OP_OPEN, BP_OP_CLOSE };
  static struct bp_open_item items[BP_MAX_BATCH + 1];
  static uint64_t keys[BP_MAX_BATCH + 1];

  for (uint32_t i = 0; i <= BP_MAX_BATCH; i++)
    keys[i] = items[i].key = i + 1;
  for (size_t i = 0; i < ARRAY_LEN (ops); i++) {
    struct bp_request request = { .op = ops[i] };

    cr_assert_eq (decode_status (&request, items, keys, 0), -EINVAL);
    request.count = BP_MAX_BATCH;
    cr_assert_eq (decode_status (&request, items, keys, 0), 0);
    request.count = BP_MAX_BATCH + 1;
    cr_assert_eq (decode_status (&request, items, keys, 0), -ERANGE);
  }
}

Test (session_proto, a_count_that_the_bytes_do_not_hold_is_refused)
{
  uint8_t bytes[8] = { BP_OP_CLOSE };
  struct bp_request got;

  put_le32 (bytes + 4, 5);
  cr_assert_eq (bp_request_decode (bytes, sizeof bytes, &got, NULL),
                -EINVAL);
  put_le32 (bytes + 4, UINT32_MAX);
  cr_assert_eq (bp_request_decode (bytes, sizeof bytes, &got, NULL),
                -ERANGE);
}

Test (session_proto, keys_of_slot_0_and_unknown_flags_are_refused)
{
  const struct bp_request request = { .op = BP_OP_OPEN, .count = 1 };
  struct bp_open_item item = { .key = 0 };

  cr_assert_eq (decode_status (&request, &item, NULL, 0), -EINVAL);
  item.key = BP_NR_SLOTS;
  cr_assert_eq (decode_status (&request, &item, NULL, 0), -EINVAL);
  item.key = BP_NR_SLOTS + 1;
  cr_assert_eq (decode_status (&request, &item, NULL, 0), 0);
  item.flags = 2;
  cr_assert_eq (decode_status (&request, &item, NULL, 0), -EINVAL);
}

Test (session_proto, key_0_is_refused_everywhere)
{
  const struct bp_request close = { .op = BP_OP_CLOSE, .count = 1 };
  const struct bp_request tree = { .op = BP_OP_TREE, .nr = 1 };
  const struct bp_request frames = { .op = BP_OP_FRAMES, .nr = 1 };
  const uint64_t key = 0;

  cr_assert_eq (decode_status (&close, NULL, &key, 0), -EINVAL);
  cr_assert_eq (decode_status (&tree, NULL, NULL, 0), -EINVAL);
  cr_assert_eq (decode_status (&frames, NULL, NULL, 0), -EINVAL);
}

Test (session_proto, a_range_outside_every_tree_is_refused)
{
  const uint64_t leaves = UINT64_C (1) << 27, windows = UINT64_C (1) << 23;
  const struct {
    struct bp_request request;
    int status;
  } rows[] = {
    { { .op = BP_OP_TREE, .level = 4, .nr = 1 }, -EINVAL },
    { { .op = BP_OP_TREE, .nr = 0 }, -EINVAL },
    { { .op = BP_OP_TREE, .nr = BP_MAX_TREE_COUNT + 1 }, -EINVAL },
    { { .op = BP_OP_TREE, .first = leaves - 1, .nr = 1 }, 0 },
    { { .op = BP_OP_TREE, .first = leaves - 1, .nr = 2 }, -EINVAL },
    { { .op = BP_OP_TREE, .first = UINT64_MAX, .nr = 2 }, -EINVAL },
    { { .op = BP_OP_FRAMES, .nr = 0 }, -EINVAL },
    { { .op = BP_OP_FRAMES, .nr = BP_MAX_FRAMES_COUNT + 1 }, -EINVAL },
    { { .op = BP_OP_FRAMES, .first = windows - 1, .nr = 1 }, 0 },
    { { .op = BP_OP_FRAMES, .first = windows, .nr = 1 }, -EINVAL },
    { { .op = BP_OP_FRAMES, .first = UINT64_MAX, .nr = 2 }, -EINVAL },
  };

  for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
    struct bp_request request = rows[i].request;

    request.key = 1;
    cr_assert_eq (decode_status (&request, NULL, NULL, 0), rows[i].status,
                  "row %zu", i);
  }
}

Test (session_proto, what_is_no_name_is_refused)
{
  static const char *const bad[] = { "", "../x", "a/b", ".", "-x", "a b" };
  static const enum bp_op ops[] = { BP_OP_GET_IMAGE, BP_OP_GET_PROFILE,
                                    BP_OP_DELETE_PROFILE,
                                    BP_OP_WRITE_PROFILE,
                                    BP_OP_PROFILE_USED };

  for (size_t i = 0; i < ARRAY_LEN (ops); i++)
    for (size_t j = 0; j < ARRAY_LEN (bad); j++) {
      const struct bp_request request = named (ops[i], bad[j]);

      cr_assert_eq (decode_status (&request, NULL, NULL, 0), -EINVAL,
                    "op %d, '%s'", ops[i], bad[j]);
    }
}

Test (session_proto, a_dot_leads_names_of_profiles_only)
{
  const struct bp_request image = named (BP_OP_GET_IMAGE, ".boot");
  const struct bp_request profile = named (BP_OP_GET_PROFILE, ".boot");

  cr_assert_eq (decode_status (&image, NULL, NULL, 0), -EINVAL);
  cr_assert_eq (decode_status (&profile, NULL, NULL, 0), 0);
}

Test (session_proto, a_name_with_a_nul_byte_or_too_long_is_refused)
{
  uint8_t bytes[8 + 200] = { BP_OP_GET_PROFILE };
  struct bp_request got;

  memset (bytes + 8, 'a', 200);
  cr_assert_eq (bp_request_decode (bytes, 8 + 128, &got, NULL), 0);
  cr_assert_eq (bp_request_decode (bytes, 8 + 129, &got, NULL), -EINVAL);
  cr_assert_eq (bp_request_decode (bytes, 8 + 200, &got, NULL), -EINVAL);
  bytes[9] = '\0';
  cr_assert_eq (bp_request_decode (bytes, 8 + 3, &got, NULL), -EINVAL);
}

Test (session_proto, profiles_and_metadata_have_limits)
{
  const size_t len = BP_PROFILE_MAX_SIZE + 1;
  CLEANUP_FREE uint8_t *data = calloc (1, len);
  struct bp_request request = named (BP_OP_WRITE_PROFILE, "x");
  struct bp_request used = named (BP_OP_PROFILE_USED, "x");

  request.data = data;
  request.data_len = len;
  cr_assert_eq (decode_status (&request, NULL, NULL, 0), -ERANGE);
  request.data_len = 0;
  request.meta = used.meta = (const char *) data;
  request.meta_len = used.meta_len = BP_PROFILE_META_MAX;
  cr_assert_eq (decode_status (&request, NULL, NULL, 0), 0);
  cr_assert_eq (decode_status (&used, NULL, NULL, 0), 0);
  request.meta_len = used.meta_len = BP_PROFILE_META_MAX + 1;
  cr_assert_eq (decode_status (&request, NULL, NULL, 0), -ERANGE);
  cr_assert_eq (decode_status (&used, NULL, NULL, 0), -ERANGE);
}

Test (session_proto, lengths_that_wrap_are_refused)
{
  uint8_t bytes[8 + 16 + 1] = { BP_OP_WRITE_PROFILE };
  struct bp_request got;

  put_le32 (bytes + 8, UINT32_MAX);
  put_le32 (bytes + 12, 2);
  cr_assert_eq (bp_request_decode (bytes, sizeof bytes, &got, NULL),
                -EINVAL);
  put_le64 (bytes + 16, UINT64_MAX);
  cr_assert_eq (bp_request_decode (bytes, sizeof bytes, &got, NULL),
                -ERANGE);
}

Test (session_proto, hello_of_version_0_is_refused)
{
  struct bp_request request = { .op = BP_OP_HELLO };

  cr_assert_eq (decode_status (&request, NULL, NULL, 0), -EINVAL);
  /* A later client; the driver answers with the version it speaks. */
  request.version = 2;
  cr_assert_eq (decode_status (&request, NULL, NULL, 0), 0);
}
