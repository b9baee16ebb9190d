/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The broken server's structured replies: a chunk for each region of data,
 * and one for each hole.
 */
#include <config.h>

#include <string.h>

#include "conform/broken.h"
#include "conform/protocol.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

enum {
  DATA_HEADER = 8,
  MAX_DF = 65536,
  UNKNOWN_TYPE = 99,
};

void
send_chunk (struct client *client, const struct request *request,
            uint16_t flags, uint16_t type, const void *data, size_t len)
{
  uint8_t header[CHUNK_HEADER_SIZE];

  put_be32 (header, CHUNK_MAGIC);
  put_be16 (header + 4, flags | (uint16_t) (has_bug (BUG_CHUNK_FLAG) << 3));
  put_be16 (header + 6, type);
  put_be64 (header + 8, request->cookie);
  put_be32 (header + 16, (uint32_t) len);
  client_send (client, header, sizeof header);
  client_send (client, data, len);
}

static void
send_data (struct client *client, const struct request *request,
           uint64_t offset, uint32_t len)
{
  static uint8_t payload[DATA_HEADER + (1 << 25)];

  put_be64 (payload, offset);
  fill_bytes (client, offset, payload + DATA_HEADER, len);
  send_chunk (client, request, 0, CHUNK_OFFSET_DATA, payload,
              DATA_HEADER + (size_t) len);
}

static void
send_hole (struct client *client, const struct request *request,
           uint64_t offset, uint32_t len)
{
  uint8_t payload[13] = { 0 };

  put_be64 (payload, offset);
  put_be32 (payload + 8, len);
  send_chunk (client, request, 0, CHUNK_OFFSET_HOLE, payload,
              12 + has_bug (BUG_HOLE_LONG));
}

/* One chunk of a reply, and what a bug makes of it. */
static void
send_piece (struct client *client, const struct request *request,
            uint64_t offset, uint32_t len)
{
  if (has_bug (BUG_CHUNK_OVERLAPS) && offset > request->offset) {
    offset -= 1;
    len += 1;
  }
  if (has_bug (BUG_CHUNK_OUTSIDE) && offset == request->offset && len > 512)
    offset -= MIN (offset, 512);
  if (is_hole (client, offset + len / 2) && !has_bug (BUG_WRONG_BYTE))
    send_hole (client, request, offset, len);
  else
    send_data (client, request, offset, len);
}

static void
send_pieces (struct client *client, const struct request *request)
{
  const uint64_t end = request->offset + request->len;
  uint64_t offset = request->offset;
  unsigned count = 0;

  while (offset < end) {
    uint64_t next = MIN (end, round_down (offset, REGION) + REGION);

    if (has_bug (BUG_CHUNK_ODD) && next - offset > 1000)
      next = offset + 999;
    if (!(has_bug (BUG_CHUNK_MISSING) && count == 1))
      send_piece (client, request, offset, (uint32_t) (next - offset));
    offset = next;
    count++;
  }
}

/* In one chunk. */
static void
send_unfragmented (struct client *client, const struct request *request)
{
  if (has_bug (BUG_DF_OVERFLOWS) ||
      (request->len > MAX_DF && has_bug (BUG_DF_OVERFLOW_CONTENT))) {
    if (has_bug (BUG_DF_OVERFLOW_CONTENT))
      send_data (client, request, request->offset, 512);
    send_structured_error (client, request, ERROR_OVERFLOW);
  }
  else {
    send_data (client, request, request->offset, request->len);
    send_chunk (client, request, CHUNK_FLAG_DONE, CHUNK_NONE, NULL, 0);
  }
}

void
send_structured_read (struct client *client, const struct request *request)
{
  const uint8_t empty[DATA_HEADER] = { 0 };
  size_t none_len = has_bug (BUG_NONE_WITH_DATA) ? 4 : 0;

  if (request->flags & CMD_FLAG_DF && !has_bug (BUG_DF_FRAGMENTS)) {
    send_unfragmented (client, request);
    return;
  }
  send_pieces (client, request);
  if (has_bug (BUG_CHUNK_EMPTY))
    send_chunk (client, request, 0, CHUNK_OFFSET_DATA, empty, sizeof empty);
  if (has_bug (BUG_CHUNK_TYPE_UNKNOWN))
    send_chunk (client, request, 0, UNKNOWN_TYPE, empty, sizeof empty);
  if (has_bug (BUG_NONE_BEFORE_THE_END))
    send_chunk (client, request, 0, CHUNK_NONE, NULL, 0);
  if (has_bug (BUG_NEVER_DONE))
    return;
  send_chunk (client, request, CHUNK_FLAG_DONE, CHUNK_NONE, empty, none_len);
  if (has_bug (BUG_DONE_TWICE))
    send_chunk (client, request, CHUNK_FLAG_DONE, CHUNK_NONE, NULL, 0);
}

/* u32 error, u16 length, message, u64 offset. */
void
send_structured_error (struct client *client, const struct request *request,
                       uint32_t error)
{
  static const char message[] = "it is broken";
  const size_t len = sizeof message - 1;
  uint8_t payload[64];
  uint64_t offset = request->offset;

  if (has_bug (BUG_ERROR_OFFSET_OUTSIDE))
    offset += MAX (request->len, 1);
  put_be32 (payload, has_bug (BUG_ERROR_ZERO) ? 0 : error);
  put_be16 (payload + 4,
            (uint16_t) (len + 20 * has_bug (BUG_ERROR_MESSAGE_LONG)));
  memcpy (payload + 6, message, len);
  put_be64 (payload + 6 + len, offset);
  if (request->type == CMD_READ)
    send_chunk (client, request, CHUNK_FLAG_DONE, CHUNK_ERROR_OFFSET,
                payload, 14 + len);
  else
    send_chunk (client, request, CHUNK_FLAG_DONE, CHUNK_ERROR, payload,
                6 + len);
}
