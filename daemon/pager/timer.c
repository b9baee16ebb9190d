/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The fetcher's timer: a thread that does what no answer brings about.
 *
 * It ends what has reached its deadline, tries again what was delayed,
 * has keys closed, and notices blobs that hang.  A blob hangs when a read
 * of it has had no answer for two seconds: from then on it gets one
 * request at a time until it answers, and its requests are not counted
 * among its lane's, so that they keep nobody else from being sent.
 *
 * nbdkit gives a connection 16 workers, and a read that hangs holds one.  A
 * lane on which something hangs and nothing is answered is stalled: its
 * neighbour takes the work.  If that goes on for half of the driver's
 * timeout and every worker may be held, it connects anew, to new workers.
 */
#include <config.h>

#include <errno.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/pager/fetcher-internal.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define HANG_NS (2 * NS_PER_SEC)
#define TICK_NS (250 * NS_PER_MS)
#define CLOSE_RETRY_NS (20 * NS_PER_MS)

enum {
  NR_WORKERS = 16, /* Of an nbdkit connection. */
};

/* How a fetch that was waiting at its deadline has failed. */
static int
deadline_status (const struct fetch *fetch)
{
  if (fetch->nr_corrupt > 0)
    return -EBADMSG;
  return fetch->nr_malformed > 0 ? -EPROTO : -EIO;
}

static void
discount (struct attempt *attempt)
{
  if (attempt->is_discounted)
    return;
  attempt->is_discounted = true;
  attempt->lane->nr_attempts--;
  attempt->lane->nr_hung++;
  attempt->lane->bytes -= attempt->fetch->len;
  attempt->key->is_hung = true;
}

/* Returns how many have ended. */
static unsigned
expire (struct fetcher *fetcher, uint64_t now, struct outcome *outcome)
{
  struct fetch *fetch;
  struct blob_open *open;
  unsigned count = 0;

  while ((fetch = TAILQ_FIRST (&fetcher->under_way)) != NULL &&
         fetch->deadline_ns <= now) {
    if (fetch->attempt) {
      discount (fetch->attempt);
      fetch_abandon (fetcher, fetch, outcome);
    }
    else
      fetch_finish (fetcher, fetch, deadline_status (fetch), outcome);
    count++;
  }
  while ((open = TAILQ_FIRST (&fetcher->opens_under_way)) != NULL &&
         open->deadline_ns <= now) {
    open_finish (fetcher, open, -EIO, outcome);
    count++;
  }
  return count;
}

static void
notice_hanging (struct fetcher *fetcher, uint64_t now)
{
  struct fetch *fetch;

  TAILQ_FOREACH (fetch, &fetcher->under_way, age)
  {
    if (fetch->deadline_ns - fetcher->timeout_ns + HANG_NS > now)
      break;
    if (fetch->attempt && !fetch->attempt->is_discounted &&
        fetch->attempt->sent_ns + HANG_NS <= now) {
      discount (fetch->attempt);
      fetcher_kick (fetcher, fetch->class);
    }
  }
}

static void
notice_stalled (struct fetcher *fetcher, uint64_t now)
{
  for (int i = 0; i < NR_LANES; i++) {
    struct lane *lane = &fetcher->lanes[i];

    if (lane->nr_hung == 0 || lane->answered_ns + HANG_NS > now)
      continue;
    lane->is_stalled = true;
    if (lane->nr_hung >= NR_WORKERS && !lane->must_reconnect &&
        lane->answered_ns + fetcher->timeout_ns / 2 <= now) {
      lane->must_reconnect = true;
      lane_kick (lane);
    }
  }
}

static void
retry_delayed (struct fetcher *fetcher, uint64_t now)
{
  struct fetch *fetch;
  struct blob_open *open;

  while ((fetch = TAILQ_FIRST (&fetcher->delayed)) != NULL &&
         fetch->retry_ns <= now) {
    fetch_unlink (fetcher, fetch);
    fetch_requeue (fetcher, fetch);
  }
  while ((open = TAILQ_FIRST (&fetcher->delayed_opens)) != NULL &&
         open->retry_ns <= now) {
    open_unlink (fetcher, open);
    open_enqueue (fetcher, open);
    fetcher_kick (fetcher, open->class);
  }
}

/* Shutdown: fail what waits; what is on the wire comes back from there. */
static void
fail_waiting (struct fetcher *fetcher, struct outcome *outcome)
{
  struct fetch *fetch, *next;
  struct blob_open *open;

  for (fetch = TAILQ_FIRST (&fetcher->under_way); fetch; fetch = next) {
    next = TAILQ_NEXT (fetch, age);
    if (fetch->attempt == NULL)
      fetch_finish (fetcher, fetch, -ESHUTDOWN, outcome);
  }
  while ((open = TAILQ_FIRST (&fetcher->opens_under_way)) != NULL)
    open_finish (fetcher, open, -ESHUTDOWN, outcome);
}

/* Have CLOSE sent by replay's lanes if there are any, so that demand does
 * not wait for it.
 */
static void
start_closing (struct fetcher *fetcher)
{
  bool replay_is_attached = false;

  for (int i = 0; i < NR_LANES; i++)
    replay_is_attached |= fetcher->lanes[i].is_attached &&
                          fetcher->lanes[i].class == FETCH_REPLAY;
  fetcher_kick (fetcher, replay_is_attached ? FETCH_REPLAY : FETCH_DEMAND);
}

static uint64_t
earlier (uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

/* When there is something to do again; UINT64_MAX: when asked. */
static uint64_t
next_time (const struct fetcher *fetcher, uint64_t now)
{
  uint64_t next = UINT64_MAX;

  if (!TAILQ_EMPTY (&fetcher->under_way))
    next = earlier (now + TICK_NS,
                    TAILQ_FIRST (&fetcher->under_way)->deadline_ns);
  if (!TAILQ_EMPTY (&fetcher->opens_under_way))
    next = earlier (next,
                    TAILQ_FIRST (&fetcher->opens_under_way)->deadline_ns);
  if (!TAILQ_EMPTY (&fetcher->delayed))
    next = earlier (next, TAILQ_FIRST (&fetcher->delayed)->retry_ns);
  if (!TAILQ_EMPTY (&fetcher->delayed_opens))
    next = earlier (next, TAILQ_FIRST (&fetcher->delayed_opens)->retry_ns);
  if (fetcher->close_due_ns > now)
    next = earlier (next, fetcher->close_due_ns);
  else if (fetcher->close_due_ns != 0)
    next = earlier (next, now + CLOSE_RETRY_NS);
  return next;
}

/* Called with the lock held; waits. */
static void
wait_for_work (struct fetcher *fetcher)
{
  const uint64_t next = next_time (fetcher, now_ns ());
  const struct timespec until = {
    .tv_sec = (time_t) (next / NS_PER_SEC),
    .tv_nsec = (long) (next % NS_PER_SEC),
  };

  if (next == UINT64_MAX) {
    fetcher->timer_is_idle = true;
    while (fetcher->timer_is_idle)
      pthread_cond_wait (&fetcher->timer_wanted, &fetcher->lock);
  }
  else
    pthread_cond_timedwait (&fetcher->timer_wanted, &fetcher->lock, &until);
}

static bool
nothing_is_under_way (const struct fetcher *fetcher)
{
  return TAILQ_EMPTY (&fetcher->under_way) &&
         TAILQ_EMPTY (&fetcher->opens_under_way);
}

static bool
outcome_is_empty (const struct outcome *outcome)
{
  return TAILQ_EMPTY (&outcome->fetches) && TAILQ_EMPTY (&outcome->opens);
}

/* Do what is due, and wait if nothing has to be reported.  Returns false
 * when the timer is to end.
 */
static bool
timer_turn (struct fetcher *fetcher, struct outcome *outcome,
            unsigned *ret_nr_expired)
{
  const uint64_t now = now_ns ();
  LOCKED (&fetcher->lock);

  if (fetcher->timer_must_end && nothing_is_under_way (fetcher))
    return false;
  if (fetcher->is_stopping)
    fail_waiting (fetcher, outcome);
  *ret_nr_expired = expire (fetcher, now, outcome);
  notice_hanging (fetcher, now);
  notice_stalled (fetcher, now);
  retry_delayed (fetcher, now);
  if (fetcher->close_due_ns != 0 && fetcher->close_due_ns <= now)
    start_closing (fetcher);
  if (outcome_is_empty (outcome))
    wait_for_work (fetcher);
  return true;
}

void *
timer_main (void *opaque)
{
  struct fetcher *fetcher = opaque;
  struct outcome outcome;
  unsigned nr_expired;

  outcome_init (&outcome);
  while (timer_turn (fetcher, &outcome, &nr_expired)) {
    if (nr_expired > 0) {
      METRIC_ADD (driver_errors, nr_expired);
      log_error ("driver: %u reads not answered within %llu s", nr_expired,
                 (unsigned long long) (fetcher->timeout_ns / NS_PER_SEC));
    }
    outcome_report (fetcher, &outcome);
  }
  return NULL;
}
