/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The thread of a lane, and what it pulls from the queues.
 *
 * One turn: pull, under the fetcher's lock, what may be sent now; send it
 * all back to back, OPEN before the reads that need it; wait; and settle
 * what was answered.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/pager/fetcher-internal.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/session-proto.h"

enum {
  FIRST_PAUSE_MS = 10, /* Between tries to connect. */
  MAX_PAUSE_MS = 1000,
  CONNECT_TIMEOUT_S = 10,
  RECONNECT_TIMEOUT_S = 2,
  HEAD_START = 1 << 20, /* Bytes a lane may be ahead of its neighbour. */
};

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

/* ---- Requests ---- */

void
lane_request (struct lane *lane, struct command *write, struct command *read,
              const uint8_t *bytes, size_t len, uint8_t *reply,
              size_t reply_len)
{
  const uint64_t n = wire_request (lane->wire, write, bytes, len);

  lane->nr_unanswered++;
  wire_read (lane->wire, read, reply, reply_len, bp_control_offset (n));
}

void
lane_request_answered (struct lane *lane)
{
  assert (lane->nr_unanswered > 0);
  lane->nr_unanswered--;
}

/* Room for NR more requests, with one kept back for a CLOSE. */
static bool
has_room_for_requests (const struct pull *pull, unsigned nr)
{
  const struct lane *lane = pull->lane;

  return lane->nr_unanswered + pull->nr_requests + nr + 1 <=
         lane->session.max_unanswered;
}

/* ---- Pulling: with the fetcher's lock held ---- */

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
  if (key->state == KEY_OPEN && key->size != fetch->blob_size) {
    METRIC_ADD (driver_errors, 1);
    fetch_finish (lane->fetcher, fetch, -EPROTO, &pull->outcome);
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

/* ---- The thread ---- */

static void
pull_and_send (struct lane *lane)
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

static void
attach (struct lane *lane)
{
  LOCKED (&lane->fetcher->lock);

  lane->is_attached = true;
  lane->is_stalled = false;
  lane->must_reconnect = false;
  lane->answered_ns = now_ns ();
}

/* Nothing is given to the lane any more; what it had not sent goes back. */
static void
detach (struct lane *lane)
{
  struct fetcher *fetcher = lane->fetcher;
  struct fetch *fetch;
  LOCKED (&fetcher->lock);

  lane->is_attached = false;
  while ((fetch = TAILQ_LAST (&lane->own, fetch_list)) != NULL) {
    fetch_unlink (fetcher, fetch);
    fetch_requeue (fetcher, fetch);
  }
  fetcher_kick (fetcher, lane->class);
}

static bool
connect_is_cancelled (void *opaque)
{
  struct lane *lane = opaque;

  return !session_is_current (lane->gate, lane->session.epoch);
}

/* Returns 0, or why there is no connection. */
static int
connect_lane (struct lane *lane, struct wire **ret_wire, unsigned timeout_s)
{
  const struct wire_wait wait = {
    .event_fd = lane->event_fd,
    .is_cancelled = connect_is_cancelled,
    .opaque = lane,
    .deadline_ns = now_ns () + timeout_s * NS_PER_SEC,
  };
  struct bp_error err;
  int r;

  r = wire_open (ret_wire, lane->target, lane->session.export, &wait, &err);
  if (r == -ENOENT)
    session_doubt (lane->gate, lane->session.epoch);
  if (r < 0)
    log_debug ("driver: lane %d: %s", lane->index, err.msg);
  return r;
}

/* Whether to connect anew; asked once. */
static bool
must_reconnect (struct lane *lane)
{
  LOCKED (&lane->fetcher->lock);
  const bool must = lane->must_reconnect;

  lane->must_reconnect = false;
  if (must)
    lane->answered_ns = now_ns ();
  return must;
}

/* Every worker at the other end may be held by a read that hangs: get new
 * ones.  A driver that does not let us in is frozen, and will go on where
 * it was: then the old connection stays.
 */
static void
reconnect (struct lane *lane)
{
  struct wire *wire;

  if (connect_lane (lane, &wire, RECONNECT_TIMEOUT_S) < 0)
    return;
  log_warn ("driver: lane %d: reads hang, going on with a new connection",
            lane->index);
  wire_close (lane->wire);
  lane->wire = wire;
  lane_settle_ready (lane);
}

/* Whether there is something to settle, without another answer.  An
 * attempt is ready at once if it has nothing to read, or no memory.
 */
static bool
has_answers (const struct lane *lane)
{
  return !TAILQ_EMPTY (&lane->wire->completed) || !TAILQ_EMPTY (&lane->ready);
}

/* Serve until the connection or the session has ended. */
static void
work (struct lane *lane)
{
  int r = 0;

  attach (lane);
  while (r == 0 && session_is_current (lane->gate, lane->session.epoch)) {
    if (must_reconnect (lane))
      reconnect (lane);
    pull_and_send (lane);
    lane_send_closes (lane);
    r = wire_poll (lane->wire, lane->event_fd,
                   has_answers (lane) ? 0 : -1);
    wire_dispatch (lane->wire);
    lane_settle_ready (lane);
  }
  detach (lane);
  wire_close (steal_ptr (&lane->wire));
  lane_settle_ready (lane);
  assert (lane->nr_unanswered == 0);
}

static void *
lane_main (void *opaque)
{
  struct lane *lane = opaque;
  unsigned pause_ms = FIRST_PAUSE_MS;

  while (session_wait (lane->gate, &lane->session)) {
    if (connect_lane (lane, &lane->wire, CONNECT_TIMEOUT_S) == 0) {
      pause_ms = FIRST_PAUSE_MS;
      if (session_enter (lane->gate, lane->session.epoch)) {
        work (lane);
        session_leave (lane->gate);
      }
      wire_close (steal_ptr (&lane->wire));
      continue;
    }
    session_pause (lane->gate, lane->session.epoch, pause_ms);
    pause_ms = pause_ms * 2 < MAX_PAUSE_MS ? pause_ms * 2 : MAX_PAUSE_MS;
  }
  return NULL;
}

int
lane_start (struct lane *lane)
{
  int r;

  TAILQ_INIT (&lane->own);
  TAILQ_INIT (&lane->ready);
  lane->event_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (lane->event_fd == -1)
    return -errno;
  r = pthread_create (&lane->thread, NULL, lane_main, lane);
  if (r != 0)
    close (steal_fd (&lane->event_fd));
  return -r;
}

void
lane_join (struct lane *lane)
{
  pthread_join (lane->thread, NULL);
  close (lane->event_fd);
}

void
lane_kick (struct lane *lane)
{
  event_fd_signal (lane->event_fd);
}
