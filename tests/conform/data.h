/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Ranges that every export has, and the bytes that must be there: those of
 * --reference, or else those that another connection gets by simple
 * replies.
 */
#ifndef BP_CONFORM_DATA_H
#define BP_CONFORM_DATA_H

#include <stdbool.h>
#include <stdint.h>

struct target;

struct span {
  uint64_t offset; /* Bytes, like len. */
  uint32_t len;
};

/* The range nearest to LEN bytes at OFFSET that keeps to the export's size
 * and minimum block; skips the check if the export has none.
 */
struct span span_at (const struct target *target, uint64_t offset,
                     uint32_t len);

/* The last LEN bytes, likewise. */
struct span span_at_end (const struct target *target, uint32_t len);

/* The longest read that a server must be able to answer, at 0. */
struct span longest_span (const struct target *target);

/* Bytes of the export that whole blocks reach. */
uint64_t readable_size (const struct target *target);

/* Fail if DATA is not what stands in SPAN.  Without a reference, a server
 * that takes one client at a time is believed.
 */
void expect_bytes (const struct target *target, struct span span,
                   const uint8_t *data);

#endif /* BP_CONFORM_DATA_H */
