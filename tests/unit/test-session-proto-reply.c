/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Replies of a session: what is sent is what arrives, and what no driver
 * could mean is malformed.
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
#include "lib/pack.h"
#include "lib/profile.h"
#include "lib/session-proto.h"
#include "lib/store.h"

Test (session_proto_reply, a_reply_header_arrives)
{
  uint8_t bytes[BP_REPLY_HEADER_SIZE];
  char hex[2 * BP_REPLY_HEADER_SIZE + 1];
  size_t len = 0;
  int status = 1;

  bp_reply_header_encode (-ENOENT, 0, bytes);
  bp_hex_encode (bytes, sizeof bytes, hex);
  cr_assert_str_eq (hex, "feffffff"
                         "00000000"
                         "1000000000000000");
  cr_assert_eq (bp_reply_header_decode (bytes, &status, &len), 0);
  cr_assert_eq (status, -ENOENT);
  cr_assert_eq (len, 0);
  bp_reply_header_encode (0, BP_AREA_SIZE - BP_REPLY_HEADER_SIZE, bytes);
  cr_assert_eq (bp_reply_header_decode (bytes, &status, &len), 0);
  cr_assert_eq (len, BP_AREA_SIZE - BP_REPLY_HEADER_SIZE);
}

Test (session_proto_reply, an_impossible_reply_header_is_malformed)
{
  static const struct {
    uint32_t status, reserved;
    uint64_t len;
  } bad[] = {
    { 1, 0, 16 },
    { (uint32_t) -4096, 0, 16 },
    { 0x80000000, 0, 16 },
    { 0, 1, 16 },
    { 0, 0, 15 },
    { 0, 0, 0 },
    { 0, 0, BP_AREA_SIZE + 1 },
    { 0, 0, UINT64_MAX },
  };
  uint8_t bytes[BP_REPLY_HEADER_SIZE];
  size_t len;
  int status;

  for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
    put_le32 (bytes, bad[i].status);
    put_le32 (bytes + 4, bad[i].reserved);
    put_le64 (bytes + 8, bad[i].len);
    cr_assert_eq (bp_reply_header_decode (bytes, &status, &len), -EPROTO,
                  "row %zu", i);
  }
}

static const struct bp_hello_reply a_hello_reply = {
  .version = 1,
  .max_unanswered = 64,
  .max_messages = 1 << 20,
  .max_batch = 1024,
  .profiles_writable = true,
  .id = "00112233445566778899aabbccddeeff",
};

Test (session_proto_reply, a_hello_reply_arrives)
{
  uint8_t bytes[BP_HELLO_REPLY_SIZE];
  struct bp_hello_reply got;
  char hex[2 * 24 + 1];

  bp_hello_reply_encode (&a_hello_reply, bytes);
  bp_hex_encode (bytes, 24, hex);
  cr_assert_str_eq (hex, "01000000"
                         "40000000"
                         "0000100000000000"
                         "00040000"
                         "01000000");
  cr_assert_eq (memcmp (bytes + 24, a_hello_reply.id, 32), 0);
  cr_assert_eq (bp_hello_reply_decode (bytes, sizeof bytes, &got, NULL), 0);
  cr_assert_eq (got.version, 1);
  cr_assert_eq (got.max_unanswered, 64);
  cr_assert_eq (got.max_messages, 1 << 20);
  cr_assert_eq (got.max_batch, 1024);
  cr_assert (got.profiles_writable);
  cr_assert_str_eq (got.id, a_hello_reply.id);
}

Test (session_proto_reply, an_impossible_hello_reply_is_malformed)
{
  uint8_t good[BP_HELLO_REPLY_SIZE + 1] = { 0 }, bytes[sizeof good];
  static const struct {
    size_t at;
    uint8_t value;
  } bad[] = {
    { 0, 2 },    /* Another version. */
    { 4, 0 },    /* No request may be unanswered. */
    { 17, 0 },   /* No batch. */
    { 20, 3 },   /* An unknown flag. */
    { 24, 'A' }, /* Not a lower-case digit. */
    { 55, 0 },
  };
  struct bp_hello_reply got;

  bp_hello_reply_encode (&a_hello_reply, good);
  cr_assert_eq (bp_hello_reply_decode (good, sizeof good, &got, NULL),
                -EPROTO);
  cr_assert_eq (bp_hello_reply_decode (good, 55, &got, NULL), -EPROTO);
  for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
    memcpy (bytes, good, sizeof good);
    bytes[bad[i].at] = bad[i].value;
    cr_assert_eq (
      bp_hello_reply_decode (bytes, BP_HELLO_REPLY_SIZE, &got, NULL),
      -EPROTO, "byte %zu", bad[i].at);
  }
}

Test (session_proto_reply, open_results_arrive_or_are_malformed)
{
  static const uint64_t most = UINT64_C (1) << 40;
  const struct {
    struct bp_open_result result;
    int status;
  } rows[] = {
    { { 0, BP_CODEC_RAW, 0, 0 }, 0 },
    { { 0, BP_CODEC_RAW, most, most }, 0 },
    { { 0, BP_CODEC_ZSTD, most, 1 }, 0 },
    { { 0, BP_CODEC_ZSTD, 8192, 8192 }, 0 },
    { { 0, BP_CODEC_RAW, most + 1, most + 1 }, -EPROTO },
    { { 0, BP_CODEC_RAW, 8192, 8191 }, -EPROTO },
    { { 0, BP_CODEC_ZSTD, 8192, 8193 }, -EPROTO },
    { { 0, BP_CODEC_ZSTD, 8192, 0 }, -EPROTO },
    { { 0, 2, 8192, 8192 }, -EPROTO },
    { { 1, BP_CODEC_RAW, 0, 0 }, -EPROTO },
    { { -4096, BP_CODEC_RAW, 0, 0 }, -EPROTO },
    { { -ENOENT, BP_CODEC_RAW, 0, 0 }, 0 },
  };
  uint8_t bytes[BP_OPEN_RESULT_SIZE];

  for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
    const struct bp_open_result *wanted = &rows[i].result;
    struct bp_open_result got = { 0 };

    bp_open_result_encode (wanted, bytes);
    cr_assert_eq (bp_open_result_decode (bytes, &got), rows[i].status,
                  "row %zu", i);
    if (rows[i].status == 0) {
      cr_assert_eq (got.status, wanted->status);
      cr_assert_eq (got.codec, wanted->codec);
      cr_assert_eq (got.size, wanted->size);
      cr_assert_eq (got.stored_size, wanted->stored_size);
    }
  }
}

Test (session_proto_reply, a_failed_open_has_no_sizes)
{
  const struct bp_open_result failed = { .status = -ENOENT,
                                         .size = 1,
                                         .stored_size = 1 };
  uint8_t bytes[BP_OPEN_RESULT_SIZE];
  struct bp_open_result got;

  bp_open_result_encode (&failed, bytes);
  cr_assert_eq (bp_open_result_decode (bytes, &got), 0);
  cr_assert_eq (got.size, 0);
  bytes[8] = 1;
  cr_assert_eq (bp_open_result_decode (bytes, &got), -EPROTO);
}

Test (session_proto_reply, a_profile_reply_arrives_or_is_malformed)
{
  const uint8_t data[3] = { 1, 2, 3 };
  CLEANUP_FREE uint8_t *bytes = NULL;
  const char *meta;
  const uint8_t *got;
  size_t len, meta_len, got_len;

  cr_assert_eq (
    bp_profile_reply_encode ("{}", 2, data, sizeof data, &bytes, &len), 0);
  cr_assert_eq (bp_profile_reply_decode (bytes, len, &meta, &meta_len, &got,
                                         &got_len),
                0);
  cr_assert_eq (meta_len, 2);
  cr_assert_eq (memcmp (meta, "{}", 2), 0);
  cr_assert_eq (got_len, sizeof data);
  cr_assert_eq (memcmp (got, data, sizeof data), 0);

  cr_assert_eq (bp_profile_reply_decode (bytes, 7, &meta, &meta_len, &got,
                                         &got_len),
                -EPROTO);
  cr_assert_eq (bp_profile_reply_decode (bytes, 9, &meta, &meta_len, &got,
                                         &got_len),
                -EPROTO);
  bytes[4] = 1;
  cr_assert_eq (bp_profile_reply_decode (bytes, len, &meta, &meta_len, &got,
                                         &got_len),
                -EPROTO);
  bytes[4] = 0;
  put_le32 (bytes, UINT32_MAX);
  cr_assert_eq (bp_profile_reply_decode (bytes, len, &meta, &meta_len, &got,
                                         &got_len),
                -EPROTO);
}

Test (session_proto_reply, a_profile_reply_has_limits)
{
  const size_t most = 8 + BP_PROFILE_META_MAX + BP_PROFILE_MAX_SIZE + 1;
  CLEANUP_FREE uint8_t *bytes = calloc (1, most);
  const char *meta;
  const uint8_t *got;
  size_t meta_len, got_len;

  put_le32 (bytes, BP_PROFILE_META_MAX);
  cr_assert_eq (bp_profile_reply_decode (bytes, most - 1, &meta, &meta_len,
                                         &got, &got_len),
                0);
  cr_assert_eq (bp_profile_reply_decode (bytes, most, &meta, &meta_len, &got,
                                         &got_len),
                -EPROTO);
  put_le32 (bytes, BP_PROFILE_META_MAX + 1);
  cr_assert_eq (bp_profile_reply_decode (bytes, most, &meta, &meta_len, &got,
                                         &got_len),
                -EPROTO);
}
