/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* FLUSH, FUA and CACHE: what is advertised must work; and DISC. */
#include <config.h>

#include <inttypes.h>

#include "conform/check.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/range.h"

enum {
  IN_FLIGHT = 32, /* Reads before the end. */
};

static struct pending *
send_plain (struct session *session, uint16_t type, uint16_t flags,
            struct span span)
{
  return send_request (session, make_request (session, type, flags,
                                              span.offset, span.len));
}

static void
expect_success (struct session *session, struct pending *pending)
{
  await_reply (session, pending);
  expect (reply_error (pending) == ERROR_NONE, "%s: expected success, got %s",
          request_name (&pending->request),
          error_name (reply_error (pending)));
}

/* ---- FLUSH and FUA ---- */

static void
flush_succeeds_if_advertised (const struct target *target)
{
  struct session *session = session_open (target);

  if (!(session->flags & EXPORT_SEND_FLUSH))
    skip ("NBD_FLAG_SEND_FLUSH is not set");
  expect_success (session, send_plain (session, CMD_FLUSH, 0,
                                       (struct span){ 0, 0 }));
  expect_requests_go_on (session, "NBD_CMD_FLUSH");
}

static void
flush_is_answered_in_any_case (const struct target *target)
{
  struct session *session = session_open (target);
  struct pending *pending =
    send_plain (session, CMD_FLUSH, 0, (struct span){ 0, 0 });

  if (session->flags & EXPORT_SEND_FLUSH)
    skip ("NBD_FLAG_SEND_FLUSH is set");
  if (!await_reply_or_end (session, pending))
    should (false, "NBD_CMD_FLUSH, not advertised: expected NBD_EINVAL, got "
                   "the end of the connection");
  else {
    should (reply_error (pending) == ERROR_INVAL ||
              reply_error (pending) == ERROR_NONE,
            "NBD_CMD_FLUSH, not advertised: expected NBD_EINVAL or "
            "success, got %s",
            error_name (reply_error (pending)));
    expect_requests_go_on (session, "NBD_CMD_FLUSH");
  }
}

static void
fua_is_accepted_if_advertised (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, 4096);

  if (!(session->flags & EXPORT_SEND_FUA))
    skip ("NBD_FLAG_SEND_FUA is not set");
  expect_success (session,
                  send_plain (session, CMD_READ, CMD_FLAG_FUA, span));
  expect_requests_go_on (session, "NBD_CMD_FLAG_FUA");
}

static void
fua_is_invalid_otherwise (const struct target *target)
{
  struct session *session = session_open (target);

  if (session->flags & EXPORT_SEND_FUA)
    skip ("NBD_FLAG_SEND_FUA is set");
  should_be_invalid (session,
                     send_plain (session, CMD_READ, CMD_FLAG_FUA,
                                 span_at (target, 0, 4096)),
                     "NBD_CMD_READ with NBD_CMD_FLAG_FUA");
}

/* ---- CACHE ---- */

static struct session *
open_for_cache (const struct target *target)
{
  struct session *session = session_open (target);

  if (!(session->flags & EXPORT_SEND_CACHE))
    skip ("NBD_FLAG_SEND_CACHE is not set");
  return session;
}

/* It may fail; it has no payload, and changes nothing. */
static void
cache_changes_nothing (const struct target *target)
{
  struct session *session = open_for_cache (target);
  const struct span span = span_at (target, 0, 131072);

  await_reply (session, send_plain (session, CMD_CACHE, 0, span));
  expect_read_succeeds (session, span);
  await_reply (session, send_plain (session, CMD_CACHE, 0,
                                    span_at_end (target, 1)));
  expect_requests_go_on (session, "NBD_CMD_CACHE");
}

static void
cache_rejects_unknown_flags (const struct target *target)
{
  struct session *session = open_for_cache (target);
  struct pending *pending = send_plain (
    session, CMD_CACHE, CMD_FLAG_UNKNOWN, span_at (target, 0, 4096));

  if (!await_reply_or_end (session, pending))
    return;
  expect (reply_error (pending) != ERROR_NONE,
          "NBD_CMD_CACHE with an unknown flag: expected an error, got "
          "success");
  expect_requests_go_on (session, "NBD_CMD_CACHE with an unknown flag");
}

static void
cache_beyond_the_end_is_survived (const struct target *target)
{
  struct session *session = open_for_cache (target);
  const uint32_t len = span_at (target, 0, 4096).len;
  const struct span spans[] = {
    { target->facts->size, len },
    { 0 - (uint64_t) len, 2 * len },
    { UINT64_MAX, UINT32_MAX },
  };

  for (size_t i = 0; i < ARRAY_LEN (spans); i++) {
    struct pending *pending =
      send_plain (session, CMD_CACHE, 0, spans[i]);

    if (!await_reply_or_end (session, pending))
      return;
    should (reply_error (pending) != ERROR_NONE,
            "%s: expected an error, got success",
            request_name (&pending->request));
  }
  expect_requests_go_on (session, "NBD_CMD_CACHE beyond the end");
}

/* ---- DISC ---- */

static struct request
make_disc (struct session *session)
{
  return make_request (session, CMD_DISC, 0, 0, 0);
}

static void
send_disc (struct session *session)
{
  const struct request disc = make_disc (session);
  uint8_t wire[REQUEST_SIZE];

  encode_request (&disc, wire);
  trace ("-> NBD_CMD_DISC");
  channel_send (&session->channel, wire, sizeof wire);
}

static void
disc_closes_without_a_reply (const struct target *target)
{
  struct session *session = session_open (target);

  send_disc (session);
  channel_expect_end (&session->channel,
                      "the connection to be closed after NBD_CMD_DISC");
}

static void
disc_closes_structured_sessions (const struct target *target)
{
  struct session *session = session_open_structured (target);

  send_disc (session);
  channel_expect_end (&session->channel,
                      "the connection to be closed after NBD_CMD_DISC");
}

/* All in one packet, so that the server sees the end while it works. */
static void
disc_answers_what_is_in_flight (const struct target *target)
{
  struct session *session = session_open (target);
  uint8_t wire[(IN_FLIGHT + 1) * REQUEST_SIZE];
  struct pending *reads[IN_FLIGHT];
  const struct request disc = make_disc (session);

  for (unsigned i = 0; i < IN_FLIGHT; i++) {
    const struct request request =
      make_read (session, span_at (target, i * 65536, 65536));

    encode_request (&request, wire + (size_t) i * REQUEST_SIZE);
    reads[i] = add_pending (session, &request);
  }
  encode_request (&disc, wire + (size_t) IN_FLIGHT * REQUEST_SIZE);
  channel_send (&session->channel, wire, sizeof wire);
  for (unsigned i = 0; i < IN_FLIGHT; i++) {
    await_reply (session, reads[i]);
    should (reply_error (reads[i]) == ERROR_NONE,
            "%s, before NBD_CMD_DISC: expected success, got %s",
            request_name (&reads[i]->request),
            error_name (reply_error (reads[i])));
  }
  channel_expect_end (&session->channel,
                      "the connection to be closed after NBD_CMD_DISC");
}

/* clang-format off */
const struct check command_checks[] = {
  { "commands/flush-succeeds-if-advertised", LEVEL_MUST,
    "Transmission flags",
    "bit 2, `NBD_FLAG_SEND_FLUSH`: exposes support for `NBD_CMD_FLUSH`. "
    "[...] The server MUST NOT set the flag for features it does not "
    "support.",
    flush_succeeds_if_advertised },
  { "commands/flush-is-answered-in-any-case", LEVEL_SHOULD,
    "Error values",
    "The server SHOULD return `NBD_EINVAL` if it receives an unknown "
    "command.",
    flush_is_answered_in_any_case },
  { "commands/fua-is-accepted-if-advertised", LEVEL_MUST, "Command flags",
    "This flag is valid for all commands, provided `NBD_FLAG_SEND_FUA` has "
    "been negotiated, in which case the server MUST accept all commands "
    "with this bit set (even by ignoring the bit).",
    fua_is_accepted_if_advertised },
  { "commands/fua-is-invalid-otherwise", LEVEL_SHOULD, "Error values",
    "It also SHOULD return `NBD_EINVAL` if it receives a request with a "
    "flag not explicitly documented as applicable to the given request.",
    fua_is_invalid_otherwise },
  { "commands/cache-changes-nothing", LEVEL_MUST, "Request types",
    "`NBD_CMD_CACHE`: failure on this operation does not imply that further "
    "read and write requests on this area will fail, and, other than any "
    "difference in performance, there MUST NOT be any difference in "
    "semantics compared to if the client had not used this command",
    cache_changes_nothing },
  { "commands/cache-rejects-unknown-flags", LEVEL_MUST, "Request types",
    "`NBD_CMD_CACHE`: if it advertised the command, the server MUST reject "
    "any command flags it does not recognize",
    cache_rejects_unknown_flags },
  { "commands/cache-beyond-the-end-is-survived", LEVEL_SHOULD,
    "Block size constraints",
    "For those requests, the client MUST NOT use a *length* which, when "
    "added to *offset*, would exceed the export size.",
    cache_beyond_the_end_is_survived },
  { "commands/disc-closes-without-a-reply", LEVEL_MUST, "Request types",
    "There is no reply to an `NBD_CMD_DISC`.",
    disc_closes_without_a_reply },
  { "commands/disc-closes-structured-sessions-too", LEVEL_MUST,
    "Terminating the transmission phase",
    "The client sends `NBD_CMD_DISC` whereupon the server MUST close down "
    "the TLS session (if one is running) and then close the TCP connection.",
    disc_closes_structured_sessions },
  { "commands/disc-answers-what-is-in-flight", LEVEL_MUST, "Request types",
    "A disconnect request. The server MUST handle all outstanding requests, "
    "shut down the TLS session (if one is running), and close the TCP "
    "session.",
    disc_answers_what_is_in_flight },
  { 0 },
};
/* clang-format on */
