/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The one bounds check of the project, and rounding. */
#ifndef BP_RANGE_H
#define BP_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* True if LEN bytes at OFFSET lie inside SIZE bytes.  Cannot wrap. */
static inline bool
range_is_within (uint64_t size, uint64_t offset, uint64_t len)
{
  return len <= size && offset <= size - len;
}

static inline uint64_t
round_down (uint64_t v, uint64_t unit)
{
  return v - v % unit;
}

/* The caller knows that V + UNIT does not wrap. */
static inline uint64_t
round_up (uint64_t v, uint64_t unit)
{
  return round_down (v + unit - 1, unit);
}

/* Rounded up, without wrapping for any V. */
static inline uint64_t
div_round_up (uint64_t v, uint64_t unit)
{
  return v / unit + (v % unit != 0);
}

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define ARRAY_LEN(a) (sizeof (a) / sizeof ((a)[0]))

#endif /* BP_RANGE_H */
