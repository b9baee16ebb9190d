/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Taking NBD_REPLY_TYPE_BLOCK_STATUS apart: u32 context ID, then pairs of
 * u32 length and u32 status.
 */
#include <config.h>

#include <inttypes.h>
#include <stddef.h>

#include "conform/check.h"
#include "conform/extents.h"
#include "conform/transmission.h"
#include "lib/base/bytes.h"

enum {
  CONTEXT_ID = 4, /* Bytes. */
  DESCRIPTOR = 8,
};

struct extents
extents_of_chunk (const struct chunk *chunk)
{
  struct extents extents;
  struct extent *list;

  if (chunk->len < CONTEXT_ID + DESCRIPTOR ||
      (chunk->len - CONTEXT_ID) % DESCRIPTOR != 0)
    fail ("NBD_REPLY_TYPE_BLOCK_STATUS: expected a length of 4 and a "
          "positive multiple of 8, got %" PRIu32,
          chunk->len);
  extents.context = get_be32 (chunk->data);
  extents.count = (chunk->len - CONTEXT_ID) / DESCRIPTOR;
  list = take_memory (extents.count * sizeof *list);
  for (unsigned i = 0; i < extents.count; i++) {
    const uint8_t *p = chunk->data + CONTEXT_ID + (size_t) i * DESCRIPTOR;

    list[i] = (struct extent){
      .len = get_be32 (p),
      .status = get_be32 (p + 4),
    };
  }
  extents.list = list;
  return extents;
}

struct extents
extents_of_reply (const struct pending *pending, uint32_t id)
{
  struct extents found = { 0 };

  if (reply_error (pending) != ERROR_NONE)
    fail ("%s: expected success, got %s", request_name (&pending->request),
          error_name (reply_error (pending)));
  if (pending->is_simple)
    fail ("%s: expected a structured reply, got a simple one",
          request_name (&pending->request));
  for (unsigned i = 0; i < pending->nr_chunks; i++) {
    struct extents extents;

    if (pending->chunks[i].type != CHUNK_BLOCK_STATUS)
      continue;
    extents = extents_of_chunk (&pending->chunks[i]);
    if (extents.context != id)
      fail ("%s: expected the context ID %" PRIu32 ", got %" PRIu32,
            request_name (&pending->request), id, extents.context);
    if (found.count > 0)
      fail ("%s: expected one chunk for each context, got a second for "
            "%" PRIu32,
            request_name (&pending->request), id);
    found = extents;
  }
  if (found.count == 0)
    fail ("%s: expected one chunk for each context, got none for %" PRIu32,
          request_name (&pending->request), id);
  return found;
}

struct pending *
ask_status (struct session *session, struct span span, uint16_t flags)
{
  struct pending *pending = send_request (
    session, make_request (session, CMD_BLOCK_STATUS, flags, span.offset,
                           span.len));

  await_reply (session, pending);
  return pending;
}
