/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Monotonic time in nanoseconds. */
#ifndef BP_CLOCK_H
#define BP_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC UINT64_C (1000000000)
#define NS_PER_MS UINT64_C (1000000)

static inline uint64_t
now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * NS_PER_SEC + (uint64_t) t.tv_nsec;
}

#endif /* BP_CLOCK_H */
