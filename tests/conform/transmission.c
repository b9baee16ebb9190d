/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Sending requests and sorting what comes back. */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform/check.h"
#include "conform/chunks.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

enum {
  MAX_OTHER_PAYLOAD = 16 << 20, /* Bytes of a chunk that is no data. */
  WRITE_PIECE = 64 << 10,
};

const char *
request_name (const struct request *request)
{
  static char name[160];

  snprintf (name, sizeof name, "%s of %" PRIu32 " bytes at %" PRIu64 "%s",
            command_name (request->type), request->len, request->offset,
            request->flags ? " with flags" : "");
  return name;
}

/* ---- Sending ---- */

struct request
make_request (struct session *session, uint16_t type, uint16_t flags,
              uint64_t offset, uint32_t len)
{
  return (struct request){
    .flags = flags,
    .type = type,
    .cookie = session->next_cookie++,
    .offset = offset,
    .len = len,
  };
}

struct request
make_read (struct session *session, struct span span)
{
  return make_request (session, CMD_READ, 0, span.offset, span.len);
}

void
encode_request (const struct request *request, uint8_t wire[REQUEST_SIZE])
{
  put_be32 (wire, REQUEST_MAGIC);
  put_be16 (wire + 4, request->flags);
  put_be16 (wire + 6, request->type);
  put_be64 (wire + 8, request->cookie);
  put_be64 (wire + 16, request->offset);
  put_be32 (wire + 24, request->len);
}

struct pending *
add_pending (struct session *session, const struct request *request)
{
  struct pending *pending = take_memory (sizeof *pending);
  struct pending **tail = &session->pending;

  while (*tail)
    tail = &(*tail)->next;
  *tail = pending;
  pending->request = *request;
  trace ("-> %s, flags 0x%x, cookie 0x%016" PRIx64, request_name (request),
         request->flags, request->cookie);
  return pending;
}

struct pending *
send_request (struct session *session, struct request request)
{
  struct pending *pending = add_pending (session, &request);
  uint8_t wire[REQUEST_SIZE];

  encode_request (&request, wire);
  channel_send (&session->channel, wire, sizeof wire);
  return pending;
}

struct pending *
send_write (struct session *session, uint64_t offset, uint32_t len,
            uint16_t flags)
{
  static const uint8_t zeroes[WRITE_PIECE];
  struct pending *pending = send_request (
    session, make_request (session, CMD_WRITE, flags, offset, len));

  for (uint32_t left = len; left > 0; left -= MIN (left, WRITE_PIECE))
    channel_send (&session->channel, zeroes, MIN (left, WRITE_PIECE));
  return pending;
}

/* ---- Receiving ---- */

/* The oldest request of COOKIE that is not done. */
static struct pending *
find_pending (struct session *session, uint64_t cookie, const char *kind)
{
  struct pending *pending = session->pending;

  while (pending && pending->request.cookie != cookie)
    pending = pending->next;
  if (pending == NULL)
    fail ("expected a reply to a request under way, got a %s with the "
          "cookie 0x%016" PRIx64,
          kind, cookie);
  return pending;
}

static void
finish (struct session *session, struct pending *pending)
{
  struct pending **link = &session->pending;

  while (*link != pending)
    link = &(*link)->next;
  *link = pending->next;
  pending->is_done = true;
}

static void
recv_simple_reply (struct session *session)
{
  uint8_t rest[SIMPLE_REPLY_SIZE - 4];
  struct pending *pending;
  uint8_t *data;

  channel_recv (&session->channel, rest, sizeof rest, "a simple reply");
  trace ("<- simple reply, %s, cookie 0x%016" PRIx64,
         error_name (get_be32 (rest)), get_be64 (rest + 4));
  pending = find_pending (session, get_be64 (rest + 4), "simple reply");
  if (pending->nr_chunks > 0)
    fail ("expected more chunks of the reply to %s, got a simple reply",
          request_name (&pending->request));
  pending->is_simple = true;
  pending->error = get_be32 (rest);
  if (pending->request.type == CMD_READ && pending->error == ERROR_NONE) {
    data = take_memory (pending->request.len);
    channel_recv (&session->channel, data, pending->request.len,
                  "the data of a simple reply");
    pending->data = data;
  }
  finish (session, pending);
}

/* More than this is not read, but a failure. */
static uint64_t
max_payload (const struct request *request)
{
  return MAX_OTHER_PAYLOAD +
         (request->type == CMD_READ ? (uint64_t) request->len + 8 : 0);
}

static void
add_chunk (struct pending *pending, const struct chunk *chunk)
{
  struct chunk *chunks = realloc (
    pending->chunks, (pending->nr_chunks + 1) * sizeof *pending->chunks);

  if (chunks == NULL)
    fail ("out of memory");
  chunks[pending->nr_chunks++] = *chunk;
  pending->chunks = chunks;
}

static void
recv_chunk (struct session *session)
{
  uint8_t rest[CHUNK_HEADER_SIZE - 4], *data;
  struct pending *pending;
  struct chunk chunk;

  channel_recv (&session->channel, rest, sizeof rest,
                "a structured reply chunk");
  chunk = (struct chunk){
    .flags = get_be16 (rest),
    .type = get_be16 (rest + 2),
    .len = get_be32 (rest + 12),
  };
  trace ("<- %s, flags 0x%x, %" PRIu32 " bytes, cookie 0x%016" PRIx64,
         chunk_name (chunk.type), chunk.flags, chunk.len,
         get_be64 (rest + 4));
  if (!session->is_structured)
    fail ("expected a simple reply, for structured replies were not "
          "negotiated, got %s",
          chunk_name (chunk.type));
  pending = find_pending (session, get_be64 (rest + 4), "chunk");
  if (chunk.len > max_payload (&pending->request))
    fail ("expected a chunk of a sane length, got %" PRIu32 " bytes in "
          "reply to %s",
          chunk.len, request_name (&pending->request));
  chunk.data = data = take_memory (chunk.len);
  channel_recv (&session->channel, data, chunk.len,
                "the payload of a chunk");
  add_chunk (pending, &chunk);
  if (chunk.flags & CHUNK_FLAG_DONE)
    finish (session, pending);
}

bool
recv_message (struct session *session)
{
  uint8_t magic[4];

  if (!channel_recv_or_end (&session->channel, magic, sizeof magic,
                            "a reply"))
    return false;
  if (get_be32 (magic) == SIMPLE_REPLY_MAGIC)
    recv_simple_reply (session);
  else if (get_be32 (magic) == CHUNK_MAGIC)
    recv_chunk (session);
  else
    fail ("expected the magic number of a reply, got 0x%08" PRIx32,
          get_be32 (magic));
  return true;
}

bool
await_reply_or_end (struct session *session, struct pending *pending)
{
  while (!pending->is_done)
    if (!recv_message (session))
      return false;
  return true;
}

void
await_reply (struct session *session, struct pending *pending)
{
  if (!await_reply_or_end (session, pending))
    fail ("expected a reply to %s, got the end of the connection",
          request_name (&pending->request));
}

/* ---- What a reply says ---- */

uint32_t
reply_error (const struct pending *pending)
{
  for (unsigned i = 0; i < pending->nr_chunks; i++)
    if (chunk_is_error (&pending->chunks[i]))
      return chunk_error (&pending->chunks[i]);
  return pending->error;
}

const uint8_t *
reply_bytes (const struct pending *pending)
{
  const uint32_t error = reply_error (pending);

  if (error != ERROR_NONE)
    fail ("%s: expected success, got %s", request_name (&pending->request),
          error_name (error));
  return pending->is_simple ? pending->data : chunks_assemble (pending);
}

void
expect_read_succeeds (struct session *session, struct span span)
{
  struct pending *pending =
    send_request (session, make_read (session, span));

  await_reply (session, pending);
  expect_bytes (session->target, span, reply_bytes (pending));
}

void
expect_requests_go_on (struct session *session, const char *after)
{
  trace ("-- the connection must go on after %s", after);
  expect_read_succeeds (session, span_at (session->target, 0, 512));
}

bool
expect_error (struct session *session, struct pending *pending,
              uint32_t wanted, const char *what)
{
  if (!await_reply_or_end (session, pending)) {
    should (false, "%s: expected %s, got the end of the connection", what,
            error_name (wanted));
    return false;
  }
  if (reply_error (pending) == ERROR_NONE)
    fail ("%s: expected %s, got success", what, error_name (wanted));
  should (reply_error (pending) == wanted, "%s: expected %s, got %s", what,
          error_name (wanted), error_name (reply_error (pending)));
  expect_requests_go_on (session, what);
  return true;
}

void
should_be_invalid (struct session *session, struct pending *pending,
                   const char *what)
{
  if (!await_reply_or_end (session, pending)) {
    should (false, "%s: expected NBD_EINVAL, got the end of the connection",
            what);
    return;
  }
  should (reply_error (pending) == ERROR_INVAL,
          "%s: expected NBD_EINVAL, got %s", what,
          error_name (reply_error (pending)));
  expect_requests_go_on (session, what);
}
