/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* --replay-rate: bytes a second, of all replays together.
 *
 * Bytes are spent when they are asked for, and put the time at which more
 * may be asked for further on; so nothing is sent in bursts beyond one
 * request, and the sum over any few seconds is right.  The time is passed
 * in.
 *
 * Threads: any; the lock is held for a few instructions.
 */
#ifndef BP_RATE_LIMIT_H
#define BP_RATE_LIMIT_H

#include <pthread.h>
#include <stdint.h>

struct rate_limit {
  pthread_mutex_t lock;
  uint64_t rate;    /* Bytes a second; 0: no limit. */
  uint64_t free_ns; /* When more may be asked for; LOCK. */
};

void rate_limit_init (struct rate_limit *limit, uint64_t rate);
void rate_limit_done (struct rate_limit *limit);

/* BYTES are asked for at NOW_NS. */
void rate_limit_spend (struct rate_limit *limit, uint64_t bytes,
                       uint64_t now_ns);

/* Nanoseconds from NOW_NS until more may be asked for; 0: at once. */
uint64_t rate_limit_wait (struct rate_limit *limit, uint64_t now_ns);

#endif /* BP_RATE_LIMIT_H */
