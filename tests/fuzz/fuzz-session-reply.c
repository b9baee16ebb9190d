/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Replies of a session.  The first byte says which kind the rest is: H a
 * header, S the reply that starts a session, O the result of an open, P a
 * profile.  What decodes is within the limits, and encodes to the very
 * same bytes.
 */
#include <config.h>

#include <string.h>

#include "fuzz/fuzz.h"
#include "lib/base/cleanup.h"
#include "lib/profile.h"
#include "lib/session-proto.h"
#include "lib/store.h"

const char fuzz_target[] = "session-reply";
bool fuzz_decoded;

static void
check_header (const uint8_t *data)
{
  uint8_t encoded[BP_REPLY_HEADER_SIZE];
  size_t len;
  int status;

  if (bp_reply_header_decode (data, &status, &len) < 0)
    return;
  fuzz_decoded = true;
  MUST (status <= 0 && status >= -4095);
  MUST (len <= BP_AREA_SIZE - BP_REPLY_HEADER_SIZE);
  bp_reply_header_encode (status, len, encoded);
  MUST (memcmp (encoded, data, sizeof encoded) == 0);
}

static void
check_hello (const uint8_t *data, size_t size)
{
  uint8_t encoded[BP_HELLO_REPLY_SIZE];
  struct bp_hello_reply reply;

  if (bp_hello_reply_decode (data, size, &reply, NULL) < 0)
    return;
  fuzz_decoded = true;
  MUST (size == sizeof encoded);
  MUST (reply.version == BP_SESSION_VERSION);
  MUST (strlen (reply.id) == BP_SESSION_ID_SIZE - 1);
  bp_hello_reply_encode (&reply, encoded);
  MUST (memcmp (encoded, data, sizeof encoded) == 0);
}

static void
check_open_result (const uint8_t *data)
{
  uint8_t encoded[BP_OPEN_RESULT_SIZE];
  struct bp_open_result result;

  if (bp_open_result_decode (data, &result) < 0)
    return;
  fuzz_decoded = true;
  MUST (result.size <= BP_BLOB_MAX_SIZE);
  MUST (result.stored_size <= result.size);
  bp_open_result_encode (&result, encoded);
  MUST (memcmp (encoded, data, sizeof encoded) == 0);
}

static void
check_profile (const uint8_t *data, size_t size)
{
  CLEANUP_FREE uint8_t *encoded = NULL;
  const char *meta;
  const uint8_t *bytes;
  size_t meta_len, len, encoded_len;

  if (bp_profile_reply_decode (data, size, &meta, &meta_len, &bytes, &len) <
      0)
    return;
  fuzz_decoded = true;
  MUST (meta_len <= BP_PROFILE_META_MAX && len <= BP_PROFILE_MAX_SIZE);
  MUST (bp_profile_reply_encode (meta, meta_len, bytes, len, &encoded,
                                 &encoded_len) == 0);
  MUST (encoded_len == size && memcmp (encoded, data, size) == 0);
}

/* The kind that the first byte names. */
int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  if (size == 0)
    return 0;
  switch (data[0]) {
  case 'H':
    if (size == 1 + BP_REPLY_HEADER_SIZE)
      check_header (data + 1);
    break;
  case 'O':
    if (size == 1 + BP_OPEN_RESULT_SIZE)
      check_open_result (data + 1);
    break;
  case 'S': check_hello (data + 1, size - 1); break;
  case 'P': check_profile (data + 1, size - 1); break;
  default: break;
  }
  return 0;
}
