/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Where a fetch or an open waits, and how it ends.
 *
 *   queue of its class   until a lane pulls it
 *   a lane's own queue   until that lane pulls it
 *   parked on a key      until an answer about the key has come
 *   delayed              until its back-off has passed
 *
 * Everything here is called with the fetcher's lock held, but for
 * outcome_report.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/pager/fetcher-internal.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

enum {
  FIRST_DELAY_MS = 10,
  MAX_DELAY_MS = 1000,
  CLOSE_DELAY_MS = 20, /* To gather a batch. */
};

/* ---- Lists ---- */

static void
put (struct fetch_list *list, struct fetch *fetch)
{
  assert (fetch->list == NULL && fetch->attempt == NULL);
  fetch->list = list;
  TAILQ_INSERT_TAIL (list, fetch, link);
}

void
fetch_unlink (struct fetcher *fetcher, struct fetch *fetch)
{
  struct key *key = fetch->key;

  if (fetch->list == NULL)
    return;
  TAILQ_REMOVE (fetch->list, fetch, link);
  fetch->list = NULL;
  fetch->key = NULL;
  if (key)
    key_unref (&fetcher->keys, key);
}

static void
put_open (struct open_list *list, struct blob_open *open)
{
  assert (open->list == NULL);
  open->list = list;
  TAILQ_INSERT_TAIL (list, open, link);
}

void
open_unlink (struct fetcher *fetcher, struct blob_open *open)
{
  struct key *key = open->key;

  if (open->list == NULL)
    return;
  TAILQ_REMOVE (open->list, open, link);
  open->list = NULL;
  open->key = NULL;
  if (key)
    key_unref (&fetcher->keys, key);
}

/* ---- Queues ---- */

void
fetch_enqueue (struct fetcher *fetcher, struct fetch *fetch)
{
  put (&fetcher->queue[fetch->class], fetch);
}

/* The attached lane of FETCH's class that did not fail it, or NULL. */
static struct lane *
other_lane (struct fetcher *fetcher, const struct fetch *fetch)
{
  struct lane *lane;

  if (fetch->avoid < 0)
    return NULL;
  for (int i = 0; i < NR_LANES; i++) {
    lane = &fetcher->lanes[i];
    if (lane->class == fetch->class && lane->index != fetch->avoid &&
        lane->is_attached && !lane->is_stalled)
      return lane;
  }
  return NULL;
}

void
fetch_requeue (struct fetcher *fetcher, struct fetch *fetch)
{
  struct lane *lane = other_lane (fetcher, fetch);

  if (lane) {
    put (&lane->own, fetch);
    lane_kick (lane);
    return;
  }
  assert (fetch->list == NULL && fetch->attempt == NULL);
  fetch->list = &fetcher->queue[fetch->class];
  TAILQ_INSERT_HEAD (fetch->list, fetch, link);
  fetcher_kick (fetcher, fetch->class);
}

void
open_enqueue (struct fetcher *fetcher, struct blob_open *open)
{
  put_open (&fetcher->opens[open->class], open);
}

static uint64_t
retry_time (unsigned nr_errors)
{
  const unsigned doublings = nr_errors < 7 ? nr_errors : 7;
  const uint64_t ms = (uint64_t) FIRST_DELAY_MS << doublings;

  return now_ns () + (ms < MAX_DELAY_MS ? ms : MAX_DELAY_MS) * NS_PER_MS;
}

/* Both lists are in order of time, and what is inserted is most often
 * last.
 */
void
fetch_delay (struct fetcher *fetcher, struct fetch *fetch)
{
  struct fetch *before;

  assert (fetch->list == NULL && fetch->attempt == NULL);
  fetch->retry_ns = retry_time (fetch->nr_errors++);
  fetch->list = &fetcher->delayed;
  TAILQ_FOREACH_REVERSE (before, &fetcher->delayed, fetch_list, link)
  if (before->retry_ns <= fetch->retry_ns)
    break;
  if (before)
    TAILQ_INSERT_AFTER (&fetcher->delayed, before, fetch, link);
  else
    TAILQ_INSERT_HEAD (&fetcher->delayed, fetch, link);
  fetcher_kick_timer (fetcher);
}

void
open_delay (struct fetcher *fetcher, struct blob_open *open)
{
  struct blob_open *before;

  assert (open->list == NULL);
  open->retry_ns = retry_time (open->nr_errors++);
  open->list = &fetcher->delayed_opens;
  TAILQ_FOREACH_REVERSE (before, &fetcher->delayed_opens, open_list, link)
  if (before->retry_ns <= open->retry_ns)
    break;
  if (before)
    TAILQ_INSERT_AFTER (&fetcher->delayed_opens, before, open, link);
  else
    TAILQ_INSERT_HEAD (&fetcher->delayed_opens, open, link);
  fetcher_kick_timer (fetcher);
}

/* ---- Parking ---- */

void
fetch_park (struct fetch *fetch, struct key *key)
{
  put (&key->parked, fetch);
  fetch->key = key;
  key_ref (key);
}

void
open_park (struct blob_open *open, struct key *key)
{
  put_open (&key->waiting, open);
  open->key = key;
  key_ref (key);
}

void
key_unpark (struct fetcher *fetcher, struct key *key, unsigned max)
{
  struct fetch_list first = TAILQ_HEAD_INITIALIZER (first);
  struct fetch *fetch;

  /* They go to the head of the queue: last one first. */
  while (max-- > 0 && (fetch = TAILQ_FIRST (&key->parked)) != NULL) {
    fetch_unlink (fetcher, fetch);
    TAILQ_INSERT_HEAD (&first, fetch, link);
  }
  while ((fetch = TAILQ_FIRST (&first)) != NULL) {
    TAILQ_REMOVE (&first, fetch, link);
    fetch_requeue (fetcher, fetch);
  }
}

/* ---- Endings ---- */

void
outcome_init (struct outcome *outcome)
{
  TAILQ_INIT (&outcome->fetches);
  TAILQ_INIT (&outcome->retired);
  TAILQ_INIT (&outcome->opens);
}

void
fetch_finish (struct fetcher *fetcher, struct fetch *fetch, int status,
              struct outcome *outcome)
{
  fetch_unlink (fetcher, fetch);
  TAILQ_REMOVE (&fetcher->under_way, fetch, age);
  user_unref (fetch->user);
  fetch->status = status;
  TAILQ_INSERT_TAIL (&outcome->fetches, fetch, link);
}

void
open_finish (struct fetcher *fetcher, struct blob_open *open, int status,
             struct outcome *outcome)
{
  open_unlink (fetcher, open);
  TAILQ_REMOVE (&fetcher->opens_under_way, open, age);
  user_unref (open->user);
  open->status = status;
  TAILQ_INSERT_TAIL (&outcome->opens, open, link);
}

void
fetch_abandon (struct fetcher *fetcher, struct fetch *fetch,
               struct outcome *outcome)
{
  assert (fetch->attempt && !fetch->is_abandoned);
  fetch->is_abandoned = true;
  fetch_finish (fetcher, fetch, -ETIMEDOUT, outcome);
}

void
fetch_retire (struct fetch *fetch, struct outcome *outcome)
{
  fetch->is_over = true;
  /* Otherwise whoever is calling done retires it. */
  if (fetch->done_returned)
    TAILQ_INSERT_TAIL (&outcome->retired, fetch, link);
}

/* DONE of an abandoned fetch was called: true if it can be retired. */
static bool
note_done_returned (struct fetcher *fetcher, struct fetch *fetch)
{
  LOCKED (&fetcher->lock);

  fetch->done_returned = true;
  return fetch->is_over;
}

static void
report_fetch (struct fetcher *fetcher, struct fetch *fetch)
{
  const bool is_abandoned = fetch->is_abandoned;
  char hex[BP_ROOT_HEX_SIZE];

  if (fetch->is_news)
    log_error ("blob '%s': window at offset %llu: digest mismatch",
               bp_root_format (&fetch->root, hex),
               (unsigned long long) fetch->offset);
  fetch->done (fetch, fetch->status);
  /* Only an abandoned fetch may be touched after that. */
  if (is_abandoned && note_done_returned (fetcher, fetch))
    fetch->retired (fetch);
}

void
outcome_report (struct fetcher *fetcher, struct outcome *outcome)
{
  struct fetch *fetch;
  struct blob_open *open;

  while ((fetch = TAILQ_FIRST (&outcome->fetches)) != NULL) {
    TAILQ_REMOVE (&outcome->fetches, fetch, link);
    report_fetch (fetcher, fetch);
  }
  while ((fetch = TAILQ_FIRST (&outcome->retired)) != NULL) {
    TAILQ_REMOVE (&outcome->retired, fetch, link);
    fetch->retired (fetch);
  }
  while ((open = TAILQ_FIRST (&outcome->opens)) != NULL) {
    TAILQ_REMOVE (&outcome->opens, open, link);
    open->done (open, open->status);
  }
}

/* ---- Failed opens ---- */

/* What a failed OPEN means for who needs the blob. */
enum open_verdict {
  OPEN_AGAIN,      /* The answer or the slot was lost. */
  OPEN_LATER,      /* It may pass. */
  OPEN_LATER_ONCE, /* It may pass, but most likely will not. */
  OPEN_FAILED,
};

static enum open_verdict
judge_open (int status)
{
  switch (-status) {
  case ENOTCONN:
  case EEXIST:
    return OPEN_AGAIN;
  case ENOENT:
    return OPEN_FAILED;
  case EBADMSG: /* A damaged pack table, say. */
  case EPROTO:
  case EINVAL:
  case ERANGE:
  case EOPNOTSUPP:
    return OPEN_LATER_ONCE;
  default:
    return OPEN_LATER;
  }
}

/* A store that is damaged where it says what it holds cannot be read:
 * that is no verdict on the bytes of the blob.
 */
static int
open_status (int status)
{
  return status == -EBADMSG ? -EIO : status;
}

void
fetch_open_failed (struct fetcher *fetcher, struct fetch *fetch, int status,
                   struct outcome *outcome)
{
  enum open_verdict verdict = judge_open (status);

  if (verdict == OPEN_LATER_ONCE)
    verdict = fetch->nr_malformed++ == 0 ? OPEN_LATER : OPEN_FAILED;
  if (verdict == OPEN_FAILED)
    fetch_finish (fetcher, fetch, open_status (status), outcome);
  else if (verdict == OPEN_LATER)
    fetch_delay (fetcher, fetch);
  else
    fetch_requeue (fetcher, fetch);
}

void
open_failed (struct fetcher *fetcher, struct blob_open *open, int status,
             struct outcome *outcome)
{
  enum open_verdict verdict = judge_open (status);

  if (verdict == OPEN_LATER_ONCE)
    verdict = open->nr_malformed++ == 0 ? OPEN_LATER : OPEN_FAILED;
  if (verdict == OPEN_FAILED)
    open_finish (fetcher, open, open_status (status), outcome);
  else if (verdict == OPEN_LATER)
    open_delay (fetcher, open);
  else {
    open_enqueue (fetcher, open);
    fetcher_kick (fetcher, open->class);
  }
}

/* ---- Waking ---- */

/* Whether LANE is a better one to wake than BEST (or NULL). */
static bool
is_better (const struct lane *lane, const struct lane *best)
{
  if (best == NULL || lane->is_stalled != best->is_stalled)
    return best == NULL || best->is_stalled;
  return lane->bytes < best->bytes;
}

void
fetcher_kick (struct fetcher *fetcher, enum fetch_class class)
{
  struct lane *lane, *best = NULL;

  for (int i = 0; i < NR_LANES; i++) {
    lane = &fetcher->lanes[i];
    if (lane->class == class && lane->is_attached &&
        is_better (lane, best))
      best = lane;
  }
  if (best)
    lane_kick (best);
}

void
fetcher_keys_freed (struct fetcher *fetcher)
{
  if (!fetcher->is_short_of_keys)
    return;
  fetcher->is_short_of_keys = false;
  fetcher_kick (fetcher, FETCH_DEMAND);
  fetcher_kick (fetcher, FETCH_REPLAY);
}

void
fetcher_kick_timer (struct fetcher *fetcher)
{
  fetcher->timer_is_idle = false;
  pthread_cond_signal (&fetcher->timer_wanted);
}

void
fetcher_check_closing (struct fetcher *fetcher)
{
  const struct keys *keys = &fetcher->keys;
  const bool is_urgent = keys->nr_taken > keys->limit - keys->limit / 16;
  uint64_t due;

  if (!keys_has_closing (keys) && STAILQ_EMPTY (&fetcher->lost_closes))
    return;
  due = now_ns () + (is_urgent ? 0 : CLOSE_DELAY_MS * NS_PER_MS);
  if (fetcher->close_due_ns != 0 && fetcher->close_due_ns <= due)
    return;
  fetcher->close_due_ns = due;
  fetcher_kick_timer (fetcher);
}
