/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a lane pulls from the queues.
 *
 * One pull gathers, under the fetcher's lock, what may be sent now: fetches
 * whose blob is open, and blobs to open with the reads that ride behind.
 * Then, without the lock, it is sent back to back, OPEN first.  What may
 * not be sent by this lane is left to the one that may, or parked.
 */
#include <config.h>

#include <errno.h>

#include "daemon/pager/fetcher-internal.h"
#include "lib/base/cleanup.h"

enum {
  HEAD_START = 1 << 20
}; /* Bytes ahead of the neighbour. */

/* How much a lane may have under way, by class. */
static const struct {
  unsigned attempts;
  uint64_t bytes;
} shares[] = {
  [FETCH_DEMAND] = { 64, 8 << 20 },
  [FETCH_REPLAY] = { 128, 16 << 20 },
};

/* What one pull has gathered. */
struct pull {
  struct lane *lane;
  struct open_batch *batch;     /* Blobs to open. */
  struct attempt_list attempts; /* To send behind it. */
  unsigned nr_requests;         /* Control requests that these take. */
  struct outcome outcome;       /* What needs nothing sent. */
};

/* Room for NR more requests, with one kept back for a CLOSE. */
static bool
has_room_for_requests (const struct pull *pull, unsigned nr)
{
  const struct lane *lane = pull->lane;

  return lane->nr_unanswered + pull->nr_requests + nr + 1 <=
         lane->session.max_unanswered;
}

/* ---- Choosing: with the fetcher's lock held ---- */

static bool
has_share_left (const struct lane *lane)
{
  return lane->nr_attempts < shares[lane->class].attempts &&
         lane->bytes < shares[lane->class].bytes;
}

static struct lane *
neighbour_of (const struct lane *lane)
{
  return &lane->fetcher->lanes[lane->index ^ 1];
}

/* Whether LANE may take from the queue that it shares. */
static bool
may_take_shared (const struct lane *lane)
{
  const struct lane *neighbour = neighbour_of (lane);

  if (!neighbour->is_attached || neighbour->is_stalled)
    return true;
  return !lane->is_stalled && lane->bytes <= neighbour->bytes + HEAD_START;
}

static struct fetch *
next_fetch (struct lane *lane)
{
  if (!has_share_left (lane))
    return NULL;
  if (!TAILQ_EMPTY (&lane->own))
    return TAILQ_FIRST (&lane->own);
  if (!may_take_shared (lane))
    return NULL;
  return TAILQ_FIRST (&lane->fetcher->queue[lane->class]);
}

/* Add ROOT to the batch of blobs to open, which has room.  NULL: out of
 * memory.
 */
static struct key *
open_blob (struct pull *pull, const struct bp_root *root, bool will_read)
{
  struct lane *lane = pull->lane;
  struct key *key;

  if (pull->batch == NULL)
    pull->batch = open_batch_new (lane);
  if (pull->batch == NULL)
    return NULL;
  key = keys_allocate (&lane->fetcher->keys, root, lane);
  if (key)
    open_batch_add (pull->batch, key, will_read);
  return key;
}

/* KEY is being opened by another lane: only that one may send a read
 * behind its OPEN.  Demand never queues behind replay's data, and a lane
 * that has lost its connection sends no more: then it waits for the answer
 * instead.
 */
static void
leave_to_opener (struct fetch *fetch, struct key *key)
{
  struct lane *opener = key->opener;

  if (opener->class != fetch->class || !opener->is_attached) {
    fetch_park (fetch, key);
    return;
  }
  fetch->list = &opener->own;
  TAILQ_INSERT_TAIL (&opener->own, fetch, link);
  lane_kick (opener);
}

/* Another read of the blob would be one too many just now. */
static bool
has_enough_sent (const struct key *key, const struct fetch *fetch)
{
  if (key->is_hung)
    return key->nr_sent > 0;
  return fetch->blob_size > BP_WINDOW_SIZE &&
         key->nr_sent >= MAX_SENT_PER_BLOB;
}

/* Send a read of KEY, if it can be now. */
static void
take_with_key (struct pull *pull, struct fetch *fetch, struct key *key)
{
  struct lane *lane = pull->lane;
  struct attempt *attempt;

  key_claim (key, fetch->user);
  keys_touch (&lane->fetcher->keys, key);
  if (key->state == KEY_OPENING && key->opener != lane) {
    leave_to_opener (fetch, key);
    return;
  }
  if (has_enough_sent (key, fetch)) {
    fetch_park (fetch, key);
    return;
  }
  attempt = attempt_new (lane, fetch, key);
  if (attempt == NULL) {
    fetch_delay (lane->fetcher, fetch);
    return;
  }
  pull->nr_requests += attempt_nr_requests (fetch);
  TAILQ_INSERT_TAIL (&pull->attempts, attempt, link);
}

/* Whether another blob can be opened now. */
static bool
has_room_for_open (struct pull *pull)
{
  struct fetcher *fetcher = pull->lane->fetcher;
  const bool has_room = keys_make_room (&fetcher->keys);

  fetcher_check_closing (fetcher);
  if (!has_room)
    fetcher->is_short_of_keys = true;
  return has_room &&
         (pull->batch == NULL || open_batch_has_room (pull->batch));
}

/* Take FETCH from the queue.  Returns false if nothing more can be sent
 * for now.
 */
static bool
take (struct pull *pull, struct fetch *fetch)
{
  struct fetcher *fetcher = pull->lane->fetcher;
  struct key *key = keys_find (&fetcher->keys, &fetch->root);

  /* Beside its own requests: that of the batch, unless counted. */
  if (!has_room_for_requests (pull, attempt_nr_requests (fetch) + 1))
    return false;
  if (key == NULL && !has_room_for_open (pull))
    return false;
  fetch_unlink (fetcher, fetch);
  if (key == NULL)
    key = open_blob (pull, &fetch->root, fetch->class == FETCH_REPLAY);
  if (key == NULL)
    fetch_delay (fetcher, fetch);
  else
    take_with_key (pull, fetch, key);
  return true;
}

static bool
take_open (struct pull *pull, struct blob_open *open)
{
  struct fetcher *fetcher = pull->lane->fetcher;
  struct key *key = keys_find (&fetcher->keys, &open->root);

  if (!has_room_for_requests (pull, 1))
    return false;
  if (key == NULL && !has_room_for_open (pull))
    return false;
  open_unlink (fetcher, open);
  if (key == NULL)
    key = open_blob (pull, &open->root, true);
  if (key == NULL) {
    open_delay (fetcher, open);
    return true;
  }
  key_claim (key, open->user);
  keys_touch (&fetcher->keys, key);
  if (key->state == KEY_OPEN) {
    open->size = key->size;
    open_finish (fetcher, open, 0, &pull->outcome);
  }
  else
    open_park (open, key);
  return true;
}

static void
gather (struct pull *pull)
{
  struct lane *lane = pull->lane;
  struct fetcher *fetcher = lane->fetcher;
  struct blob_open *open;
  struct fetch *fetch;
  LOCKED (&fetcher->lock);

  if (fetcher->is_stopping)
    return;
  while ((open = TAILQ_FIRST (&fetcher->opens[lane->class])) != NULL)
    if (!take_open (pull, open))
      break;
  while ((fetch = next_fetch (lane)) != NULL)
    if (!take (pull, fetch))
      break;
  /* What is left may be for the neighbour. */
  if (!TAILQ_EMPTY (&fetcher->queue[lane->class]) &&
      neighbour_of (lane)->is_attached && !neighbour_of (lane)->is_stalled &&
      (lane->is_stalled || neighbour_of (lane)->bytes < lane->bytes))
    lane_kick (neighbour_of (lane));
}

/* ---- Sending ---- */

void
lane_pull (struct lane *lane)
{
  struct pull pull = { .lane = lane };
  struct attempt *attempt;

  TAILQ_INIT (&pull.attempts);
  outcome_init (&pull.outcome);
  gather (&pull);
  if (pull.batch)
    open_batch_send (pull.batch);
  while ((attempt = TAILQ_FIRST (&pull.attempts)) != NULL) {
    TAILQ_REMOVE (&pull.attempts, attempt, link);
    attempt_send (attempt);
  }
  outcome_report (lane->fetcher, &pull.outcome);
}
