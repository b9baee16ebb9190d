/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The broken server's block status: the regions of the export, of the last
 * one only what was asked about.
 */
#include <config.h>

#include "conform/broken.h"
#include "conform/protocol.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

enum {
  MAX_EXTENTS = 4096,
  CONTEXT_ID = 4,
  DESCRIPTOR = 8,
  RESERVED_BIT = 1 << 7,
};

struct answer {
  unsigned count;
  size_t len; /* Of the payload. */
  uint8_t payload[CONTEXT_ID + DESCRIPTOR * MAX_EXTENTS + 4];
};

static void
add_extent (struct answer *answer, uint64_t len, uint32_t status)
{
  if (answer->count++ >= MAX_EXTENTS)
    return;
  put_be32 (answer->payload + answer->len, (uint32_t) len);
  put_be32 (answer->payload + answer->len + 4, status);
  answer->len += DESCRIPTOR;
}

static uint32_t
status_at (const struct client *client, uint64_t offset)
{
  uint32_t status =
    is_hole (client, offset) ? STATE_HOLE | STATE_ZERO : 0;

  if (has_bug (BUG_ZERO_LIES))
    status |= STATE_ZERO;
  if (has_bug (BUG_EXTENT_RESERVED_BIT))
    status |= RESERVED_BIT;
  return status;
}

/* Of base:allocation. */
static void
add_regions (const struct client *client, const struct request *request,
             struct answer *answer)
{
  uint64_t end = MIN (request->offset + request->len, client->size);
  uint64_t offset = request->offset;

  if (has_bug (BUG_EXTENTS_OF_MORE))
    end = MIN (end + 4 * REGION, client->size);
  if (has_bug (BUG_EXTENT_FROM_BEFORE))
    offset = round_down (offset, REGION) + REGION - 1;
  while (offset < end) {
    uint64_t next = MIN (end, round_down (offset, REGION) + REGION);

    if (has_bug (BUG_EXTENT_OF_HALF_A_BLOCK) && next - offset > 256)
      next = offset + 256;
    if (has_bug (BUG_EXTENT_EMPTY))
      add_extent (answer, 0, 0);
    if (has_bug (BUG_EXTENTS_EQUAL) && next - offset > 512)
      next = offset + 512;
    add_extent (answer,
                next - offset +
                  (next == client->size &&
                   has_bug (BUG_EXTENT_BEYOND_EXPORT)),
                status_at (client, offset));
    offset = next;
    if (request->flags & CMD_FLAG_REQ_ONE && !has_bug (BUG_REQ_ONE_IGNORED))
      break;
  }
}

static void
send_context_status (struct client *client, const struct request *request,
                     unsigned context)
{
  static struct answer answer;

  answer = (struct answer){ .len = CONTEXT_ID };
  put_be32 (answer.payload, has_bug (BUG_EQUAL_IDS) ? 1 : context + 1);
  if (context == 0)
    add_regions (client, request, &answer);
  else
    add_extent (&answer, request->len, 0);
  if (has_bug (BUG_STATUS_LENGTH))
    answer.len += 2;
  send_chunk (client, request, 0, CHUNK_BLOCK_STATUS, answer.payload,
              answer.len);
}

static bool
is_any_selected (const struct client *client)
{
  return client->is_selected[0] || client->is_selected[1];
}

static uint32_t
judge (struct client *client, const struct request *request)
{
  if (request->len == 0 && has_bug (BUG_EMPTY_STATUS_CLOSES))
    client_leave ();
  if (!client->is_structured)
    return has_bug (BUG_STATUS_UNSTRUCTURED) ? ERROR_NONE : ERROR_INVAL;
  if (!is_any_selected (client) && !has_bug (BUG_STATUS_WITHOUT_CONTEXT))
    return ERROR_INVAL;
  if (has_bug (BUG_STATUS_BEYOND) && request->offset <= client->size)
    return ERROR_NONE;
  if (has_bug (BUG_STATUS_WRAPS))
    return request->offset + request->len <= client->size ? ERROR_NONE
                                                          : ERROR_INVAL;
  return is_inside (client, request) ? ERROR_NONE : ERROR_INVAL;
}

void
handle_block_status (struct client *client, const struct request *request)
{
  const uint32_t error = judge (client, request);
  bool is_first = true;

  if (error != ERROR_NONE) {
    send_result (client, request, error);
    return;
  }
  if (!client->is_structured || has_bug (BUG_STATUS_SIMPLE)) {
    send_simple (client, request, ERROR_NONE, NULL);
    return;
  }
  for (unsigned i = 0; i < NR_CONTEXTS; i++) {
    if (!client->is_selected[i])
      continue;
    if (is_first || !has_bug (BUG_STATUS_OF_ONE_CONTEXT))
      send_context_status (client, request, i);
    if (has_bug (BUG_STATUS_TWICE))
      send_context_status (client, request, i);
    is_first = false;
  }
  send_chunk (client, request, CHUNK_FLAG_DONE, CHUNK_NONE, NULL, 0);
}
