/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* NBD_CMD_BLOCK_STATUS: when it may be asked, the frame of its replies,
 * and ranges that are not there.
 */
#include <config.h>

#include <inttypes.h>

#include "conform/check.h"
#include "conform/chunks.h"
#include "conform/contexts.h"
#include "conform/extents.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/range.h"

/* With base:allocation selected. */
static struct session *
open_for_status (const struct target *target, uint32_t *ret_id)
{
  struct session *session = session_begin (target);

  select_allocation (session, ret_id);
  session_enter (session);
  return session;
}

static struct pending *
send_status (struct session *session, uint16_t flags, uint64_t offset,
             uint32_t len)
{
  return send_request (session, make_request (session, CMD_BLOCK_STATUS,
                                              flags, offset, len));
}

/* ---- Without a context ---- */

static void
without_structured_replies (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, 4096);

  expect_error (session, send_status (session, 0, span.offset, span.len),
                ERROR_INVAL,
                "NBD_CMD_BLOCK_STATUS without structured replies");
}

static void
without_a_context (const struct target *target)
{
  struct session *session = session_open_structured (target);
  const struct span span = span_at (target, 0, 4096);

  expect_error (session, send_status (session, 0, span.offset, span.len),
                ERROR_INVAL, "NBD_CMD_BLOCK_STATUS without a context");
}

/* ---- The reply ---- */

static void
reply_is_structured (const struct target *target)
{
  uint32_t id;
  struct session *session = open_for_status (target, &id);
  struct pending *pending =
    ask_status (session, span_at (target, 0, 65536), 0);

  rule_no_simple_reply (pending);
  rule_known_flags (pending);
  rule_known_types (pending);
  rule_none_is_final_and_empty (pending);
}

static void
one_chunk_for_each_context (const struct target *target)
{
  uint32_t id;
  struct session *session = open_for_status (target, &id);

  extents_of_reply (ask_status (session, span_at (target, 0, 65536), 0), id);
  extents_of_reply (ask_status (session, span_at_end (target, 512), 0), id);
  expect_requests_go_on (session, "NBD_CMD_BLOCK_STATUS");
}

static void
length_is_4_and_eights (const struct target *target)
{
  uint32_t id;
  struct session *session = open_for_status (target, &id);
  const struct pending *pending =
    ask_status (session, span_at (target, 0, 8 << 20), 0);

  for (unsigned i = 0; i < pending->nr_chunks; i++)
    if (pending->chunks[i].type == CHUNK_BLOCK_STATUS)
      extents_of_chunk (&pending->chunks[i]);
}

static bool
has_context (const struct contexts *set, uint32_t id)
{
  for (unsigned i = 0; i < set->count; i++)
    if (set->list[i].id == id)
      return true;
  return false;
}

static void
several_contexts (const struct target *target)
{
  struct session *session = session_begin (target);
  struct contexts *known = take_memory (sizeof *known);
  struct contexts *set = take_memory (sizeof *set);
  const char *queries[MAX_CONTEXTS];
  const struct pending *pending;
  unsigned count = 0;

  session_structure (session);
  ask_contexts (session, OPT_LIST_META_CONTEXT, NULL, 0, known);
  for (unsigned i = 0; i < known->count; i++)
    queries[i] = known->list[i].name;
  ask_contexts (session, OPT_SET_META_CONTEXT, queries, known->count, set);
  if (set->count < 2)
    skip ("the server has no two contexts that can be selected");
  session_enter (session);
  pending = ask_status (session, span_at (target, 0, 65536), 0);
  for (unsigned i = 0; i < pending->nr_chunks; i++)
    if (pending->chunks[i].type == CHUNK_BLOCK_STATUS) {
      const uint32_t id = extents_of_chunk (&pending->chunks[i]).context;

      expect (has_context (set, id),
              "expected the ID of a selected context, got %" PRIu32, id);
      count++;
    }
  expect_u64 ("status chunks", set->count, count);
}

static void
req_one_is_one_extent (const struct target *target)
{
  uint32_t id;
  struct session *session = open_for_status (target, &id);
  const uint32_t size =
    (uint32_t) MIN (readable_size (target), UINT32_C (1) << 30);
  const struct span spans[] = {
    span_at (target, 0, 512),
    span_at (target, 0, size),
    span_at (target, 100000, 300000),
    span_at_end (target, 512),
  };

  for (size_t i = 0; i < ARRAY_LEN (spans); i++) {
    const struct extents extents = extents_of_reply (
      ask_status (session, spans[i], CMD_FLAG_REQ_ONE), id);

    expect_u64 ("extents with NBD_CMD_FLAG_REQ_ONE", 1, extents.count);
    expect (extents.list[0].len <= spans[i].len,
            "NBD_CMD_FLAG_REQ_ONE: expected an extent of at most %" PRIu32
            " bytes, got %" PRIu32,
            spans[i].len, extents.list[0].len);
  }
}

/* ---- Ranges ---- */

static void
beyond_the_end (const struct target *target)
{
  uint32_t id;
  struct session *session = open_for_status (target, &id);
  const uint32_t len = span_at (target, 0, 4096).len;
  const uint64_t size = target->facts->size;

  if (!expect_error (session,
                     send_status (session, 0, size - MIN (size, len),
                                  2 * len),
                     ERROR_INVAL, "the status of bytes across the end") ||
      !expect_error (session, send_status (session, 0, size, len),
                     ERROR_INVAL, "the status of bytes at the end"))
    return;
  expect_error (session,
                send_status (session, 0, UINT64_C (1) << 63, len),
                ERROR_INVAL, "the status of bytes at 2^63");
}

static void
end_that_wraps (const struct target *target)
{
  uint32_t id;
  struct session *session = open_for_status (target, &id);
  const uint32_t len = span_at (target, 0, 4096).len;

  if (expect_error (session,
                    send_status (session, 0, 0 - (uint64_t) len, 2 * len),
                    ERROR_INVAL, "a status whose end wraps around 2^64"))
    expect_error (session,
                  send_status (session, 0, UINT64_MAX, UINT32_MAX),
                  ERROR_INVAL,
                  "the status of 2^32-1 bytes at 2^64-1");
}

static void
no_bytes (const struct target *target)
{
  uint32_t id;
  struct session *session = open_for_status (target, &id);
  struct pending *pending = send_status (session, 0, 0, 0);

  if (await_reply_or_end (session, pending))
    expect_requests_go_on (session, "the status of no bytes");
  else
    should (false, "the status of no bytes: expected the connection to go "
                   "on, got its end");
}

static void
unknown_flag (const struct target *target)
{
  uint32_t id;
  struct session *session = open_for_status (target, &id);
  const struct span span = span_at (target, 0, 4096);

  should_be_invalid (session,
                     send_status (session, CMD_FLAG_UNKNOWN, span.offset,
                                  span.len),
                     "NBD_CMD_BLOCK_STATUS with an unknown flag");
}

/* clang-format off */
const struct check block_status_checks[] = {
  { "block-status/it-needs-structured-replies", LEVEL_SHOULD,
    "Metadata querying",
    "Servers SHOULD reply with `NBD_EINVAL` to clients sending "
    "`NBD_CMD_BLOCK_STATUS` without selecting at least one metadata "
    "context.",
    without_structured_replies },
  { "block-status/it-needs-a-context", LEVEL_SHOULD, "Metadata querying",
    "Servers SHOULD reply with `NBD_EINVAL` to clients sending "
    "`NBD_CMD_BLOCK_STATUS` without selecting at least one metadata "
    "context.",
    without_a_context },
  { "block-status/the-reply-is-structured", LEVEL_MUST,
    "Metadata querying",
    "The reply to the `NBD_CMD_BLOCK_STATUS` request MUST be sent as a "
    "structured reply",
    reply_is_structured },
  { "block-status/one-chunk-for-each-context", LEVEL_MUST,
    "Structured reply types",
    "A successful block status request MUST have exactly one status chunk "
    "per negotiated metadata context ID.",
    one_chunk_for_each_context },
  { "block-status/several-contexts-are-answered", LEVEL_MUST,
    "Metadata querying",
    "On success, the server MUST respond with one structured reply chunk of "
    "type `NBD_REPLY_TYPE_BLOCK_STATUS` per metadata context selected "
    "during negotiation",
    several_contexts },
  { "block-status/a-length-is-4-and-eights", LEVEL_MUST,
    "Structured reply types",
    "`NBD_REPLY_TYPE_BLOCK_STATUS` (5) *length* MUST be 4 + (a positive "
    "integer multiple of 8).",
    length_is_4_and_eights },
  { "block-status/req-one-is-one-extent", LEVEL_MUST,
    "Structured reply types",
    "If the client used the `NBD_CMD_FLAG_REQ_ONE` flag in the request, then "
    "every reply chunk MUST contain exactly one descriptor, and that "
    "descriptor MUST NOT exceed the *length* of the original request.",
    req_one_is_one_extent },
  { "block-status/beyond-the-end-is-invalid", LEVEL_SHOULD,
    "Request types",
    "The server SHOULD return `NBD_EINVAL` if it receives a "
    "`NBD_CMD_BLOCK_STATUS` request including one or more sectors beyond "
    "the size of the device.",
    beyond_the_end },
  { "block-status/an-end-that-wraps-is-invalid", LEVEL_SHOULD,
    "Request types",
    "The server SHOULD return `NBD_EINVAL` if it receives a "
    "`NBD_CMD_BLOCK_STATUS` request including one or more sectors beyond "
    "the size of the device.",
    end_that_wraps },
  { "block-status/no-bytes-do-not-disconnect", LEVEL_SHOULD,
    "Request types",
    "The client SHOULD NOT request a status length of 0; the behavior of a "
    "server on such a request is unspecified although the server SHOULD NOT "
    "disconnect.",
    no_bytes },
  { "block-status/an-unknown-flag-is-invalid", LEVEL_SHOULD,
    "Error values",
    "The server SHOULD return `NBD_EINVAL` if it receives an unknown command "
    "flag.",
    unknown_flag },
  { 0 },
};
/* clang-format on */
