/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the extents of base:allocation say, over a walk through the export
 * as a client that copies it makes one: each question begins where the
 * last answer ended.  A walk takes at most a part of the check's time; what
 * it has not reached by then is left out.
 */
#include <config.h>

#include <inttypes.h>

#include "conform/check.h"
#include "conform/contexts.h"
#include "conform/extents.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/bytes.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"

#define MAX_STEP (UINT32_C (1) << 30) /* Bytes asked about at a time. */

enum {
  SECTOR = 512,
  MAX_ZERO_READ = 256 << 10,
  WALK_PART = 20, /* Of the check's time: one in so many. */
};

/* One answer of the walk. */
struct step {
  struct session *session;
  struct span asked;
  struct extents extents;
  uint64_t covered; /* Bytes: the sum of their lengths. */
};

typedef void visit_fn (const struct step *step);

static struct session *
open_for_status (const struct target *target, uint32_t *ret_id)
{
  struct session *session = session_begin (target);

  select_allocation (session, ret_id);
  session_enter (session);
  span_at (target, 0, 1);
  return session;
}

static uint64_t
sum_of (const struct extents *extents, unsigned count)
{
  uint64_t sum = 0;

  for (unsigned i = 0; i < count; i++)
    sum += extents->list[i].len;
  return sum;
}

/* Returns how far it came. */
static uint64_t
walk (const struct target *target, uint32_t step_len, visit_fn *visit)
{
  const uint64_t size = readable_size (target);
  const uint64_t stop_ns =
    now_ns () + target->timeout_s * NS_PER_SEC / WALK_PART;
  uint64_t offset = 0;
  uint32_t id;
  struct session *session = open_for_status (target, &id);

  while (offset < size && now_ns () < stop_ns) {
    struct step step = {
      .session = session,
      .asked = { offset, (uint32_t) MIN (size - offset, step_len) },
    };

    step.extents = extents_of_reply (ask_status (session, step.asked, 0),
                                     id);
    step.covered = sum_of (&step.extents, step.extents.count);
    visit (&step);
    expect (step.covered > 0, "%" PRIu64 ": expected progress, got none",
            offset);
    offset += round_down (step.covered, target->facts->min_block);
  }
  return offset;
}

static void
walk_both (const struct target *target, visit_fn *visit)
{
  const uint32_t small =
    MAX (100 * 1024, 4 * target->facts->min_block);

  walk (target, (uint32_t) round_down (MAX_STEP, target->facts->min_block),
        visit);
  walk (target, (uint32_t) round_down (small, target->facts->min_block),
        visit);
}

static void
visit_not_empty (const struct step *step)
{
  for (unsigned i = 0; i < step->extents.count; i++)
    expect (step->extents.list[i].len > 0,
            "extent %u of %" PRIu32 " bytes at %" PRIu64
            ": expected a length that is not zero, got zero",
            i, step->asked.len, step->asked.offset);
}

static void
extents_are_not_empty (const struct target *target)
{
  walk_both (target, visit_not_empty);
}

static void
visit_last_alone_extends (const struct step *step)
{
  const unsigned n = step->extents.count;
  const uint64_t before_last = sum_of (&step->extents, n - 1);

  expect (n == 1 || before_last < step->asked.len,
          "%" PRIu32 " bytes at %" PRIu64
          ": expected all extents but the last to have fewer bytes "
          "together, got %" PRIu64,
          step->asked.len, step->asked.offset, before_last);
}

static void
last_extent_alone_extends (const struct target *target)
{
  walk_both (target, visit_last_alone_extends);
}

static void
visit_within_export (const struct step *step)
{
  const uint64_t size = step->session->size;

  expect (range_is_within (size, step->asked.offset, step->covered),
          "%" PRIu32 " bytes at %" PRIu64
          ": expected extents up to the end of the export at %" PRIu64
          ", got them up to %" PRIu64,
          step->asked.len, step->asked.offset, size,
          step->asked.offset + step->covered);
}

static void
extents_lie_within_export (const struct target *target)
{
  walk_both (target, visit_within_export);
}

static void
visit_whole_blocks (const struct step *step)
{
  const struct facts *facts = step->session->target->facts;
  const uint64_t end = step->asked.offset + step->asked.len;
  uint64_t offset = step->asked.offset;

  for (unsigned i = 0; i < step->extents.count; i++) {
    const uint32_t len = step->extents.list[i].len;

    offset += len;
    if (offset == facts->size)
      continue;
    expect (len % facts->min_block == 0,
            "extent %u at %" PRIu64 ": expected a multiple of the minimum "
            "block size %" PRIu32 ", got %" PRIu32 " bytes",
            i, step->asked.offset, facts->min_block, len);
    should (offset % SECTOR == 0 || offset == end,
            "extent %u at %" PRIu64 ": expected a multiple of 512, got the "
            "end %" PRIu64,
            i, step->asked.offset, offset);
  }
}

static void
extents_are_whole_blocks (const struct target *target)
{
  walk_both (target, visit_whole_blocks);
}

static void
visit_differ (const struct step *step)
{
  for (unsigned i = 1; i < step->extents.count; i++)
    should (step->extents.list[i].status != step->extents.list[i - 1].status,
            "extents %u and %u of %" PRIu32 " bytes at %" PRIu64
            ": expected different status values, got %" PRIu32 " for both",
            i - 1, i, step->asked.len, step->asked.offset,
            step->extents.list[i].status);
}

static void
neighbours_differ (const struct target *target)
{
  walk (target, MAX_STEP, visit_differ);
}

static void
visit_known_status (const struct step *step)
{
  for (unsigned i = 0; i < step->extents.count; i++)
    should ((step->extents.list[i].status & ~(STATE_HOLE | STATE_ZERO)) == 0,
            "extent %u of %" PRIu32 " bytes at %" PRIu64
            ": expected no bits but hole and zero, got 0x%" PRIx32,
            i, step->asked.len, step->asked.offset,
            step->extents.list[i].status);
}

static void
reserved_bits_are_clear (const struct target *target)
{
  walk (target, MAX_STEP, visit_known_status);
}

/* Of each extent that is said to be zero, the beginning and the end. */
static void
visit_zero (const struct step *step)
{
  const struct target *target = step->session->target;
  const uint64_t limit = step->asked.offset + step->asked.len;
  uint64_t offset = step->asked.offset;

  for (unsigned i = 0; i < step->extents.count && offset < limit; i++) {
    const uint64_t len =
      MIN (step->extents.list[i].len, limit - offset);
    const uint32_t part = (uint32_t) MIN (len, MAX_ZERO_READ);
    const uint64_t starts[] = { offset, offset + len - part };

    for (unsigned j = 0; j < ARRAY_LEN (starts) &&
                         step->extents.list[i].status & STATE_ZERO;
         j++) {
      const struct span span = span_at (target, starts[j], part);
      struct pending *pending =
        send_request (step->session, make_read (step->session, span));

      await_reply (step->session, pending);
      expect (bytes_are_zero (reply_bytes (pending), span.len),
              "%" PRIu32 " bytes at %" PRIu64
              ", said to be zero: expected zeroes, got other bytes",
              span.len, span.offset);
    }
    offset += len;
  }
}

static void
zero_extents_read_as_zeroes (const struct target *target)
{
  walk_both (target, visit_zero);
}

static void
extents_cover_the_export (const struct target *target)
{
  if (walk (target, MAX_STEP, visit_not_empty) < readable_size (target))
    skip ("the export is too large to walk through it");
}

static void
odd_question_begins_where_asked (const struct target *target)
{
  uint32_t id;
  struct session *session = open_for_status (target, &id);

  if (target->facts->min_block > 1)
    skip ("the minimum block size is %" PRIu32, target->facts->min_block);
  for (uint64_t offset = 1; offset < 1 << 20; offset = 3 * offset + 1) {
    const struct span span = span_at (target, offset, 333);
    const struct extents extents =
      extents_of_reply (ask_status (session, span, 0), id);
    const struct step step = {
      .session = session,
      .asked = span,
      .extents = extents,
      .covered = sum_of (&extents, extents.count),
    };

    visit_not_empty (&step);
    visit_within_export (&step);
    visit_zero (&step);
  }
}

/* clang-format off */
const struct check extent_checks[] = {
  { "extents/none-is-empty", LEVEL_MUST, "Structured reply types",
    "32 bits, length of the extent to which the status below applies "
    "(unsigned, MUST be nonzero)",
    extents_are_not_empty },
  { "extents/only-the-last-may-go-beyond-the-question", LEVEL_MUST,
    "Structured reply types",
    "if [...] the server replies with N extents, then the sum of the "
    "*length* fields of the first N-1 extents (if any) MUST be less than "
    "the requested length",
    last_extent_alone_extends },
  { "extents/they-lie-within-the-export", LEVEL_MUST, "Request types",
    "The list of block status descriptors [...] represent consecutive "
    "portions of the file starting from specified *offset*.",
    extents_lie_within_export },
  { "extents/they-are-whole-blocks", LEVEL_MUST, "Request types",
    "The server SHOULD use descriptor lengths that are an integer multiple "
    "of 512 bytes where possible [...], and MUST use descriptor lengths "
    "that are an integer multiple of any advertised minimum block size.",
    extents_are_whole_blocks },
  { "extents/neighbours-differ", LEVEL_SHOULD, "Request types",
    "The server SHOULD use different *status* values between consecutive "
    "descriptors where feasible",
    neighbours_differ },
  { "extents/reserved-bits-are-clear", LEVEL_SHOULD,
    "`base:allocation` metadata context",
    "the remainder of the flags field is reserved. Servers SHOULD set it to "
    "all-zero",
    reserved_bits_are_clear },
  { "extents/zero-reads-as-zeroes", LEVEL_MUST,
    "`base:allocation` metadata context",
    "`NBD_STATE_ZERO` (bit 1): if set, the block contents read as all zeroes",
    zero_extents_read_as_zeroes },
  { "extents/a-walk-reaches-the-end", LEVEL_MUST, "Request types",
    "the server MUST return at least one status descriptor (and since each "
    "status descriptor has a non-zero length, a client can always make "
    "progress on a successful return)",
    extents_cover_the_export },
  { "extents/an-odd-question-is-answered-from-its-offset", LEVEL_MUST,
    "Request types",
    "represent consecutive portions of the file starting from specified "
    "*offset*",
    odd_question_begins_where_asked },
  { 0 },
};
/* clang-format on */
