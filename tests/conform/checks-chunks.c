/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The rules for the chunks of a structured reply, each over the same
 * replies: reads of many kinds, and requests that are refused.
 */
#include <config.h>

#include "conform/check.h"
#include "conform/chunks.h"
#include "conform/contexts.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/range.h"

typedef void rule_fn (const struct pending *pending);

/* Each is fitted to the export. */
static const struct span reads[] = {
  { 0, 1 },
  { 0, 512 },
  { 511, 3 },
  { 0, 4096 },
  { 4095, 2 },
  { 0, 65536 },
  { 65000, 140000 },
  { 131072, 131072 },
  { 0, 1 << 20 },
  { 1000, 3 << 20 },
  { 3 << 20, 1 << 20 },
  { 0, 8 << 20 },
  { UINT64_MAX, 1 },
  { UINT64_MAX, 513 },
  { UINT64_MAX, 300000 },
};

static void
for_each_read (const struct target *target, rule_fn *rule)
{
  struct session *session = session_open_structured (target);

  for (size_t i = 0; i < ARRAY_LEN (reads); i++) {
    struct pending *pending = send_request (
      session,
      make_read (session,
                 span_at (target, reads[i].offset, reads[i].len)));

    await_reply (session, pending);
    rule (pending);
  }
  expect_requests_go_on (session, "the reads");
}

/* Most servers go on after each; one that does not answers the first. */
static void
for_each_refusal (const struct target *target, rule_fn *rule)
{
  struct session *session = session_open_structured (target);
  const uint32_t len = span_at (target, 0, 512).len;
  const uint64_t size = target->facts->size;
  const struct request requests[] = {
    make_request (session, CMD_READ, 0, size, len),
    make_request (session, CMD_READ, 0, size - MIN (size, len), 2 * len),
    make_request (session, CMD_READ, CMD_FLAG_UNKNOWN, 0, len),
    make_request (session, CMD_TRIM, 0, 0, len),
    make_request (session, CMD_WRITE_ZEROES, 0, 0, len),
    make_request (session, CMD_BLOCK_STATUS, 0, 0, len),
    make_request (session, 0x1234, 0, 0, 0),
  };

  for (size_t i = 0; i < ARRAY_LEN (requests); i++) {
    struct pending *pending = send_request (session, requests[i]);

    if (!await_reply_or_end (session, pending))
      return;
    rule (pending);
  }
}

static void
for_each_reply (const struct target *target, rule_fn *rule)
{
  for_each_read (target, rule);
  for_each_refusal (target, rule);
}

static void
cover_the_request (const struct target *target)
{
  for_each_read (target, rule_cover_request);
}

static void
do_not_overlap (const struct target *target)
{
  for_each_read (target, rule_no_overlap);
}

static void
lie_within_the_request (const struct target *target)
{
  for_each_read (target, rule_within_request);
}

static void
are_not_empty (const struct target *target)
{
  for_each_read (target, rule_content_not_empty);
}

static void
are_whole_sectors (const struct target *target)
{
  for_each_read (target, rule_whole_sectors);
}

static void
have_known_flags (const struct target *target)
{
  for_each_reply (target, rule_known_flags);
}

static void
have_known_types (const struct target *target)
{
  for_each_reply (target, rule_known_types);
}

static void
none_is_final_and_empty (const struct target *target)
{
  for_each_reply (target, rule_none_is_final_and_empty);
}

static void
hole_has_12_bytes (const struct target *target)
{
  for_each_read (target, rule_hole_length);
}

/* A chunk after the last belongs to no request under way, which fails
 * where it is received; a reply without a last one never ends.
 */
static void
the_last_is_marked (const struct target *target)
{
  for_each_read (target, rule_no_simple_reply);
}

static void
errors_are_not_zero (const struct target *target)
{
  for_each_refusal (target, rule_error_not_zero);
}

static void
error_messages_fit (const struct target *target)
{
  for_each_refusal (target, rule_error_message);
}

static void
error_offsets_lie_within (const struct target *target)
{
  for_each_refusal (target, rule_error_offset);
}

/* clang-format off */
const struct check chunk_checks[] = {
  { "chunks/they-cover-the-request", LEVEL_MUST, "Request types",
    "When no error is detected, the server MUST send enough data chunks to "
    "cover the entire region described by the offset and length of the "
    "client's request.",
    cover_the_request },
  { "chunks/they-do-not-overlap", LEVEL_MUST, "Structured reply types",
    "The data [...] MUST NOT overlap with the bounds of any earlier content "
    "chunk or error chunk in the same reply.",
    do_not_overlap },
  { "chunks/they-lie-within-the-request", LEVEL_MUST,
    "Structured reply types",
    "The data MUST lie within the bounds of the original offset and length "
    "of the client's request",
    lie_within_the_request },
  { "chunks/none-is-empty", LEVEL_MUST, "Request types",
    "each chunk MUST describe at least one byte",
    are_not_empty },
  { "chunks/they-are-whole-sectors", LEVEL_SHOULD, "Request types",
    "the server SHOULD use chunks with lengths and offsets as an integer "
    "multiple of 512 bytes, where possible (the first and last chunk of an "
    "unaligned read being the most obvious places for an exception)",
    are_whole_sectors },
  { "chunks/the-last-is-marked", LEVEL_MUST, "Structured reply flags",
    "bit 0, `NBD_REPLY_FLAG_DONE`; the server MUST clear this bit if more "
    "structured reply chunks will be sent for the same client request, and "
    "MUST set this bit if this is the final reply.",
    the_last_is_marked },
  { "chunks/they-have-no-other-flags", LEVEL_MUST,
    "Structured reply flags",
    "The server MUST NOT set any other flags without first negotiating the "
    "extension with the client",
    have_known_flags },
  { "chunks/they-have-types-for-their-request", LEVEL_MUST,
    "Structured reply types",
    "Each type determines how to interpret the \"length\" bytes of payload. "
    "If the client receives an unknown or unexpected type, other than an "
    "*error chunk*, it MUST initiate a hard disconnect.",
    have_known_types },
  { "chunks/none-type-is-final-and-empty", LEVEL_MUST,
    "Structured reply types",
    "`NBD_REPLY_TYPE_NONE` (0) *length* MUST be 0 (and the payload field "
    "omitted). This chunk type MUST always be used with the "
    "`NBD_REPLY_FLAG_DONE` bit set",
    none_is_final_and_empty },
  { "chunks/a-hole-has-12-bytes", LEVEL_MUST, "Structured reply types",
    "`NBD_REPLY_TYPE_OFFSET_HOLE` (2) [...] *length* MUST be exactly 12.",
    hole_has_12_bytes },
  { "chunks/an-error-is-not-zero", LEVEL_MUST, "Structured reply types",
    "`NBD_REPLY_TYPE_ERROR`: 32 bits: error (MUST be nonzero)",
    errors_are_not_zero },
  { "chunks/an-error-message-fits", LEVEL_MUST, "Structured reply types",
    "16 bits: message length (no more than header *length* - 6) [...] Note "
    "that *message length* MUST NOT exceed the 4096 bytes string length "
    "limit.",
    error_messages_fit },
  { "chunks/an-error-offset-lies-within-the-request", LEVEL_MUST,
    "Structured reply types",
    "an error occurred at a given offset, which MUST lie within the "
    "original offset and length of the request",
    error_offsets_lie_within },
  { 0 },
};
/* clang-format on */
