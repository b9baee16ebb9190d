/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* How many bytes a replay leaves unanswered: 2 MiB, doubled up to 32 MiB
 * for as long as that makes it faster.
 *
 * A round is the time in which as many bytes arrive as may be unanswered.
 * A round counts only if the limit was what held the replay back.  Each
 * round that was an eighth faster than the fastest before doubles the
 * limit.  The time is passed in.
 *
 * Threads: the replay's lock.
 */
#ifndef BP_FLIGHT_H
#define BP_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

enum {
  FLIGHT_MIN = 2 << 20,  /* Bytes. */
  FLIGHT_MAX = 32 << 20, /* Bytes. */
};

struct flight {
  uint64_t limit;       /* Bytes that may be unanswered. */
  uint64_t unanswered;  /* Bytes that are. */
  uint64_t round_ns;    /* When the round began. */
  uint64_t round_bytes; /* Answered since. */
  double best;          /* Bytes a nanosecond of the fastest round. */
  bool was_full;        /* The limit has held us back in this round. */
};

void flight_init (struct flight *flight, uint64_t now_ns);

/* May LEN more bytes be asked for?  One request always may. */
bool flight_has_room (struct flight *flight, uint64_t len);

void flight_sent (struct flight *flight, uint64_t len);
void flight_answered (struct flight *flight, uint64_t len, uint64_t now_ns);

#endif /* BP_FLIGHT_H */
