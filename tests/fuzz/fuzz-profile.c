/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Profiles of both kinds: what decodes encodes into no more bytes, and
 * decodes again to the same records.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "lib/base/cleanup.h"
#include "lib/profile.h"

const char fuzz_target[] = "profile";
bool fuzz_decoded;

static void
check_refused (int r, size_t size)
{
  MUST (r == (size > BP_PROFILE_MAX_SIZE ? -ERANGE : -EBADMSG));
  MUST (size > BP_PROFILE_MAX_SIZE || size % BP_PROFILE_BLOCK != 0);
}

static void
check_blobs (const uint8_t *data, size_t size)
{
  CLEANUP_FREE struct bp_blob_message *messages = NULL, *again = NULL;
  CLEANUP_FREE uint8_t *encoded = NULL;
  size_t count, count_again, len;
  const int r =
    bp_profile_decode_blobs (data, size, &messages, &count, NULL);

  if (r < 0) {
    check_refused (r, size);
    return;
  }
  fuzz_decoded = true;
  MUST (count <= size / BP_PROFILE_BLOCK * 102);
  MUST (bp_profile_encode_blobs (messages, count, &encoded, &len, NULL) == 0);
  MUST (len <= size);
  MUST (bp_profile_decode_blobs (encoded, len, &again, &count_again, NULL) ==
        0);
  MUST (count_again == count);
  MUST (count == 0 ||
        memcmp (again, messages, count * sizeof *again) == 0);
}

static void
check_files (const uint8_t *data, size_t size)
{
  CLEANUP_FREE struct bp_file_message *messages = NULL, *again = NULL;
  CLEANUP_FREE uint8_t *encoded = NULL;
  size_t count, count_again, len;
  const int r =
    bp_profile_decode_files (data, size, &messages, &count, NULL);

  if (r < 0) {
    check_refused (r, size);
    return;
  }
  fuzz_decoded = true;
  MUST (count <= size / BP_PROFILE_BLOCK * 256);
  MUST (bp_profile_encode_files (messages, count, &encoded, &len, NULL) == 0);
  MUST (len <= size);
  MUST (bp_profile_decode_files (encoded, len, &again, &count_again, NULL) ==
        0);
  MUST (count_again == count);
  MUST (count == 0 ||
        memcmp (again, messages, count * sizeof *again) == 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  check_blobs (data, size);
  check_files (data, size);
  return 0;
}
