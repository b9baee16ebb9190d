/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* NBD_CMD_READ, answered by simple replies: the bytes, and ranges that the
 * export does not have.
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

#define ALL_READ UINT64_C (67108864) /* Bytes; of more, samples are read. */
#define FOUR_GIB (UINT64_C (1) << 32)

enum {
  PIECE = 1 << 20,
  NR_SAMPLES = 64,
  SAMPLE = 64 << 10,
};

/* ---- Bytes ---- */

static void
read_sends_what_is_asked (const struct target *target)
{
  static const struct {
    uint64_t offset;
    uint32_t len;
  } reads[] = {
    { 0, 512 },
    { 0, 4096 },
    { 512, 512 },
    { 4096, 65536 },
    { 131072, 131072 },
  };
  struct session *session = session_open (target);

  for (size_t i = 0; i < ARRAY_LEN (reads); i++)
    expect_read_succeeds (session,
                          span_at (target, reads[i].offset, reads[i].len));
}

static void
read_reaches_the_last_byte (const struct target *target)
{
  struct session *session = session_open (target);

  expect_read_succeeds (session, span_at_end (target, 1));
  expect_read_succeeds (session, span_at_end (target, 512));
  expect_read_succeeds (session, span_at_end (target, 100000));
}

/* A read that a server should be able to answer. */
static void
expect_read_not_refused (struct session *session, struct span span)
{
  struct pending *pending =
    send_request (session, make_read (session, span));

  if (!await_reply_or_end (session, pending))
    should (false, "%s: expected success, got the end of the connection",
            request_name (&pending->request));
  else if (reply_error (pending) != ERROR_NONE)
    should (false, "%s: expected success, got %s",
            request_name (&pending->request),
            error_name (reply_error (pending)));
  else
    expect_bytes (session->target, span, reply_bytes (pending));
}

static void
odd_reads (const struct target *target)
{
  static const struct span spans[] = {
    { 0, 1 },
    { 1, 1 },
    { 511, 2 },
    { 4095, 3 },
    { 1023, 1025 },
    { 65535, 65537 },
    { 131071, 3 },
  };

  if (target->facts->min_block > 1)
    skip ("the minimum block size is %" PRIu32, target->facts->min_block);
  for (size_t i = 0; i < ARRAY_LEN (spans); i++)
    expect_read_not_refused (session_open (target),
                             span_at (target, spans[i].offset,
                                      spans[i].len));
}

static void
same_bytes_again (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 8192, 40000);
  struct pending *first, *second;

  first = send_request (session, make_read (session, span));
  await_reply (session, first);
  second = send_request (session, make_read (session, span));
  await_reply (session, second);
  expect (memcmp (reply_bytes (first), reply_bytes (second), span.len) == 0,
          "%s: expected the same bytes again, got others",
          request_name (&first->request));
}

static void
longest_read (const struct target *target)
{
  expect_read_not_refused (session_open (target), longest_span (target));
}

static void
reads_beyond_4_gib (const struct target *target)
{
  struct session *session = session_open (target);

  if (target->facts->size < FOUR_GIB + PIECE)
    skip ("the export has less than 4 GiB");
  expect_read_succeeds (session, span_at (target, FOUR_GIB - 4096, 8192));
  expect_read_succeeds (session, span_at (target, FOUR_GIB, 4096));
  expect_read_succeeds (session, span_at_end (target, 4096));
}

static void
compare_all (struct session *session)
{
  const struct target *target = session->target;
  const uint64_t size = readable_size (target);
  uint64_t offset = 0;

  while (offset < size) {
    const struct span span =
      span_at (target, offset, (uint32_t) MIN (size - offset, PIECE));

    expect_read_succeeds (session, span);
    offset += span.len;
  }
}

static void
compare_samples (struct session *session)
{
  const struct target *target = session->target;
  const uint64_t step = readable_size (target) / NR_SAMPLES;

  for (unsigned i = 0; i < NR_SAMPLES; i++)
    expect_read_succeeds (session, span_at (target, i * step, SAMPLE));
  expect_read_succeeds (session, span_at_end (target, SAMPLE));
}

static void
export_is_the_reference (const struct target *target)
{
  struct session *session = session_open (target);

  if (target->reference_fd < 0)
    skip ("no --reference");
  expect_u64 ("size of the export and of the reference",
              target->reference_size, target->facts->size);
  if (target->facts->size <= ALL_READ)
    compare_all (session);
  else
    compare_samples (session);
}

/* ---- Ranges that are not there ---- */

static void
expect_beyond (const struct target *target, uint64_t offset, uint32_t len,
               const char *what)
{
  struct session *session = session_open (target);

  span_at (target, 0, 1); /* An export without bytes is skipped. */
  expect_error (session,
                send_request (session, make_request (session, CMD_READ, 0,
                                                     offset, len)),
                ERROR_INVAL, what);
}

static void
read_across_the_end (const struct target *target)
{
  const uint32_t unit = target->facts->min_block;
  const uint64_t size = readable_size (target);

  expect_beyond (target, size - MIN (size, unit), 2 * unit,
                 "a read across the end");
}

static void
read_at_the_end (const struct target *target)
{
  const uint32_t unit = target->facts->min_block;

  expect_beyond (target, round_up (target->facts->size, unit),
                 MAX (512, unit), "a read at the end");
}

static void
read_far_beyond (const struct target *target)
{
  const uint32_t len = MAX (512, target->facts->min_block);

  if (target->facts->size < UINT64_C (1) << 62)
    expect_beyond (target, UINT64_C (1) << 62, len, "a read at 2^62");
  expect_beyond (target, UINT64_C (1) << 63, len, "a read at 2^63");
}

static void
read_that_wraps (const struct target *target)
{
  const uint32_t unit = MAX (512, target->facts->min_block);

  expect_beyond (target, 0 - (uint64_t) unit, 2 * unit,
                 "a read whose end wraps around 2^64");
  expect_beyond (target, UINT64_MAX, 1, "a read of the byte at 2^64-1");
  expect_beyond (target, UINT64_MAX, UINT32_MAX,
                 "a read of 2^32-1 bytes at 2^64-1");
}

static void
read_longer_than_the_export (const struct target *target)
{
  if (target->facts->size >= UINT32_MAX)
    skip ("the export has 4 GiB or more");
  expect_beyond (target, 0, UINT32_MAX, "a read of 2^32-1 bytes");
}

/* A range that the export has, but in a way that the client must not ask
 * for.
 */
static void
expect_discouraged (const struct target *target, uint64_t offset,
                    uint32_t len, const char *what)
{
  struct session *session = session_open (target);

  should_be_invalid (session,
                     send_request (session, make_request (session, CMD_READ,
                                                          0, offset, len)),
                     what);
}

static void
read_longer_than_the_maximum (const struct target *target)
{
  const struct facts *facts = target->facts;
  const uint64_t len = (uint64_t) facts->max_block + facts->min_block;

  expect_export (target);
  if (len > facts->size || len > UINT32_MAX)
    skip ("the export is not longer than the maximum block size");
  expect_discouraged (target, 0, (uint32_t) len,
                      "a read longer than the maximum block size");
}

static void
unaligned_read (const struct target *target)
{
  const uint32_t unit = target->facts->min_block;

  expect_export (target);
  if (unit == 1 || target->facts->size < 2 * unit)
    skip ("the minimum block size is 1, or the export has but one");
  expect_discouraged (target, 1, unit, "a read at no multiple of a block");
  expect_discouraged (target, 0, unit + 1,
                      "a read of no multiple of a block");
}

static void
empty_read (const struct target *target)
{
  struct session *session = session_open (target);
  struct pending *pending = send_request (
    session, make_request (session, CMD_READ, 0, 0, 0));

  if (!await_reply_or_end (session, pending)) {
    should (false, "a read of no bytes: expected the connection to go on, "
                   "got its end");
    return;
  }
  expect_requests_go_on (session, "a read of no bytes");
}

static void
refused_read_has_no_payload (const struct target *target)
{
  struct session *session = session_open (target);
  const uint64_t size = target->facts->size;
  struct pending *pending;

  pending = send_request (
    session, make_request (session, CMD_READ, 0, size, 4096));
  if (!await_reply_or_end (session, pending))
    skip ("the server closes the connection, as it may");
  expect (reply_error (pending) != ERROR_NONE,
          "a read beyond the end: expected an error, got success");
  expect_requests_go_on (session, "a read that was refused");
}

/* clang-format off */
#define BEYOND                                                            \
  "It SHOULD return `NBD_EINVAL` if it receives a read or trim request "  \
  "including one or more sectors beyond the size of the device"

const struct check read_checks[] = {
  { "read/it-sends-what-is-asked", LEVEL_MUST, "Request types",
    "a read request MUST always be answered by a simple reply, as "
    "documented above (using magic 0x67446698 `NBD_SIMPLE_REPLY_MAGIC`, and "
    "containing length bytes of data according to the client's request)",
    read_sends_what_is_asked },
  { "read/it-reaches-the-last-byte", LEVEL_MUST, "Request types",
    "Length and offset define the data to be read.",
    read_reaches_the_last_byte },
  { "read/odd-offsets-and-lengths", LEVEL_SHOULD, "Block size constraints",
    "If block size constraints have not been advertised or agreed on "
    "externally, then a server SHOULD support a default minimum block size "
    "of 1",
    odd_reads },
  { "read/the-same-bytes-again", LEVEL_ROBUST, "Request types",
    "Length and offset define the data to be read.",
    same_bytes_again },
  { "read/nearly-2^25-bytes-are-no-attack", LEVEL_SHOULD,
    "Block size constraints",
    "any *length* less than 2^25 (33,554,432) bytes SHOULD NOT be considered "
    "a denial of service attack",
    longest_read },
  { "read/beyond-4-gib", LEVEL_MUST, "Request message",
    "C: 64 bits, offset (unsigned)",
    reads_beyond_4_gib },
  { "read/the-export-is-the-reference", LEVEL_MUST, "Introduction",
    "the protocol only concerns itself with a range of bytes",
    export_is_the_reference },
  { "read/across-the-end-is-invalid", LEVEL_SHOULD, "Error values",
    BEYOND, read_across_the_end },
  { "read/at-the-end-is-invalid", LEVEL_SHOULD, "Error values",
    BEYOND, read_at_the_end },
  { "read/far-beyond-is-invalid", LEVEL_SHOULD, "Error values",
    BEYOND, read_far_beyond },
  { "read/an-end-that-wraps-is-invalid", LEVEL_SHOULD, "Error values",
    BEYOND, read_that_wraps },
  { "read/longer-than-the-export-is-invalid", LEVEL_SHOULD, "Error values",
    BEYOND, read_longer_than_the_export },
  { "read/longer-than-the-maximum-block-is-invalid", LEVEL_SHOULD,
    "Block size constraints",
    "The server SHOULD report an `NBD_EINVAL` error if the client's request "
    "[...] is larger than the advertised maximum block size.",
    read_longer_than_the_maximum },
  { "read/unaligned-is-invalid", LEVEL_SHOULD, "Block size constraints",
    "The server SHOULD report an `NBD_EINVAL` error if the client's request "
    "is not aligned to advertised minimum block size boundaries",
    unaligned_read },
  { "read/no-bytes-do-not-disconnect", LEVEL_SHOULD, "Request types",
    "The client SHOULD NOT request a read length of 0; the behavior of a "
    "server on such a request is unspecified although the server SHOULD NOT "
    "disconnect.",
    empty_read },
  { "read/a-refusal-has-no-payload", LEVEL_MUST, "Request types",
    "The server MAY then initiate a hard disconnect. If it chooses not to, "
    "it MUST NOT send any payload for this request.",
    refused_read_has_no_payload },
  { 0 },
};
/* clang-format on */
