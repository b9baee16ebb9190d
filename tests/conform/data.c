/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Ranges, and the bytes in them. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "conform/check.h"
#include "conform/data.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/io.h"
#include "lib/base/range.h"

#define MAX_LENGTH UINT32_C (33554432) /* 2^25, of "Block size constraints". */

uint64_t
readable_size (const struct target *target)
{
  return round_down (target->facts->size, target->facts->min_block);
}

struct span
span_at (const struct target *target, uint64_t offset, uint32_t len)
{
  const uint32_t unit = target->facts->min_block;
  const uint64_t size = readable_size (target);

  expect_export (target);
  if (size == 0)
    skip ("the export has no bytes");
  len = (uint32_t) MAX (round_down (MIN (len, size), unit), unit);
  len = MIN (len, (uint32_t) round_down (target->facts->max_block, unit));
  offset = MIN (round_down (offset, unit), size - len);
  return (struct span){ .offset = offset, .len = len };
}

struct span
span_at_end (const struct target *target, uint32_t len)
{
  return span_at (target, UINT64_MAX, len);
}

struct span
longest_span (const struct target *target)
{
  return span_at (target, 0, MAX_LENGTH - target->facts->min_block);
}

/* The same bytes by another connection, once made. */
static const uint8_t *
ask_another (const struct target *target, struct span span)
{
  static struct session *other;
  struct pending *pending;

  if (other == NULL)
    other = session_open (target);
  pending = send_request (other, make_read (other, span));
  await_reply (other, pending);
  return reply_bytes (pending);
}

static const uint8_t *
read_reference (const struct target *target, struct span span)
{
  uint8_t *bytes = take_memory (span.len);
  const int r =
    bp_pread_exact (target->reference_fd, bytes, span.len, span.offset);

  if (r < 0)
    fail ("the reference has no %" PRIu32 " bytes at %" PRIu64 ": %s",
          span.len, span.offset, strerror (-r));
  return bytes;
}

void
expect_bytes (const struct target *target, struct span span,
              const uint8_t *data)
{
  const uint8_t *wanted;
  uint32_t i = 0;

  if (target->reference_fd >= 0)
    wanted = read_reference (target, span);
  else if (!target->facts->takes_one_client)
    wanted = ask_another (target, span);
  else
    return;
  if (memcmp (wanted, data, span.len) == 0)
    return;
  while (wanted[i] == data[i])
    i++;
  fail ("byte %" PRIu64 ": expected 0x%02x, got 0x%02x", span.offset + i,
        wanted[i], data[i]);
}
