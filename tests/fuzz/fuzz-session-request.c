/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Requests of a session: what decodes is within the limits, and encodes
 * to the very same bytes.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/profile.h"
#include "lib/session-proto.h"
#include "lib/store.h"

const char fuzz_target[] = "session-request";
bool fuzz_decoded;

static void
check_limits (const struct bp_request *request)
{
  MUST (request->count <= BP_MAX_BATCH);
  MUST (request->level < BP_MERKLE_MAX_LEVELS);
  MUST (request->nr <= MAX (BP_MAX_TREE_COUNT, BP_MAX_FRAMES_COUNT));
  MUST (request->first <= BP_BLOB_MAX_SIZE / BP_BLOCK_SIZE);
  MUST (request->meta_len <= BP_PROFILE_META_MAX);
  MUST (request->data_len <= BP_PROFILE_MAX_SIZE);
  MUST (strlen (request->name) < sizeof request->name);
  MUST (strchr (request->name, '/') == NULL);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static struct bp_open_item items[BP_MAX_BATCH];
  static uint64_t keys[BP_MAX_BATCH];
  CLEANUP_FREE uint8_t *encoded = NULL;
  struct bp_request request;
  size_t len;
  const int r = bp_request_decode (data, size, &request, NULL);

  MUST (r == 0 || r == -EINVAL || r == -ERANGE);
  if (r < 0)
    return 0;
  fuzz_decoded = true;
  check_limits (&request);
  for (uint32_t i = 0; i < request.count; i++)
    if (request.op == BP_OP_OPEN)
      bp_request_open_item (&request, i, &items[i]);
    else
      keys[i] = bp_request_close_key (&request, i);
  MUST (bp_request_encode (&request, items, keys, &encoded, &len) == 0);
  MUST (len == size && memcmp (encoded, data, size) == 0);
  return 0;
}
