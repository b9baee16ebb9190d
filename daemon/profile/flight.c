/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The growth of a replay's unanswered bytes. */
#include <config.h>

#include <assert.h>
#include <string.h>

#include "daemon/profile/flight.h"

void
flight_init (struct flight *flight, uint64_t now_ns)
{
  memset (flight, 0, sizeof *flight);
  flight->limit = FLIGHT_MIN;
  flight->round_ns = now_ns;
}

bool
flight_has_room (struct flight *flight, uint64_t len)
{
  if (flight->unanswered == 0 || flight->unanswered + len <= flight->limit)
    return true;
  flight->was_full = true;
  return false;
}

void
flight_sent (struct flight *flight, uint64_t len)
{
  flight->unanswered += len;
}

void
flight_answered (struct flight *flight, uint64_t len, uint64_t now_ns)
{
  double rate;

  assert (flight->unanswered >= len);
  flight->unanswered -= len;
  flight->round_bytes += len;
  if (flight->round_bytes < flight->limit)
    return;

  rate = (double) flight->round_bytes /
         (double) (now_ns > flight->round_ns ? now_ns - flight->round_ns : 1);
  if (flight->was_full && rate > flight->best * 9 / 8) {
    flight->best = rate;
    if (flight->limit < FLIGHT_MAX)
      flight->limit *= 2;
  }
  flight->round_ns = now_ns;
  flight->round_bytes = 0;
  flight->was_full = false;
}
