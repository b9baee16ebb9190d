/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Replies of a session.
 *
 *   header       i32 status, u32 0, u64 length with the header
 *   HELLO        u32 version, u32 max unanswered, u64 max messages,
 *                u32 max batch, u32 flags (1: profiles can be written),
 *                32 hexadecimal digits
 *   OPEN         count x (i32 status, u32 codec, u64 size, u64 stored)
 *   GET_PROFILE  u32 metadata length, u32 0, metadata, data
 *
 * The daemon decodes what an untrusted driver sent: all numbers are
 * checked here against what a driver could mean.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/hex.h"
#include "lib/pack.h"
#include "lib/profile.h"
#include "lib/session-proto.h"
#include "lib/store.h"

enum {
  MAX_ERRNO = 4095,
  HELLO_PROFILES_WRITABLE = 1,
  ID_DIGITS = BP_SESSION_ID_SIZE - 1,
  PROFILE_REPLY_HEADER = 8,
};

static bool
is_status (int32_t status)
{
  return status <= 0 && status >= -MAX_ERRNO;
}

void
bp_reply_header_encode (int status, size_t payload_len,
                        uint8_t out[BP_REPLY_HEADER_SIZE])
{
  put_le32 (out, (uint32_t) status);
  put_le32 (out + 4, 0);
  put_le64 (out + 8, BP_REPLY_HEADER_SIZE + (uint64_t) payload_len);
}

int
bp_reply_header_decode (const uint8_t bytes[BP_REPLY_HEADER_SIZE],
                        int *ret_status, size_t *ret_len)
{
  const int32_t status = (int32_t) get_le32 (bytes);
  const uint64_t len = get_le64 (bytes + 8);

  if (!is_status (status) || get_le32 (bytes + 4) != 0 ||
      len < BP_REPLY_HEADER_SIZE || len > BP_AREA_SIZE)
    return -EPROTO;
  *ret_status = status;
  *ret_len = (size_t) (len - BP_REPLY_HEADER_SIZE);
  return 0;
}

void
bp_hello_reply_encode (const struct bp_hello_reply *reply,
                       uint8_t out[BP_HELLO_REPLY_SIZE])
{
  put_le32 (out, reply->version);
  put_le32 (out + 4, reply->max_unanswered);
  put_le64 (out + 8, reply->max_messages);
  put_le32 (out + 16, reply->max_batch);
  put_le32 (out + 20, reply->profiles_writable ? HELLO_PROFILES_WRITABLE : 0);
  memcpy (out + 24, reply->id, ID_DIGITS);
}

int
bp_hello_reply_decode (const uint8_t *bytes, size_t len,
                       struct bp_hello_reply *ret_reply,
                       struct bp_error *err)
{
  struct bp_hello_reply reply = { 0 };
  uint8_t id[ID_DIGITS / 2];
  uint32_t flags;

  if (len != BP_HELLO_REPLY_SIZE)
    return bp_error_set (err, -EPROTO, "HELLO reply: %zu bytes", len);
  reply.version = get_le32 (bytes);
  reply.max_unanswered = get_le32 (bytes + 4);
  reply.max_messages = get_le64 (bytes + 8);
  reply.max_batch = get_le32 (bytes + 16);
  flags = get_le32 (bytes + 20);
  reply.profiles_writable = flags & HELLO_PROFILES_WRITABLE;
  memcpy (reply.id, bytes + 24, ID_DIGITS);

  if (reply.version != BP_SESSION_VERSION)
    return bp_error_set (err, -EPROTO, "HELLO reply: version %u",
                         reply.version);
  if (reply.max_unanswered == 0 || reply.max_batch == 0 ||
      (flags & ~(uint32_t) HELLO_PROFILES_WRITABLE) != 0)
    return bp_error_set (err, -EPROTO, "HELLO reply: impossible limits");
  if (!bp_hex_decode (reply.id, id, sizeof id))
    return bp_error_set (err, -EPROTO, "HELLO reply: malformed id");
  *ret_reply = reply;
  return 0;
}

void
bp_open_result_encode (const struct bp_open_result *result,
                       uint8_t out[BP_OPEN_RESULT_SIZE])
{
  memset (out, 0, BP_OPEN_RESULT_SIZE);
  put_le32 (out, (uint32_t) result->status);
  if (result->status < 0)
    return;
  put_le32 (out + 4, result->codec);
  put_le64 (out + 8, result->size);
  put_le64 (out + 16, result->stored_size);
}

/* Raw is as large as the blob; a frame is never larger, and never empty. */
static bool
is_stored_size (const struct bp_open_result *result)
{
  switch (result->codec) {
  case BP_CODEC_RAW: return result->stored_size == result->size;
  case BP_CODEC_ZSTD:
    return result->stored_size > 0 && result->stored_size <= result->size;
  default: return false;
  }
}

int
bp_open_result_decode (const uint8_t bytes[BP_OPEN_RESULT_SIZE],
                       struct bp_open_result *ret_result)
{
  const struct bp_open_result result = {
    .status = (int32_t) get_le32 (bytes),
    .codec = get_le32 (bytes + 4),
    .size = get_le64 (bytes + 8),
    .stored_size = get_le64 (bytes + 16),
  };

  if (!is_status (result.status))
    return -EPROTO;
  if (result.status < 0 &&
      !bytes_are_zero (bytes + 4, BP_OPEN_RESULT_SIZE - 4))
    return -EPROTO;
  if (result.size > BP_BLOB_MAX_SIZE || !is_stored_size (&result))
    return -EPROTO;
  *ret_result = result;
  return 0;
}

int
bp_profile_reply_encode (const char *meta, size_t meta_len,
                         const uint8_t *data, size_t data_len,
                         uint8_t **ret_bytes, size_t *ret_len)
{
  uint8_t *bytes = malloc (PROFILE_REPLY_HEADER + meta_len + data_len);

  if (bytes == NULL)
    return -ENOMEM;
  put_le32 (bytes, (uint32_t) meta_len);
  put_le32 (bytes + 4, 0);
  if (meta_len > 0)
    memcpy (bytes + PROFILE_REPLY_HEADER, meta, meta_len);
  if (data_len > 0)
    memcpy (bytes + PROFILE_REPLY_HEADER + meta_len, data, data_len);
  *ret_bytes = bytes;
  *ret_len = PROFILE_REPLY_HEADER + meta_len + data_len;
  return 0;
}

int
bp_profile_reply_decode (const uint8_t *bytes, size_t len,
                         const char **ret_meta, size_t *ret_meta_len,
                         const uint8_t **ret_data, size_t *ret_data_len)
{
  size_t meta_len;

  if (len < PROFILE_REPLY_HEADER)
    return -EPROTO;
  meta_len = get_le32 (bytes);
  len -= PROFILE_REPLY_HEADER;
  if (get_le32 (bytes + 4) != 0 || meta_len > len ||
      meta_len > BP_PROFILE_META_MAX ||
      len - meta_len > BP_PROFILE_MAX_SIZE)
    return -EPROTO;
  *ret_meta = (const char *) bytes + PROFILE_REPLY_HEADER;
  *ret_meta_len = meta_len;
  *ret_data = bytes + PROFILE_REPLY_HEADER + meta_len;
  *ret_data_len = len - meta_len;
  return 0;
}
