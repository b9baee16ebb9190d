/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The rules of structured replies. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "conform/check.h"
#include "conform/chunks.h"
#include "conform/option.h"
#include "conform/transmission.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

enum {
  DATA_HEADER = 8,       /* Bytes of the offset before the data. */
  HOLE_LENGTH = 12,      /* Offset and size. */
  ERROR_HEADER = 6,      /* Error and message length. */
  ERROR_OFFSET_TAIL = 8, /* Behind the message. */
  SECTOR = 512,
};

bool
chunk_is_error (const struct chunk *chunk)
{
  return chunk->type & CHUNK_ERROR_BIT;
}

bool
chunk_is_content (const struct chunk *chunk)
{
  return chunk->type == CHUNK_OFFSET_DATA ||
         chunk->type == CHUNK_OFFSET_HOLE;
}

uint32_t
chunk_error (const struct chunk *chunk)
{
  if (chunk->len < ERROR_HEADER)
    fail ("%s: expected at least %d bytes, got %" PRIu32,
          chunk_name (chunk->type), ERROR_HEADER, chunk->len);
  return get_be32 (chunk->data);
}

struct content
chunk_content (const struct chunk *chunk)
{
  const uint32_t least =
    chunk->type == CHUNK_OFFSET_HOLE ? HOLE_LENGTH : DATA_HEADER;

  if (chunk->len < least)
    fail ("%s: expected at least %" PRIu32 " bytes, got %" PRIu32,
          chunk_name (chunk->type), least, chunk->len);
  if (chunk->type == CHUNK_OFFSET_HOLE)
    return (struct content){
      .offset = get_be64 (chunk->data),
      .len = get_be32 (chunk->data + 8),
    };
  return (struct content){
    .offset = get_be64 (chunk->data),
    .len = chunk->len - DATA_HEADER,
    .data = chunk->data + DATA_HEADER,
  };
}

/* ---- Each chunk by itself ---- */

void
rule_no_simple_reply (const struct pending *pending)
{
  if (pending->is_simple)
    fail ("%s: expected a structured reply, got a simple one",
          request_name (&pending->request));
}

void
rule_content_not_empty (const struct pending *pending)
{
  for (unsigned i = 0; i < pending->nr_chunks; i++)
    if (chunk_is_content (&pending->chunks[i]) &&
        chunk_content (&pending->chunks[i]).len == 0)
      fail ("chunk %u, %s: expected at least one byte of content, got none",
            i, chunk_name (pending->chunks[i].type));
}

void
rule_known_flags (const struct pending *pending)
{
  for (unsigned i = 0; i < pending->nr_chunks; i++)
    if (pending->chunks[i].flags & ~CHUNK_FLAG_DONE)
      fail ("chunk %u: expected no flag but NBD_REPLY_FLAG_DONE, got 0x%x",
            i, pending->chunks[i].flags);
}

static bool
type_is_valid (uint16_t type, uint16_t command)
{
  switch (type) {
  case CHUNK_NONE:
  case CHUNK_ERROR:
  case CHUNK_ERROR_OFFSET: return true;
  case CHUNK_OFFSET_DATA:
  case CHUNK_OFFSET_HOLE: return command == CMD_READ;
  case CHUNK_BLOCK_STATUS: return command == CMD_BLOCK_STATUS;
  default: return false;
  }
}

void
rule_known_types (const struct pending *pending)
{
  const struct request *request = &pending->request;

  for (unsigned i = 0; i < pending->nr_chunks; i++)
    if (!type_is_valid (pending->chunks[i].type, request->type))
      fail ("chunk %u: expected a type that is valid in reply to %s, got %s",
            i, command_name (request->type),
            chunk_name (pending->chunks[i].type));
}

void
rule_none_is_final_and_empty (const struct pending *pending)
{
  for (unsigned i = 0; i < pending->nr_chunks; i++) {
    const struct chunk *chunk = &pending->chunks[i];

    if (chunk->type == CHUNK_NONE && !(chunk->flags & CHUNK_FLAG_DONE))
      fail ("chunk %u: expected NBD_REPLY_FLAG_DONE with "
            "NBD_REPLY_TYPE_NONE, got flags 0x%x",
            i, chunk->flags);
    if (chunk->type == CHUNK_NONE)
      expect_u64 ("length of NBD_REPLY_TYPE_NONE", 0, chunk->len);
  }
}

void
rule_hole_length (const struct pending *pending)
{
  for (unsigned i = 0; i < pending->nr_chunks; i++)
    if (pending->chunks[i].type == CHUNK_OFFSET_HOLE)
      expect_u64 ("length of NBD_REPLY_TYPE_OFFSET_HOLE", HOLE_LENGTH,
                  pending->chunks[i].len);
}

void
rule_whole_sectors (const struct pending *pending)
{
  const struct request *request = &pending->request;
  const uint64_t end = request->offset + request->len;

  for (unsigned i = 0; i < pending->nr_chunks; i++) {
    struct content content;

    if (!chunk_is_content (&pending->chunks[i]))
      continue;
    content = chunk_content (&pending->chunks[i]);
    should (content.offset == request->offset ||
              content.offset % SECTOR == 0,
            "chunk %u: expected a multiple of 512, got the offset %" PRIu64,
            i, content.offset);
    should (content.offset + content.len == end ||
              (content.offset + content.len) % SECTOR == 0,
            "chunk %u: expected a multiple of 512, got the end %" PRIu64, i,
            content.offset + content.len);
  }
}

/* ---- The chunks of a READ together ---- */

void
rule_within_request (const struct pending *pending)
{
  const struct request *request = &pending->request;

  for (unsigned i = 0; i < pending->nr_chunks; i++) {
    struct content content;

    if (!chunk_is_content (&pending->chunks[i]))
      continue;
    content = chunk_content (&pending->chunks[i]);
    if (content.offset < request->offset ||
        !range_is_within (request->len, content.offset - request->offset,
                          content.len))
      fail ("chunk %u: expected a part of the %" PRIu32 " bytes at %" PRIu64
            ", got %" PRIu64 " bytes at %" PRIu64,
            i, request->len, request->offset, content.len, content.offset);
  }
}

void
rule_no_overlap (const struct pending *pending)
{
  for (unsigned i = 0; i < pending->nr_chunks; i++)
    for (unsigned j = 0; j < i; j++) {
      struct content a, b;

      if (!chunk_is_content (&pending->chunks[i]) ||
          !chunk_is_content (&pending->chunks[j]))
        continue;
      a = chunk_content (&pending->chunks[i]);
      b = chunk_content (&pending->chunks[j]);
      if (a.len > 0 && b.len > 0 && a.offset < b.offset + b.len &&
          b.offset < a.offset + a.len)
        fail ("chunk %u: expected no byte of an earlier chunk again, got "
              "%" PRIu64 " bytes at %" PRIu64 " after %" PRIu64
              " bytes at %" PRIu64,
              i, a.len, a.offset, b.len, b.offset);
    }
}

/* Every byte of the request is counted; overlap is another rule. */
void
rule_cover_request (const struct pending *pending)
{
  const struct request *request = &pending->request;
  uint8_t *seen = take_memory (request->len);
  const uint8_t *gap;

  rule_within_request (pending);
  for (unsigned i = 0; i < pending->nr_chunks; i++)
    if (chunk_is_content (&pending->chunks[i])) {
      const struct content content = chunk_content (&pending->chunks[i]);

      memset (seen + (content.offset - request->offset), 1, content.len);
    }
  gap = memchr (seen, 0, request->len);
  if (gap)
    fail ("%s: expected chunks for every byte of it, got none for byte "
          "%" PRIu64,
          request_name (request),
          request->offset + (uint64_t) (gap - seen));
}

void
rule_one_content_chunk (const struct pending *pending)
{
  unsigned count = 0;

  for (unsigned i = 0; i < pending->nr_chunks; i++)
    count += chunk_is_content (&pending->chunks[i]);
  if (count > 1)
    fail ("%s, NBD_CMD_FLAG_DF: expected at most one content chunk, got %u",
          request_name (&pending->request), count);
}

const uint8_t *
chunks_assemble (const struct pending *pending)
{
  const struct request *request = &pending->request;
  uint8_t *bytes = take_memory (request->len);

  rule_cover_request (pending);
  for (unsigned i = 0; i < pending->nr_chunks; i++)
    if (chunk_is_content (&pending->chunks[i])) {
      const struct content content = chunk_content (&pending->chunks[i]);

      if (content.data)
        memcpy (bytes + (content.offset - request->offset), content.data,
                content.len);
    }
  return bytes;
}

/* ---- Errors ---- */

void
rule_error_not_zero (const struct pending *pending)
{
  for (unsigned i = 0; i < pending->nr_chunks; i++)
    if (chunk_is_error (&pending->chunks[i]) &&
        chunk_error (&pending->chunks[i]) == ERROR_NONE)
      fail ("chunk %u, %s: expected an error that is not zero, got zero", i,
            chunk_name (pending->chunks[i].type));
}

void
rule_error_message (const struct pending *pending)
{
  for (unsigned i = 0; i < pending->nr_chunks; i++) {
    const struct chunk *chunk = &pending->chunks[i];
    const uint32_t tail =
      chunk->type == CHUNK_ERROR_OFFSET ? ERROR_OFFSET_TAIL : 0;
    uint16_t len;

    if (!chunk_is_error (chunk))
      continue;
    if (chunk->len < ERROR_HEADER + tail)
      fail ("chunk %u, %s: expected at least %" PRIu32 " bytes, got %" PRIu32,
            i, chunk_name (chunk->type), ERROR_HEADER + tail, chunk->len);
    len = get_be16 (chunk->data + 4);
    if (len > chunk->len - ERROR_HEADER - tail)
      fail ("chunk %u, %s of %" PRIu32 " bytes: expected a message length "
            "of at most %" PRIu32 ", got %u",
            i, chunk_name (chunk->type), chunk->len,
            chunk->len - ERROR_HEADER - tail, len);
    expect_string ("the message of an error chunk",
                   chunk->data + ERROR_HEADER, len);
  }
}

void
rule_error_offset (const struct pending *pending)
{
  const struct request *request = &pending->request;

  rule_error_message (pending);
  for (unsigned i = 0; i < pending->nr_chunks; i++) {
    const struct chunk *chunk = &pending->chunks[i];
    uint64_t offset;

    if (chunk->type != CHUNK_ERROR_OFFSET)
      continue;
    offset = get_be64 (chunk->data + ERROR_HEADER +
                       get_be16 (chunk->data + 4));
    if (offset < request->offset ||
        offset - request->offset >= MAX (request->len, 1))
      fail ("chunk %u: expected an offset within %s, got %" PRIu64, i,
            request_name (request), offset);
  }
}
