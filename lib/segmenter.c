/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The segmenter.
 *
 *   segment  [ block | block | … | part of a block ]
 *             ◀── len ──────────▶ ◀── partial ────▶
 *
 * Bytes gather behind the segment until they are a block; the block then
 * joins the segment or, if it is zeros, ends it and is forgotten.
 * Invariant between calls: len is a multiple of the block and below the
 * maximum, partial is less than a block.
 */
#include <config.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "lib/segmenter.h"

enum {
  BOUNDARY_MASK = 15
}; /* One block in 16 ends a segment. */

struct bp_segmenter {
  bp_segment_fn fn;
  void *opaque;
  uint64_t size;    /* Bytes of the image so far. */
  uint32_t len;     /* Bytes of whole blocks in segment. */
  uint32_t partial; /* Bytes behind them. */
  uint8_t segment[BP_SEGMENT_MAX];
};

int
bp_segmenter_new (struct bp_segmenter **ret_segmenter, bp_segment_fn fn,
                  void *opaque)
{
  struct bp_segmenter *segmenter = calloc (1, sizeof *segmenter);

  if (segmenter == NULL)
    return -ENOMEM;
  segmenter->fn = fn;
  segmenter->opaque = opaque;
  *ret_segmenter = segmenter;
  return 0;
}

void
bp_segmenter_free (struct bp_segmenter *segmenter)
{
  free (segmenter);
}

uint64_t
bp_segmenter_size (const struct bp_segmenter *segmenter)
{
  return segmenter->size;
}

/* Hand out the segment that ends AFTER bytes before the image's end so
 * far.
 */
static int
end_segment (struct bp_segmenter *segmenter, uint64_t after)
{
  const uint32_t len = segmenter->len;

  if (len == 0)
    return 0;
  segmenter->len = 0;
  return segmenter->fn (segmenter->opaque, segmenter->size - after - len,
                        segmenter->segment, len);
}

static bool
is_boundary (const uint8_t *block, size_t len)
{
  return (XXH3_64bits (block, len) & BOUNDARY_MASK) == 0;
}

/* The partial block is whole, or the image's last. */
static int
end_block (struct bp_segmenter *segmenter)
{
  const uint8_t *block = segmenter->segment + segmenter->len;
  const uint32_t n = segmenter->partial;

  segmenter->partial = 0;
  if (bytes_are_zero (block, n))
    return end_segment (segmenter, n);
  segmenter->len += n;
  if (segmenter->len == BP_SEGMENT_MAX ||
      (segmenter->len >= BP_SEGMENT_MIN && is_boundary (block, n)))
    return end_segment (segmenter, 0);
  return 0;
}

/* Take bytes of the current block: from DATA, or zeros if it is NULL.
 * Returns how many were taken or what the callback returned.
 */
static ssize_t
fill_block (struct bp_segmenter *segmenter, const uint8_t *data,
            uint64_t len)
{
  const size_t n = MIN (len, BP_SEGMENT_BLOCK - segmenter->partial);
  uint8_t *p = segmenter->segment + segmenter->len + segmenter->partial;
  int r = 0;

  if (data)
    memcpy (p, data, n);
  else
    memset (p, 0, n);
  segmenter->partial += (uint32_t) n;
  segmenter->size += n;
  if (segmenter->partial == BP_SEGMENT_BLOCK)
    r = end_block (segmenter);
  return r < 0 ? r : (ssize_t) n;
}

int
bp_segmenter_add (struct bp_segmenter *segmenter, const void *data,
                  size_t len)
{
  const uint8_t *p = data;

  while (len > 0) {
    const ssize_t n = fill_block (segmenter, p, len);

    if (n < 0)
      return (int) n;
    p += n;
    len -= (size_t) n;
  }
  return 0;
}

int
bp_segmenter_skip (struct bp_segmenter *segmenter, uint64_t len)
{
  while (len > 0) {
    const uint64_t whole = round_down (len, BP_SEGMENT_BLOCK);
    ssize_t n;

    if (segmenter->partial == 0 && whole > 0) {
      const int r = end_segment (segmenter, 0);

      if (r < 0)
        return r;
      segmenter->size += whole;
      len -= whole;
      continue;
    }
    n = fill_block (segmenter, NULL, len);
    if (n < 0)
      return (int) n;
    len -= (uint64_t) n;
  }
  return 0;
}

int
bp_segmenter_finish (struct bp_segmenter *segmenter)
{
  if (segmenter->partial > 0) {
    const int r = end_block (segmenter);

    if (r < 0)
      return r;
  }
  return end_segment (segmenter, 0);
}
