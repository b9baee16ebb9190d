/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* How many bytes a replay leaves unanswered, on links made of numbers. */
#include <config.h>

#include <stdint.h>

#include <criterion/criterion.h>

#include "lib/base/clock.h"
#include "daemon/profile/flight.h"

enum {
  WINDOW = 128 << 10
};

/* ROUNDS times: ask for as much as is allowed, and get it all answered
 * after RTT_NS and the time it takes at RATE bytes a second.
 */
static void
run (struct flight *flight, unsigned rounds, uint64_t rtt_ns, double rate)
{
  uint64_t now = NS_PER_SEC;

  flight_init (flight, now);
  while (rounds-- > 0) {
    unsigned sent = 0;

    while (flight_has_room (flight, WINDOW)) {
      flight_sent (flight, WINDOW);
      sent++;
    }
    now += rtt_ns;
    while (sent-- > 0) {
      now += (uint64_t) (WINDOW / rate * NS_PER_SEC);
      flight_answered (flight, WINDOW, now);
    }
  }
}

Test (flight, starts_at_two_mebibytes)
{
  struct flight flight;
  unsigned sent = 0;

  flight_init (&flight, 0);
  while (flight_has_room (&flight, WINDOW)) {
    flight_sent (&flight, WINDOW);
    sent++;
  }
  cr_assert_eq (sent, (2 << 20) / WINDOW);
}

Test (flight, grows_to_the_most_on_a_long_fat_link)
{
  struct flight flight;

  run (&flight, 20, 100 * NS_PER_MS, 10e9);
  cr_assert_eq (flight.limit, 32 << 20);
}

Test (flight, stays_small_where_more_is_not_faster)
{
  struct flight flight;

  run (&flight, 20, 0, 50e6);
  cr_assert_leq (flight.limit, 4 << 20);
}

Test (flight, does_not_grow_when_something_else_held_it_back)
{
  struct flight flight;
  uint64_t now = NS_PER_SEC;

  flight_init (&flight, now);
  for (unsigned i = 0; i < 1000; i++) {
    flight_sent (&flight, WINDOW);
    flight_answered (&flight, WINDOW, now += 1000);
  }
  cr_assert_eq (flight.limit, 2 << 20);
}

Test (flight, always_lets_one_request_go)
{
  struct flight flight;

  flight_init (&flight, 0);
  cr_assert (flight_has_room (&flight, 64 << 20));
  flight_sent (&flight, 64 << 20);
  cr_assert_not (flight_has_room (&flight, 1));
}
