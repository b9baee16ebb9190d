/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Structured replies: how they are negotiated, where they must be used,
 * and the "don't fragment" flag.
 */
#include <config.h>

#include <inttypes.h>

#include "conform/check.h"
#include "conform/chunks.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/range.h"

#define MAX_DF_LENGTH UINT32_C (65536) /* That must be supported. */

static void
request_is_acknowledged (const struct target *target)
{
  struct session *session = session_begin (target);
  struct option_reply reply;

  send_option (session, OPT_STRUCTURED_REPLY, NULL, 0);
  recv_option_reply (session, OPT_STRUCTURED_REPLY, &reply);
  if (reply.type == REP_ERR_UNSUP || reply.type == REP_ERR_POLICY)
    skip ("structured replies are not offered");
  expect (reply.type == REP_ACK, "expected NBD_REP_ACK, got %s",
          reply_name (reply.type));
  expect_u64 ("length of NBD_REP_ACK", 0, reply.len);
  expect_options_go_on (session, "NBD_OPT_STRUCTURED_REPLY");
}

static void
data_is_refused (const struct target *target)
{
  struct session *session = session_begin (target);
  struct option_reply reply;

  if (!target->facts->has_structured)
    skip ("structured replies are not offered");
  send_option (session, OPT_STRUCTURED_REPLY, "data", 4);
  if (!recv_option_reply_or_end (session, OPT_STRUCTURED_REPLY, &reply)) {
    should (false, "expected NBD_REP_ERR_INVALID, got the end of the "
                   "connection");
    return;
  }
  should (reply.type == REP_ERR_INVALID,
          "expected NBD_REP_ERR_INVALID, got %s", reply_name (reply.type));
  expect_options_go_on (session, "NBD_OPT_STRUCTURED_REPLY with data");
}

static void
repeated_request_is_harmless (const struct target *target)
{
  struct session *session = session_begin (target);
  struct option_reply reply;

  session_structure (session);
  send_option (session, OPT_STRUCTURED_REPLY, NULL, 0);
  recv_option_reply (session, OPT_STRUCTURED_REPLY, &reply);
  expect (reply.type == REP_ACK || reply.type == REP_ERR_INVALID,
          "expected NBD_REP_ACK or NBD_REP_ERR_INVALID, got %s",
          reply_name (reply.type));
  session_enter (session);
  expect_requests_go_on (session, "NBD_OPT_STRUCTURED_REPLY twice");
}

/* ---- Where they are used ---- */

/* The collector fails at a chunk that was not negotiated. */
static void
not_used_unless_negotiated (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, 65536);
  struct pending *pending;

  expect_read_succeeds (session, span);
  pending = send_request (session, make_request (session, CMD_READ, 0,
                                                 target->facts->size, 4096));
  await_reply_or_end (session, pending);
}

static void
read_is_structured (const struct target *target)
{
  struct session *session = session_open_structured (target);
  struct pending *pending = send_request (
    session, make_read (session, span_at (target, 0, 4096)));

  await_reply (session, pending);
  rule_no_simple_reply (pending);
  reply_bytes (pending);
}

static void
refused_read_is_structured (const struct target *target)
{
  struct session *session = session_open_structured (target);
  const struct span span = span_at (target, 0, 512);
  const struct request requests[] = {
    make_request (session, CMD_READ, 0, target->facts->size, span.len),
    make_request (session, CMD_READ, 0, UINT64_MAX, 1),
    make_request (session, CMD_READ, CMD_FLAG_UNKNOWN, 0, span.len),
  };

  for (size_t i = 0; i < ARRAY_LEN (requests); i++) {
    struct pending *pending = send_request (session, requests[i]);

    if (!await_reply_or_end (session, pending))
      skip ("the server closes the connection, as it may");
    rule_no_simple_reply (pending);
  }
  expect_requests_go_on (session, "reads that were refused");
}

static void
bytes_are_those_of_simple_replies (const struct target *target)
{
  struct session *session = session_open_structured (target);

  expect_read_succeeds (session, span_at (target, 0, 1 << 20));
  expect_read_succeeds (session, span_at (target, 300000, 700000));
  expect_read_succeeds (session, span_at_end (target, 100000));
  expect_read_succeeds (session, longest_span (target));
}

/* ---- Don't fragment ---- */

static struct session *
open_for_df (const struct target *target)
{
  struct session *session = session_open_structured (target);

  if (!(session->flags & EXPORT_SEND_DF))
    skip ("NBD_FLAG_SEND_DF is not set");
  return session;
}

static struct pending *
read_df (struct session *session, struct span span)
{
  struct request request = make_read (session, span);

  request.flags = CMD_FLAG_DF;
  return send_request (session, request);
}

static void
df_sends_one_chunk (const struct target *target)
{
  struct session *session = open_for_df (target);
  const uint64_t size = MIN (readable_size (target), 4 << 20);

  for (uint64_t offset = 0; offset < size; offset += MAX_DF_LENGTH) {
    const struct span span = span_at (target, offset, MAX_DF_LENGTH);
    struct pending *pending = read_df (session, span);

    await_reply (session, pending);
    rule_one_content_chunk (pending);
    expect_bytes (target, span, reply_bytes (pending));
  }
}

static void
df_of_64_kib_is_supported (const struct target *target)
{
  struct session *session = open_for_df (target);
  struct pending *pending =
    read_df (session, span_at (target, 0, MAX_DF_LENGTH));

  await_reply (session, pending);
  expect (reply_error (pending) != ERROR_OVERFLOW,
          "a read of %" PRIu32 " bytes with NBD_CMD_FLAG_DF: expected "
          "success, got NBD_EOVERFLOW",
          pending->request.len);
  reply_bytes (pending);
}

static void
long_df_overflows_or_is_one_chunk (const struct target *target)
{
  struct session *session = open_for_df (target);
  const struct span span = longest_span (target);
  struct pending *pending = read_df (session, span);
  unsigned count = 0;

  await_reply (session, pending);
  rule_one_content_chunk (pending);
  for (unsigned i = 0; i < pending->nr_chunks; i++)
    count += chunk_is_content (&pending->chunks[i]);
  if (reply_error (pending) == ERROR_OVERFLOW)
    expect_u64 ("content chunks beside NBD_EOVERFLOW", 0, count);
  else
    expect_bytes (target, span, reply_bytes (pending));
}

/* clang-format off */
const struct check structured_checks[] = {
  { "structured/the-request-is-acknowledged", LEVEL_MUST, "Option types",
    "`NBD_OPT_STRUCTURED_REPLY`: The server replies with the following, or "
    "with an error permitted elsewhere in this document: `NBD_REP_ACK`: "
    "Structured replies have been negotiated",
    request_is_acknowledged },
  { "structured/data-in-the-request-is-refused", LEVEL_SHOULD,
    "Option types",
    "`NBD_OPT_STRUCTURED_REPLY`: The client MUST NOT send any additional "
    "data with the option, and the server SHOULD reject a request that "
    "includes data with `NBD_REP_ERR_INVALID`.",
    data_is_refused },
  { "structured/a-repeated-request-is-harmless", LEVEL_MUST,
    "Fixed newstyle negotiation",
    "The client SHOULD NOT send such messages more than once; if it does, "
    "the server MAY fail the repeated message with `NBD_REP_ERR_INVALID`.",
    repeated_request_is_harmless },
  { "structured/not-used-unless-negotiated", LEVEL_MUST,
    "Structured reply chunk message",
    "The server MUST NOT send this reply type unless the client has "
    "successfully negotiated structured replies via "
    "`NBD_OPT_STRUCTURED_REPLY`.",
    not_used_unless_negotiated },
  { "structured/a-read-is-answered-so", LEVEL_MUST,
    "Structured reply chunk message",
    "if structured replies are negotiated, the server MUST use a structured "
    "reply for any response with a payload, and MUST NOT use a simple reply "
    "for `NBD_CMD_READ`",
    read_is_structured },
  { "structured/a-refused-read-is-answered-so", LEVEL_MUST,
    "Structured reply chunk message",
    "MUST NOT use a simple reply for `NBD_CMD_READ` (even for the case of "
    "an early `NBD_EINVAL` due to bad flags)",
    refused_read_is_structured },
  { "structured/the-bytes-are-those-of-simple-replies", LEVEL_MUST,
    "Request types",
    "When no error is detected, the server MUST send enough data chunks to "
    "cover the entire region described by the offset and length of the "
    "client's request.",
    bytes_are_those_of_simple_replies },
  { "structured/df-sends-one-chunk", LEVEL_MUST, "Request types",
    "If this flag is set, the server MUST send at most one content chunk",
    df_sends_one_chunk },
  { "structured/df-of-64-kib-is-supported", LEVEL_MUST, "Request types",
    "the server MUST support unfragmented reads in which the client's "
    "request length does not exceed 65,536 bytes",
    df_of_64_kib_is_supported },
  { "structured/df-of-more-overflows-or-is-one-chunk", LEVEL_MUST,
    "Request types",
    "A server MAY reject a client's request with the error `NBD_EOVERFLOW` "
    "if the length is too large to send without fragmentation, in which "
    "case it MUST NOT send a content chunk",
    long_df_overflows_or_is_one_chunk },
  { 0 },
};
/* clang-format on */
