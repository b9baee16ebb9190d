/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The rate limit of replays, with a clock of the test's own. */
#include <config.h>

#include <stdint.h>

#include <criterion/criterion.h>

#include "lib/base/clock.h"
#include "daemon/profile/rate-limit.h"

#define START (1000 * NS_PER_SEC)

/* Ask for requests of LEN bytes from NOW on for SECONDS, waking LATE_NS
 * after each wait; the bytes asked for.
 */
static uint64_t
run (struct rate_limit *limit, uint64_t now, unsigned seconds, uint64_t len,
     uint64_t late_ns)
{
  const uint64_t end = now + seconds * NS_PER_SEC;
  uint64_t bytes = 0;

  while (now < end) {
    const uint64_t wait = rate_limit_wait (limit, now);

    if (wait > 0) {
      now += wait + late_ns;
      continue;
    }
    rate_limit_spend (limit, len, now);
    bytes += len;
  }
  return bytes;
}

static void
assert_near (uint64_t got, uint64_t wanted)
{
  cr_assert (got >= wanted - wanted / 20 && got <= wanted + wanted / 20,
             "%llu bytes, wanted %llu", (unsigned long long) got,
             (unsigned long long) wanted);
}

Test (rate_limit, is_kept_over_five_seconds)
{
  struct rate_limit limit;

  rate_limit_init (&limit, 4 << 20);
  assert_near (run (&limit, START, 5, 128 << 10, 0), 20 << 20);
  rate_limit_done (&limit);
}

Test (rate_limit, is_kept_by_a_thread_that_wakes_late)
{
  struct rate_limit limit;

  rate_limit_init (&limit, 4 << 20);
  assert_near (run (&limit, START, 5, 16 << 10, 3 * NS_PER_MS), 20 << 20);
  rate_limit_done (&limit);
}

Test (rate_limit, forgets_an_idle_hour)
{
  struct rate_limit limit;

  rate_limit_init (&limit, 1 << 20);
  rate_limit_spend (&limit, 1 << 20, START);
  assert_near (run (&limit, START + 3600 * NS_PER_SEC, 5, 64 << 10, 0),
               5 << 20);
  rate_limit_done (&limit);
}

Test (rate_limit, is_shared_by_those_who_spend)
{
  struct rate_limit limit;

  rate_limit_init (&limit, 1 << 20);
  rate_limit_spend (&limit, 1 << 20, START);
  rate_limit_spend (&limit, 1 << 20, START);
  cr_assert_geq (rate_limit_wait (&limit, START),
                 2 * NS_PER_SEC - 200 * NS_PER_MS);
  rate_limit_done (&limit);
}

Test (rate_limit, of_zero_is_none)
{
  struct rate_limit limit;

  rate_limit_init (&limit, 0);
  rate_limit_spend (&limit, UINT64_MAX, START);
  cr_assert_eq (rate_limit_wait (&limit, START), 0);
  rate_limit_done (&limit);
}
