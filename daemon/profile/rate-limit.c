/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The rate limit of replays.  Time that was not used is lost, but for a
 * tenth of a second, which makes up for late wake-ups.
 */
#include <config.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "daemon/profile/rate-limit.h"

#define KEPT_NS (100 * NS_PER_MS)

void
rate_limit_init (struct rate_limit *limit, uint64_t rate)
{
  pthread_mutex_init (&limit->lock, NULL);
  limit->rate = rate;
  limit->free_ns = 0;
}

void
rate_limit_done (struct rate_limit *limit)
{
  pthread_mutex_destroy (&limit->lock);
}

void
rate_limit_spend (struct rate_limit *limit, uint64_t bytes, uint64_t now)
{
  LOCKED (&limit->lock);
  const uint64_t oldest = now > KEPT_NS ? now - KEPT_NS : 0;

  if (limit->rate == 0)
    return;
  if (limit->free_ns < oldest)
    limit->free_ns = oldest;
  limit->free_ns +=
    (uint64_t) ((double) bytes * NS_PER_SEC / (double) limit->rate);
}

uint64_t
rate_limit_wait (struct rate_limit *limit, uint64_t now)
{
  LOCKED (&limit->lock);

  return limit->free_ns > now ? limit->free_ns - now : 0;
}
