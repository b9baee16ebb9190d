/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* OPEN and CLOSE, in batches.
 *
 * An OPEN is sent by the lane whose reads follow it.  Whatever waits for
 * the answer (attempts that ride behind it, fetches of other lanes, opens)
 * hangs on the keys of the batch.  If the answer is lost with the
 * connection, nobody knows whether the slots are taken: the keys die, so
 * that CLOSE is sent for them, and who needs the blobs takes new ones.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/pager/fetcher-internal.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/session-proto.h"

/* ---- OPEN ---- */

struct open_batch {
  struct lane *lane;
  uint32_t count;
  uint32_t room; /* Elements allocated. */
  struct bp_open_item *items;
  struct key **keys; /* A reference to each. */
  struct command write, read;
  uint8_t *request;
  uint8_t *reply;
  unsigned waiting; /* Answers still to come. */
  int error;        /* The first, or 0. */
};

static void
open_batch_free (struct open_batch *batch)
{
  free (batch->items);
  free (batch->keys);
  free (batch->request);
  free (batch->reply);
  free (batch);
}

/* Returns false if there is no memory. */
static bool
grow (struct open_batch *batch, uint32_t room)
{
  struct bp_open_item *items;
  struct key **keys;

  items = realloc (batch->items, room * sizeof *items);
  if (items == NULL)
    return false;
  batch->items = items;
  keys = realloc (batch->keys, room * sizeof *keys);
  if (keys == NULL)
    return false;
  batch->keys = keys;
  batch->room = room;
  return true;
}

struct open_batch *
open_batch_new (struct lane *lane)
{
  struct open_batch *batch = calloc (1, sizeof *batch);
  const uint32_t max = lane->session.max_batch;

  if (batch == NULL)
    return NULL;
  batch->lane = lane;
  if (!grow (batch, max < 64 ? max : 64)) {
    open_batch_free (batch);
    return NULL;
  }
  return batch;
}

bool
open_batch_has_room (struct open_batch *batch)
{
  const uint32_t max = batch->lane->session.max_batch;

  if (batch->count < batch->room)
    return true;
  return batch->count < max &&
         grow (batch, batch->room < max / 2 ? batch->room * 2 : max);
}

void
open_batch_add (struct open_batch *batch, struct key *key, bool will_read)
{
  key_ref (key);
  batch->keys[batch->count] = key;
  batch->items[batch->count] = (struct bp_open_item){
    .key = key->number,
    .root = key->root,
    .flags = will_read ? BP_OPEN_WILL_READ : 0,
  };
  batch->count++;
}

/* The blob is open. */
static void
key_opened (struct fetcher *fetcher, struct key *key, uint64_t size,
            struct outcome *outcome)
{
  struct blob_open *open;

  METRIC_ADD (driver_opens, 1);
  key->state = KEY_OPEN;
  key->opener = NULL;
  key->size = size;
  while ((open = TAILQ_FIRST (&key->waiting)) != NULL) {
    open->size = size;
    open_finish (fetcher, open, 0, outcome);
  }
  key_unpark (fetcher, key, MAX_SENT_PER_BLOB);
}

/* It is not, or nobody knows. */
static void
key_failed (struct fetcher *fetcher, struct key *key, int status,
            struct outcome *outcome)
{
  struct blob_open *open;
  struct fetch *fetch;

  if (status == -ENOENT)
    METRIC_ADD (driver_missing, 1);
  else if (status != -ENOTCONN)
    METRIC_ADD (driver_errors, 1);
  keys_kill (&fetcher->keys, key);
  while ((open = TAILQ_FIRST (&key->waiting)) != NULL) {
    open_unlink (fetcher, open);
    open_failed (fetcher, open, status, outcome);
  }
  while ((fetch = TAILQ_FIRST (&key->parked)) != NULL) {
    fetch_unlink (fetcher, fetch);
    fetch_open_failed (fetcher, fetch, status, outcome);
  }
}

/* What became of element I. */
static int
result_of (const struct open_batch *batch, uint32_t i, uint64_t *ret_size)
{
  struct bp_open_result result;
  int r;

  if (batch->error < 0)
    return batch->error;
  r = bp_open_result_decode (batch->reply + BP_REPLY_HEADER_SIZE +
                               i * (size_t) BP_OPEN_RESULT_SIZE,
                             &result);
  if (r < 0)
    return r;
  *ret_size = result.size;
  return result.status;
}

/* The answers to its attempts' OPEN. */
static void
answer_riders (struct key *key, int status)
{
  struct attempt *attempt;

  while ((attempt = TAILQ_FIRST (&key->riders)) != NULL) {
    TAILQ_REMOVE (&key->riders, attempt, ride);
    attempt_open_answered (attempt, status);
  }
}

static void
settle_keys (struct open_batch *batch, struct outcome *outcome)
{
  struct fetcher *fetcher = batch->lane->fetcher;
  uint64_t size = 0;
  int status;
  LOCKED (&fetcher->lock);

  for (uint32_t i = 0; i < batch->count; i++) {
    struct key *key = batch->keys[i];

    status = result_of (batch, i, &size);
    if (status == 0)
      key_opened (fetcher, key, size, outcome);
    else
      key_failed (fetcher, key, status, outcome);
    answer_riders (key, status);
    key_unref (&fetcher->keys, key);
  }
  fetcher_check_closing (fetcher);
}

static void
note_open_answer (struct open_batch *batch, int error)
{
  struct fetcher *fetcher = batch->lane->fetcher;
  struct outcome outcome;

  if (batch->error == 0)
    batch->error = error;
  if (--batch->waiting > 0)
    return;
  outcome_init (&outcome);
  settle_keys (batch, &outcome);
  open_batch_free (batch);
  outcome_report (fetcher, &outcome);
}

static void
open_written (struct command *command, int error)
{
  note_open_answer (command->owner, error);
}

/* What the reply says of the whole batch. */
static int
check_open_reply (const struct open_batch *batch)
{
  int status, r;
  size_t len;

  r = bp_reply_header_decode (batch->reply, &status, &len);
  if (r < 0 || status < 0)
    return r < 0 ? r : status;
  return len == batch->count * (size_t) BP_OPEN_RESULT_SIZE ? 0 : -EPROTO;
}

static void
open_answered (struct command *command, int error)
{
  struct open_batch *batch = command->owner;

  lane_request_answered (batch->lane);
  note_open_answer (batch, error < 0 ? error : check_open_reply (batch));
}

static void
tell_observer (const struct open_batch *batch)
{
  struct observing *observing = &batch->lane->fetcher->observing;

  for (uint32_t i = 0; i < batch->count; i++)
    observing_key_opened (observing, batch->items[i].key,
                          &batch->items[i].root);
}

void
open_batch_send (struct open_batch *batch)
{
  const struct bp_request request = { .op = BP_OP_OPEN,
                                      .count = batch->count };
  const size_t reply_len = BP_REPLY_HEADER_SIZE +
                           batch->count * (size_t) BP_OPEN_RESULT_SIZE;
  size_t len;
  int r;

  if (batch->count == 0) {
    open_batch_free (batch);
    return;
  }
  tell_observer (batch);
  batch->write = (struct command){ .answered = open_written,
                                   .owner = batch };
  batch->read = (struct command){ .answered = open_answered,
                                  .owner = batch };
  batch->waiting = 2;
  batch->reply = malloc (reply_len);
  r = batch->reply ? bp_request_encode (&request, batch->items, NULL,
                                        &batch->request, &len)
                   : -ENOMEM;
  if (r < 0) {
    /* The reads behind it are about to be sent: they will fail. */
    batch->waiting = 1;
    note_open_answer (batch, r);
    return;
  }
  lane_request (batch->lane, &batch->write, &batch->read, batch->request,
                len, batch->reply, reply_len);
}

/* ---- CLOSE ---- */

struct close_batch {
  struct lane *lane;
  STAILQ_ENTRY (close_batch) link; /* In lost_closes. */
  size_t count;
  struct command write, read;
  uint8_t *request;
  uint8_t reply[BP_REPLY_HEADER_SIZE];
  unsigned waiting;
  int error;
  uint64_t numbers[]; /* Of the keys. */
};

static void
close_batch_free (struct close_batch *batch)
{
  free (batch->request);
  free (batch);
}

/* The answer was lost: an unknown key is no error, so it is sent again. */
static void
note_close_answer (struct close_batch *batch, int error)
{
  struct fetcher *fetcher = batch->lane->fetcher;
  LOCKED (&fetcher->lock);

  if (batch->error == 0)
    batch->error = error;
  if (--batch->waiting > 0)
    return;
  if (batch->error == -ENOTCONN) {
    STAILQ_INSERT_TAIL (&fetcher->lost_closes, batch, link);
    fetcher_check_closing (fetcher);
    return;
  }
  /* Should the driver have kept a slot, it will say -EEXIST for the next
   * key that takes it.
   */
  if (batch->error < 0)
    METRIC_ADD (driver_errors, 1);
  keys_closed (&fetcher->keys, batch->numbers, batch->count);
  fetcher_keys_freed (fetcher);
  close_batch_free (batch);
}

static void
close_written (struct command *command, int error)
{
  note_close_answer (command->owner, error);
}

static void
close_answered (struct command *command, int error)
{
  struct close_batch *batch = command->owner;
  int status = 0;
  size_t len;

  lane_request_answered (batch->lane);
  if (error == 0)
    error = bp_reply_header_decode (batch->reply, &status, &len);
  note_close_answer (batch, error < 0 ? error : status);
}

/* A batch of what is to be closed, or NULL.  With the lock held. */
static struct close_batch *
gather_closes (struct lane *lane)
{
  struct fetcher *fetcher = lane->fetcher;
  const size_t max = lane->session.max_batch;
  struct close_batch *batch;

  batch = STAILQ_FIRST (&fetcher->lost_closes);
  if (batch) {
    STAILQ_REMOVE_HEAD (&fetcher->lost_closes, link);
    free (batch->request);
    batch->request = NULL;
    return batch;
  }
  if (!keys_has_closing (&fetcher->keys))
    return NULL;
  batch = calloc (1, sizeof *batch + max * sizeof batch->numbers[0]);
  if (batch)
    batch->count = keys_take_closing (&fetcher->keys, batch->numbers, max);
  return batch;
}

/* What is due now, or NULL. */
static struct close_batch *
take_closes (struct lane *lane)
{
  struct fetcher *fetcher = lane->fetcher;
  struct close_batch *batch;
  LOCKED (&fetcher->lock);

  if (fetcher->is_stopping || fetcher->close_due_ns == 0 ||
      fetcher->close_due_ns > now_ns () ||
      lane->nr_unanswered >= lane->session.max_unanswered)
    return NULL;
  batch = gather_closes (lane);
  fetcher->close_due_ns = 0;
  fetcher_check_closing (fetcher);
  return batch;
}

void
lane_send_closes (struct lane *lane)
{
  struct close_batch *batch = take_closes (lane);
  struct bp_request request = { .op = BP_OP_CLOSE };
  size_t len;
  int r;

  if (batch == NULL)
    return;
  batch->lane = lane;
  batch->error = 0;
  batch->write = (struct command){ .answered = close_written,
                                   .owner = batch };
  batch->read = (struct command){ .answered = close_answered,
                                  .owner = batch };
  request.count = (uint32_t) batch->count;
  r = bp_request_encode (&request, NULL, batch->numbers, &batch->request,
                         &len);
  if (r < 0) {
    batch->waiting = 1;
    note_close_answer (batch, -ENOTCONN); /* Later, then. */
    return;
  }
  batch->waiting = 2;
  lane_request (lane, &batch->write, &batch->read, batch->request, len,
                batch->reply, sizeof batch->reply);
}

void
fetcher_forget_closes (struct fetcher *fetcher)
{
  struct close_batch *batch;

  while ((batch = STAILQ_FIRST (&fetcher->lost_closes)) != NULL) {
    STAILQ_REMOVE_HEAD (&fetcher->lost_closes, link);
    close_batch_free (batch);
  }
}
