/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Commands that write, at an export that is read-only: each must fail,
 * a WRITE only after its payload was read over, and no byte may change.
 */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "conform/check.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/range.h"

enum {
  PIPELINED = 16,
  LARGE_WRITE = 1 << 20,
  NR_HIDDEN = 64, /* Requests in the payload of a write. */
};

#define HUGE_WRITE UINT32_C (33550336) /* 2^25 - 4096. */

static void
write_fails (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, 4096);
  struct pending *pending =
    send_write (session, span.offset, span.len, 0);

  await_reply (session, pending);
  expect (reply_error (pending) != ERROR_NONE,
          "NBD_CMD_WRITE: expected an error, got success");
}

static void
write_is_not_permitted (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, 4096);

  expect_error (session, send_write (session, span.offset, span.len, 0),
                ERROR_PERM, "NBD_CMD_WRITE");
}

static void
write_payload_is_read_over (const struct target *target)
{
  static const uint32_t lengths[] = { 512, 1024, 4096, 65536, LARGE_WRITE };
  struct session *session = session_open (target);

  for (size_t i = 0; i < ARRAY_LEN (lengths); i++) {
    const struct span span = span_at (target, 0, lengths[i]);
    struct pending *pending =
      send_write (session, span.offset, span.len, 0);

    await_reply (session, pending);
    expect_requests_go_on (session, "a write that was refused");
  }
}

/* Its payload are reads with cookies that no reply may have. */
static void
write_payload_is_not_parsed (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, NR_HIDDEN * REQUEST_SIZE);
  uint8_t *payload = take_memory (span.len);
  struct request hidden = make_request (session, CMD_READ, 0, 0, span.len);
  struct pending *pending;

  hidden.cookie = UINT64_C (0x68696464656e2121);
  for (size_t i = 0; i + REQUEST_SIZE <= span.len; i += REQUEST_SIZE)
    encode_request (&hidden, payload + i);
  pending = send_request (session, make_request (session, CMD_WRITE, 0,
                                                 span.offset, span.len));
  channel_send (&session->channel, payload, span.len);
  await_reply (session, pending);
  expect_requests_go_on (session, "a write with requests in its payload");
}

static void
write_payload_may_come_in_pieces (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, 512);
  const uint8_t zeroes[4096] = { 0 };
  struct pending *pending;

  if (span.len > sizeof zeroes)
    skip ("the minimum block size is %" PRIu32, span.len);
  pending = send_request (session, make_request (session, CMD_WRITE, 0,
                                                 span.offset, span.len));
  channel_send_slowly (&session->channel, zeroes, span.len);
  await_reply (session, pending);
  expect_requests_go_on (session, "a write in pieces");
}

static void
huge_write_is_no_attack (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, HUGE_WRITE);
  struct pending *pending =
    send_write (session, span.offset, span.len, 0);

  if (!await_reply_or_end (session, pending)) {
    should (false, "a write of %" PRIu32 " bytes: expected an error, got "
                   "the end of the connection",
            span.len);
    return;
  }
  expect (reply_error (pending) != ERROR_NONE,
          "NBD_CMD_WRITE: expected an error, got success");
  expect_requests_go_on (session, "a huge write");
}

static void
empty_write_does_not_disconnect (const struct target *target)
{
  struct session *session = session_open (target);
  struct pending *pending = send_write (session, 0, 0, 0);

  if (await_reply_or_end (session, pending))
    expect_requests_go_on (session, "a write of no bytes");
  else
    should (false, "a write of no bytes: expected the connection to go on, "
                   "got its end");
}

static void
write_beyond_the_end (const struct target *target)
{
  struct session *session = session_open (target);
  const uint32_t len = span_at (target, 0, 512).len;
  struct pending *pending =
    send_write (session, target->facts->size, len, 0);

  if (!await_reply_or_end (session, pending))
    return;
  expect (reply_error (pending) != ERROR_NONE,
          "a write beyond the end: expected an error, got success");
  should (reply_error (pending) == ERROR_PERM ||
            reply_error (pending) == ERROR_NOSPC,
          "a write beyond the end: expected NBD_ENOSPC or NBD_EPERM, got %s",
          error_name (reply_error (pending)));
  expect_requests_go_on (session, "a write beyond the end");
}

static void
pipelined_writes_are_answered (const struct target *target)
{
  struct session *session = session_open (target);
  struct pending *writes[PIPELINED], *reads[PIPELINED];
  const struct span span = span_at (target, 0, 4096);

  for (unsigned i = 0; i < PIPELINED; i++) {
    writes[i] = send_write (session, span.offset, span.len, 0);
    reads[i] = send_request (session, make_read (session, span));
  }
  for (unsigned i = 0; i < PIPELINED; i++) {
    await_reply (session, writes[i]);
    expect (reply_error (writes[i]) != ERROR_NONE,
            "NBD_CMD_WRITE: expected an error, got success");
    await_reply (session, reads[i]);
    expect_bytes (target, span, reply_bytes (reads[i]));
  }
}

/* ---- TRIM and WRITE_ZEROES ---- */

static void
expect_not_permitted (const struct target *target, uint16_t type,
                      uint16_t flags)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, 4096);

  expect_error (session,
                send_request (session, make_request (session, type, flags,
                                                     span.offset,
                                                     span.len)),
                ERROR_PERM, command_name (type));
}

static void
trim_is_not_permitted (const struct target *target)
{
  expect_not_permitted (target, CMD_TRIM, 0);
}

static void
write_zeroes_is_not_permitted (const struct target *target)
{
  expect_not_permitted (target, CMD_WRITE_ZEROES, 0);
  expect_not_permitted (target, CMD_WRITE_ZEROES, CMD_FLAG_NO_HOLE);
}

static void
empty_trim_does_not_disconnect (const struct target *target)
{
  static const uint16_t types[] = { CMD_TRIM, CMD_WRITE_ZEROES };
  struct session *session = session_open (target);

  for (size_t i = 0; i < ARRAY_LEN (types); i++) {
    struct pending *pending = send_request (
      session, make_request (session, types[i], 0, 0, 0));

    if (!await_reply_or_end (session, pending)) {
      should (false,
              "%s of no bytes: expected the connection to go on, got its "
              "end",
              command_name (types[i]));
      return;
    }
  }
  expect_requests_go_on (session, "a trim of no bytes");
}

static void
no_byte_changes (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, 65536);
  struct pending *before, *after;

  before = send_request (session, make_read (session, span));
  await_reply (session, before);
  await_reply (session, send_write (session, span.offset, span.len, 0));
  await_reply (session, send_request (
                          session, make_request (session, CMD_TRIM, 0,
                                                 span.offset, span.len)));
  await_reply (session, send_request (
                          session,
                          make_request (session, CMD_WRITE_ZEROES, 0,
                                        span.offset, span.len)));
  after = send_request (session, make_read (session, span));
  await_reply (session, after);
  expect (memcmp (reply_bytes (before), reply_bytes (after), span.len) == 0,
          "expected the same bytes after writes that were refused, got "
          "others");
}

/* clang-format off */
#define READ_ONLY                                                         \
  "If this flag is set, the server MUST error subsequent write "          \
  "operations to the export."
#define NOT_PERMITTED                                                     \
  "it SHOULD return `NBD_EPERM` if it receives a write or trim request on a " \
  "read-only export"

const struct check write_checks[] = {
  { "write/it-fails", LEVEL_MUST, "Transmission flags",
    READ_ONLY, write_fails },
  { "write/it-is-not-permitted", LEVEL_SHOULD, "Error values",
    NOT_PERMITTED, write_is_not_permitted },
  { "write/its-payload-is-read-over", LEVEL_MUST, "Request types",
    "The client MUST follow the request header with *length* number of "
    "bytes to be written to the device.",
    write_payload_is_read_over },
  { "write/its-payload-is-not-parsed", LEVEL_MUST, "Request message",
    "C: (*length* bytes of data if the request is of type `NBD_CMD_WRITE`)",
    write_payload_is_not_parsed },
  { "write/its-payload-may-come-in-pieces", LEVEL_ROBUST,
    "Request message",
    "C: (*length* bytes of data if the request is of type `NBD_CMD_WRITE`)",
    write_payload_may_come_in_pieces },
  { "write/nearly-2^25-bytes-are-no-attack", LEVEL_SHOULD,
    "Block size constraints",
    "any *length* less than 2^25 (33,554,432) bytes SHOULD NOT be considered "
    "a denial of service attack",
    huge_write_is_no_attack },
  { "write/no-bytes-do-not-disconnect", LEVEL_SHOULD, "Request types",
    "The client SHOULD NOT request a write length of 0; the behavior of a "
    "server on such a request is unspecified although the server SHOULD NOT "
    "disconnect.",
    empty_write_does_not_disconnect },
  { "write/beyond-the-end-fails", LEVEL_MUST, "Error values",
    "The server SHOULD return `NBD_ENOSPC` if it receives a write request "
    "including one or more sectors beyond the size of the device.",
    write_beyond_the_end },
  { "write/pipelined-writes-are-answered", LEVEL_MUST,
    "Transmission flags",
    READ_ONLY, pipelined_writes_are_answered },
  { "write/trim-is-not-permitted", LEVEL_SHOULD, "Error values",
    NOT_PERMITTED, trim_is_not_permitted },
  { "write/write-zeroes-is-not-permitted", LEVEL_SHOULD, "Request types",
    "It SHOULD return `NBD_EPERM` if it receives a write zeroes request on "
    "a read-only export.",
    write_zeroes_is_not_permitted },
  { "write/a-trim-of-no-bytes-does-not-disconnect", LEVEL_SHOULD,
    "Request types",
    "The client SHOULD NOT request a trim length of 0; the behavior of a "
    "server on such a request is unspecified although the server SHOULD NOT "
    "disconnect.",
    empty_trim_does_not_disconnect },
  { "write/no-byte-changes", LEVEL_MUST, "Transmission flags",
    READ_ONLY, no_byte_changes },
  { 0 },
};
/* clang-format on */
