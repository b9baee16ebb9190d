/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* One try of one fetch.
 *
 * On the wire, behind the OPEN if the blob is not open yet, and all back
 * to back:
 *
 *   TREE level 0, its reply, TREE level 1, its reply, …   (large blobs)
 *   the data
 *
 * A window of a large blob whose digest is known from an earlier path needs
 * no nodes.
 *
 * When everything was answered, the OPEN too, the attempt is ready: the
 * bytes are verified in the fetch's buffer, by the thread that received
 * them, and the attempt ends: the fetch is done, or it goes back to wait
 * for another one.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/pager/fetcher-internal.h"
#include "daemon/pager/tree-path.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/session-proto.h"

/* What is verified as one list: as much of what has arrived as keeps every
 * lane of the hash busy, and no more, since all of it is published only
 * then.
 */
enum {
  LIST_ATTEMPTS = 16,
  LIST_BYTES = 512 << 10,
};

static bool
is_of_large_blob (const struct fetch *fetch)
{
  return fetch->blob_size > BP_WINDOW_SIZE;
}

unsigned
attempt_nr_requests (const struct fetch *fetch)
{
  return is_of_large_blob (fetch) ? bp_merkle_nr_levels (fetch->blob_size) : 0;
}

static void
free_attempt (struct attempt *attempt)
{
  tree_path_free (attempt->path);
  free (attempt);
}

struct attempt *
attempt_new (struct lane *lane, struct fetch *fetch, struct key *key)
{
  struct attempt *attempt = calloc (1, sizeof *attempt);

  if (attempt == NULL)
    return NULL;
  attempt->fetch = fetch;
  if (is_of_large_blob (fetch)) {
    attempt->has_digest =
      digest_table_find (&lane->fetcher->digests, &fetch->root,
                         fetch->offset, &attempt->digest);
    if (!attempt->has_digest)
      attempt->path = tree_path_new (attempt);
    if (!attempt->has_digest && attempt->path == NULL) {
      free (attempt);
      return NULL;
    }
  }
  attempt->lane = lane;
  attempt->key = key;
  attempt->sent_ns = now_ns ();
  /* One for the OPEN that it rides behind, one until it is all sent. */
  attempt->waiting = key->state == KEY_OPENING ? 2 : 1;
  if (key->state == KEY_OPENING)
    TAILQ_INSERT_TAIL (&key->riders, attempt, ride);
  key_ref (key);
  key->nr_sent++;
  if (lane->nr_attempts + lane->nr_hung == 0)
    lane->answered_ns = attempt->sent_ns;
  lane->nr_attempts++;
  lane->bytes += fetch->len;
  fetch->attempt = attempt;
  if (fetch->nr_attempts++ > 0)
    METRIC_ADD (driver_retries, 1);
  return attempt;
}

/* ---- On the wire ---- */

void
attempt_note_answer (struct attempt *attempt, int error)
{
  struct lane *lane = attempt->lane;

  if (error < 0 && attempt->error == 0)
    attempt->error = error;
  assert (attempt->waiting > 0);
  if (--attempt->waiting == 0)
    TAILQ_INSERT_TAIL (&lane->ready, attempt, link);
}

static void
data_answered (struct command *command, int error)
{
  struct attempt *attempt = command->owner;

  if (error == 0)
    METRIC_ADD (driver_bytes, attempt->fetch->len);
  attempt_note_answer (attempt, error);
}

void
attempt_open_answered (struct attempt *attempt, int status)
{
  attempt->open_error = status;
  attempt_note_answer (attempt, 0);
}

static void
send_data (struct attempt *attempt)
{
  struct lane *lane = attempt->lane;
  struct fetch *fetch = attempt->fetch;

  attempt->read = (struct command){ .answered = data_answered,
                                    .owner = attempt };
  attempt->waiting++;
  atomic_fetch_add_explicit (&lane->fetcher->windows_sent, 1,
                             memory_order_relaxed);
  METRIC_ADD (driver_reads, 1);
  wire_read (lane->wire, &attempt->read, fetch->buf, fetch->len,
             bp_data_offset (attempt->key->number, fetch->offset, false));
}

void
attempt_send (struct attempt *attempt)
{
  /* The OPEN may have failed before it was sent. */
  if (attempt->open_error == 0) {
    if (attempt->path)
      tree_path_send (attempt->path);
    /* The empty blob has nothing to read, and is verified all the same. */
    if (attempt->fetch->len > 0)
      send_data (attempt);
  }
  attempt_note_answer (attempt, 0);
}

/* ---- The end of an attempt: with the fetcher's lock held ---- */

/* True once for each corrupt window, as far as memory goes back. */
static bool
is_first_time_corrupt (struct fetcher *fetcher, const struct fetch *fetch)
{
  struct corrupt_window *seen;
  unsigned nr = fetcher->nr_corrupt_seen;

  for (unsigned i = 0; i < nr && i < NR_CORRUPT_SEEN; i++) {
    seen = &fetcher->corrupt_seen[i];
    if (seen->offset == fetch->offset &&
        bp_root_equal (&seen->root, &fetch->root))
      return false;
  }
  seen = &fetcher->corrupt_seen[nr % NR_CORRUPT_SEEN];
  seen->root = fetch->root;
  seen->offset = fetch->offset;
  fetcher->nr_corrupt_seen++;
  return true;
}

/* The bytes are not those that the root names. */
static void
end_corrupt (struct attempt *attempt, struct outcome *outcome)
{
  struct fetcher *fetcher = attempt->lane->fetcher;
  struct fetch *fetch = attempt->fetch;

  fetch->avoid = attempt->lane->index;
  if (fetch->nr_corrupt++ == 0) {
    fetch_requeue (fetcher, fetch);
    return;
  }
  METRIC_ADD (verify_corrupt, 1);
  fetch->is_news = is_first_time_corrupt (fetcher, fetch);
  fetch_finish (fetcher, fetch, -EBADMSG, outcome);
}

/* An answer that cannot be: one more try, with another key. */
static void
end_malformed (struct attempt *attempt, struct outcome *outcome)
{
  struct fetcher *fetcher = attempt->lane->fetcher;
  struct fetch *fetch = attempt->fetch;

  METRIC_ADD (driver_errors, 1);
  keys_kill (&fetcher->keys, attempt->key);
  if (fetch->nr_malformed++ == 0)
    fetch_requeue (fetcher, fetch);
  else
    fetch_finish (fetcher, fetch, -EPROTO, outcome);
}

/* Decide what becomes of the fetch. */
static void
end_fetch (struct attempt *attempt, struct outcome *outcome)
{
  struct fetcher *fetcher = attempt->lane->fetcher;
  struct fetch *fetch = attempt->fetch;

  if (fetch->is_abandoned)
    fetch_retire (fetch, outcome);
  else if (fetcher->is_stopping)
    fetch_finish (fetcher, fetch, -ESHUTDOWN, outcome);
  else if (attempt->open_error < 0)
    fetch_open_failed (fetcher, fetch, attempt->open_error, outcome);
  else if (attempt->error == -ENOTCONN)
    fetch_requeue (fetcher, fetch);
  else if (attempt->error == -EINVAL || attempt->error == -EPROTO ||
           (attempt->error == 0 && attempt->key->size != fetch->blob_size))
    end_malformed (attempt, outcome);
  else if (attempt->error < 0) {
    METRIC_ADD (driver_errors, 1);
    fetch->avoid = attempt->lane->index;
    fetch_delay (fetcher, fetch);
  }
  else if (attempt->status < 0)
    end_corrupt (attempt, outcome);
  else {
    if (attempt->path)
      tree_path_keep (attempt->path, &fetcher->digests);
    fetch_finish (fetcher, fetch, 0, outcome);
  }
}

/* How many of those parked on KEY may try now. */
static unsigned
nr_to_unpark (const struct key *key)
{
  switch (key->state) {
  case KEY_OPENING: return 0;
  case KEY_DEAD: return UINT_MAX;
  case KEY_OPEN: break;
  }
  if (key->is_hung)
    return key->nr_sent == 0 ? 1 : 0;
  return key->nr_sent < MAX_SENT_PER_BLOB
           ? MAX_SENT_PER_BLOB - key->nr_sent
           : 0;
}

/* The wire is done with ATTEMPT. */
static void
uncount (struct attempt *attempt)
{
  struct lane *lane = attempt->lane;

  attempt->fetch->attempt = NULL;
  attempt->key->nr_sent--;
  if (attempt->is_discounted)
    lane->nr_hung--;
  else {
    lane->nr_attempts--;
    lane->bytes -= attempt->fetch->len;
  }
  if (attempt->error == -ENOTCONN)
    return;
  attempt->key->is_hung = false;
  lane->is_stalled = false;
  lane->answered_ns = now_ns ();
}

static void
end_attempt (struct attempt *attempt, struct outcome *outcome)
{
  struct fetcher *fetcher = attempt->lane->fetcher;
  struct key *key = attempt->key;

  uncount (attempt);
  end_fetch (attempt, outcome);
  key_unpark (fetcher, key, nr_to_unpark (key));
  key_unref (&fetcher->keys, key);
}

/* ---- Settling ---- */

static bool
has_bytes (const struct attempt *attempt)
{
  return attempt->error == 0 && attempt->open_error == 0;
}

/* Describe what ATTEMPT has brought.  NODES is room for its path's. */
static void
set_window (const struct attempt *attempt, struct bp_window *window,
            const uint8_t *nodes[BP_MERKLE_MAX_LEVELS])
{
  const struct fetch *fetch = attempt->fetch;

  *window = (struct bp_window){
    .size = fetch->blob_size,
    .offset = fetch->offset,
    .data = fetch->buf,
    .len = fetch->len,
    .root = &fetch->root,
    .digest = attempt->has_digest ? &attempt->digest : NULL,
  };
  if (attempt->path) {
    tree_path_nodes (attempt->path, nodes);
    window->nodes = nodes;
  }
}

static void
count_verified (const struct attempt *attempt)
{
  METRIC_ADD (verify_blobs, 1);
  METRIC_ADD (verify_bytes, attempt->fetch->len);
}

/* Verify those of the COUNT attempts that brought bytes, as one list.  What
 * fails is not counted: a second try decides whether it is corrupt.
 */
static void
verify_attempts (struct attempt *const *attempts, size_t count)
{
  const uint8_t *nodes[LIST_ATTEMPTS][BP_MERKLE_MAX_LEVELS];
  struct bp_window windows[LIST_ATTEMPTS];
  size_t nr = 0;

  for (size_t i = 0; i < count; i++)
    if (has_bytes (attempts[i])) {
      set_window (attempts[i], &windows[nr], nodes[nr]);
      nr++;
    }
  bp_verify_windows (windows, nr);
  nr = 0;
  for (size_t i = 0; i < count; i++) {
    struct attempt *attempt = attempts[i];

    if (!has_bytes (attempt))
      continue;
    attempt->status = windows[nr++].status;
    if (attempt->status == 0)
      count_verified (attempt);
    if (attempt->status == 0 && attempt->path)
      tree_path_digest (attempt->path);
  }
}

static void
end_attempts (struct fetcher *fetcher, struct attempt *const *attempts,
              size_t count, struct outcome *outcome)
{
  LOCKED (&fetcher->lock);

  for (size_t i = 0; i < count; i++)
    end_attempt (attempts[i], outcome);
  /* Keys that nothing refers to any more can be closed to make room. */
  fetcher_keys_freed (fetcher);
  fetcher_check_closing (fetcher);
}

/* Take the attempts that are verified next.  Returns how many. */
static size_t
take_ready (struct lane *lane, struct attempt *attempts[LIST_ATTEMPTS])
{
  size_t count = 0, bytes = 0;

  while (count < LIST_ATTEMPTS && bytes < LIST_BYTES) {
    struct attempt *attempt = TAILQ_FIRST (&lane->ready);

    if (attempt == NULL)
      break;
    TAILQ_REMOVE (&lane->ready, attempt, link);
    bytes += attempt->fetch->len;
    attempts[count++] = attempt;
  }
  return count;
}

void
lane_settle_ready (struct lane *lane)
{
  struct attempt *attempts[LIST_ATTEMPTS];
  struct outcome outcome;
  size_t count;

  while ((count = take_ready (lane, attempts)) > 0) {
    verify_attempts (attempts, count);
    outcome_init (&outcome);
    end_attempts (lane->fetcher, attempts, count, &outcome);
    outcome_report (lane->fetcher, &outcome);
    for (size_t i = 0; i < count; i++)
      free_attempt (attempts[i]);
  }
}
