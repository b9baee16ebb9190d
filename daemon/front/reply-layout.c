/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Replies as bytes.
 *
 * A hole becomes a chunk of its own only if it is large enough to pay for
 * one: a client handles each chunk with several system calls, so a short
 * hole between data goes as the zeros that it is.
 *
 *   pieces   │ data │ data │hole│ data │      hole      │ data │
 *   chunks   ├──────── data ───────────┼──── hole ──────┼─data─┤
 */
#include <config.h>

#include <assert.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "daemon/front/conn.h"
#include "daemon/front/reply-layout.h"
#include "daemon/front/request.h"

enum {
  MIN_HOLE = 16 << 10, /* Bytes; between data. */
  MAX_MESSAGE = 80,    /* Bytes; of an error. */
  MAX_HEADER = NBD_CHUNK_HEADER_SIZE + 6 + MAX_MESSAGE + 8,
};

/* What holes are sent from.  Never written, so one page of memory. */
static uint8_t zeros[128 << 10];

/* ---- Gathering ---- */

bool
gather_is_full (const struct gather *gather)
{
  return gather->count == GATHER_MAX_IOV ||
         gather->bytes >= GATHER_MAX_BYTES ||
         gather->headers_len > GATHER_HEADER_BYTES - MAX_HEADER;
}

/* Borrow DATA until the batch is sent. */
static void
gather_bytes (struct gather *gather, const void *data, size_t len)
{
  struct iovec *last = &gather->space->iov[gather->count];

  gather->bytes += len;
  if (gather->count > 0 &&
      (const uint8_t *) last[-1].iov_base + last[-1].iov_len == data)
    last[-1].iov_len += len;
  else {
    *last = (struct iovec){ .iov_base = (void *) data, .iov_len = len };
    gather->count++;
  }
}

/* A copy of HEADER. */
static void
gather_header (struct gather *gather, const uint8_t *header, size_t len)
{
  uint8_t *copy = gather->space->headers + gather->headers_len;
  const size_t skip = MIN (gather->skip, len);

  gather->skip -= skip;
  if (skip == len)
    return;
  memcpy (copy, header + skip, len - skip);
  gather->headers_len += len - skip;
  gather_bytes (gather, copy, len - skip);
}

/* A piece of an answer.  Returns false if it did not fit, or only a part
 * of it.
 */
static bool
gather_piece (struct gather *gather, const struct read_piece *piece)
{
  const size_t skip = MIN (gather->skip, piece->len);
  size_t len = piece->len - skip, n;

  gather->skip -= skip;
  if (len > 0 && piece->data && !gather_is_full (gather)) {
    gather_bytes (gather, piece->data + skip, len);
    len = 0;
  }
  while (len > 0 && !gather_is_full (gather)) {
    n = MIN (len, sizeof zeros);
    gather_bytes (gather, zeros, n);
    len -= n;
  }
  return len == 0;
}

/* ---- Runs of pieces ---- */

/* What becomes a chunk. */
struct run {
  size_t from; /* Pieces FROM to TO - 1. */
  size_t to;
  uint64_t len; /* Bytes. */
  bool is_hole;
};

/* Pieces without data, from FROM on. */
static struct run
find_hole (const struct read_op *op, size_t from)
{
  struct run hole = { .from = from, .to = from, .is_hole = true };

  while (hole.to < op->nr_pieces && op->pieces[hole.to].data == NULL)
    hole.len += op->pieces[hole.to++].len;
  return hole;
}

/* The run that begins at piece FROM. */
static struct run
find_run (const struct read_op *op, size_t from)
{
  struct run run = find_hole (op, from), hole;

  if (run.len >= MIN_HOLE || (from == 0 && run.to == op->nr_pieces))
    return run;
  run.is_hole = false;
  while (run.to < op->nr_pieces) {
    hole = find_hole (op, run.to);
    if (hole.len >= MIN_HOLE)
      break;
    if (hole.len == 0)
      hole.len = op->pieces[hole.to++].len;
    run.len += hole.len;
    run.to = hole.to;
  }
  return run;
}

/* ---- Headers ---- */

static void
put_chunk (uint8_t *header, const struct request *request, uint16_t type,
           bool is_last, uint64_t len)
{
  put_be32 (header, NBD_STRUCTURED_REPLY_MAGIC);
  put_be16 (header + 4, is_last ? NBD_REPLY_FLAG_DONE : 0);
  put_be16 (header + 6, type);
  memcpy (header + 8, request->cookie, NBD_COOKIE_SIZE);
  put_be32 (header + 16, (uint32_t) len);
}

static size_t
error_size (const struct request *request)
{
  return NBD_CHUNK_HEADER_SIZE + 6 + strnlen (request->message, MAX_MESSAGE) +
         (request->bad_offset != NO_OFFSET ? 8 : 0);
}

static void
gather_error (struct gather *gather, const struct request *request)
{
  const bool has_offset = request->bad_offset != NO_OFFSET;
  const size_t len = strnlen (request->message, MAX_MESSAGE);
  uint8_t chunk[MAX_HEADER], *payload = chunk + NBD_CHUNK_HEADER_SIZE;

  put_chunk (chunk, request,
             has_offset ? NBD_REPLY_TYPE_ERROR_OFFSET : NBD_REPLY_TYPE_ERROR,
             request->is_last,
             error_size (request) - NBD_CHUNK_HEADER_SIZE);
  put_be32 (payload, request->error);
  put_be16 (payload + 4, (uint16_t) len);
  memcpy (payload + 6, request->message, len);
  if (has_offset)
    put_be64 (payload + 6 + len, request->bad_offset);
  gather_header (gather, chunk, error_size (request));
}

static void
gather_hole (struct gather *gather, const struct request *request,
             uint64_t offset, uint64_t len, bool is_last)
{
  uint8_t chunk[NBD_HOLE_SIZE];

  put_chunk (chunk, request, NBD_REPLY_TYPE_OFFSET_HOLE, is_last, 12);
  put_be64 (chunk + 20, offset);
  put_be32 (chunk + 28, (uint32_t) len);
  gather_header (gather, chunk, sizeof chunk);
}

static void
gather_data_header (struct gather *gather, const struct request *request,
                    uint64_t offset, uint64_t len, bool is_last)
{
  uint8_t header[NBD_DATA_HEADER_SIZE];

  put_chunk (header, request, NBD_REPLY_TYPE_OFFSET_DATA, is_last, 8 + len);
  put_be64 (header + 20, offset);
  gather_header (gather, header, sizeof header);
}

static void
gather_simple_header (struct gather *gather, const struct request *request)
{
  uint8_t header[NBD_SIMPLE_REPLY_SIZE];

  put_be32 (header, NBD_SIMPLE_REPLY_MAGIC);
  put_be32 (header + 4, request->error);
  memcpy (header + 8, request->cookie, NBD_COOKIE_SIZE);
  gather_header (gather, header, sizeof header);
}

/* ---- Replies ---- */

/* Pieces FROM to TO - 1.  Returns false if they did not all fit. */
static bool
gather_pieces (struct gather *gather, const struct read_op *op, size_t from,
               size_t to)
{
  size_t i;

  for (i = from; i < to; i++) {
    if (!gather_piece (gather, &op->pieces[i]))
      return false;
  }
  return true;
}

static bool
gather_stream (struct gather *gather, const struct request *request)
{
  const struct read_op *op = &request->op;

  if (request->form == REPLY_SIMPLE)
    gather_simple_header (gather, request);
  else
    gather_data_header (gather, request, request->offset, request->len,
                        request->is_last);
  if (gather->skip > 0)
    gather->skip -= request->op_start;
  return gather_pieces (gather, op, 0, op->nr_pieces) &&
         reply_end (request) == request->size;
}

static bool
gather_chunks (struct gather *gather, const struct request *request)
{
  const struct read_op *op = &request->op;
  const size_t nr_pieces = request->has_op ? op->nr_pieces : 0;
  uint64_t offset = request->offset;
  struct run run = { .to = 0 };
  bool is_last;

  for (; run.to < nr_pieces; offset += run.len) {
    if (gather_is_full (gather))
      return false;
    run = find_run (op, run.to);
    is_last =
      request->is_last && run.to == nr_pieces && request->error == 0;
    if (run.is_hole) {
      gather_hole (gather, request, offset, run.len, is_last);
      continue;
    }
    gather_data_header (gather, request, offset, run.len, is_last);
    if (!gather_pieces (gather, op, run.from, run.to))
      return false;
  }
  if (gather_is_full (gather))
    return false;
  if (request->error != 0)
    gather_error (gather, request);
  return true;
}

bool
gather_reply (struct gather *gather, const struct request *request)
{
  gather->skip = request->sent;
  if (request->form == REPLY_ENCODED) {
    gather_bytes (gather, request->encoded.data + request->sent,
                  request->encoded.len - request->sent);
    return true;
  }
  if (reply_is_stream (request))
    return gather_stream (gather, request);
  if (request->form == REPLY_SIMPLE) {
    gather_simple_header (gather, request);
    return true;
  }
  return gather_chunks (gather, request);
}

/* ---- Sizes ---- */

bool
reply_is_stream (const struct request *request)
{
  return request->is_read && request->error == 0 &&
         (request->form == REPLY_SIMPLE || request->form == REPLY_WHOLE);
}

size_t
reply_header_size (const struct request *request)
{
  return request->form == REPLY_SIMPLE ? NBD_SIMPLE_REPLY_SIZE
                                       : NBD_DATA_HEADER_SIZE;
}

static uint64_t
chunks_size (const struct request *request)
{
  const size_t nr_pieces = request->has_op ? request->op.nr_pieces : 0;
  uint64_t size = request->error != 0 ? error_size (request) : 0;
  struct run run = { .to = 0 };

  while (run.to < nr_pieces) {
    run = find_run (&request->op, run.to);
    size += run.is_hole ? NBD_HOLE_SIZE : NBD_DATA_HEADER_SIZE + run.len;
  }
  return size;
}

uint64_t
reply_size (const struct request *request)
{
  if (reply_is_stream (request))
    return reply_header_size (request) + request->len;
  switch (request->form) {
  case REPLY_SIMPLE: return NBD_SIMPLE_REPLY_SIZE;
  case REPLY_ENCODED: return request->encoded.len;
  case REPLY_WHOLE:
  case REPLY_CHUNKS: return chunks_size (request);
  }
  assert (!"replies have a form");
  return 0;
}

uint64_t
reply_end (const struct request *request)
{
  if (!reply_is_stream (request))
    return request->size;
  return reply_header_size (request) + (uint64_t) request->op_start +
         request->op.len;
}
