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
#include "daemon/pager/verifier.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/session-proto.h"

/* The fetch of one node of the tree. */
struct tree_step {
  struct attempt *attempt;
  struct bp_merkle_node node;
  struct command write, read;
  uint8_t *request; /* Encoded; owned. */
  uint8_t reply[BP_REPLY_HEADER_SIZE + BP_BLOCK_SIZE];
};

/* From the root to a window. */
struct tree_path {
  /* Of the windows whose leaves came with it, once it is verified. */
  unsigned nr_digests;
  struct bp_root digests[BP_NODE_WINDOWS];
  unsigned nr_steps;
  struct tree_step steps[];
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

static struct tree_path *
path_new (struct attempt *attempt, const struct fetch *fetch)
{
  struct bp_merkle_node nodes[BP_MERKLE_MAX_LEVELS];
  const unsigned nr = bp_merkle_path (fetch->blob_size, fetch->offset, nodes);
  struct tree_path *path;

  path = calloc (1, sizeof *path + nr * sizeof path->steps[0]);
  if (path == NULL)
    return NULL;
  path->nr_steps = nr;
  for (unsigned i = 0; i < nr; i++) {
    path->steps[i].attempt = attempt;
    path->steps[i].node = nodes[i];
  }
  return path;
}

static void
free_attempt (struct attempt *attempt)
{
  if (attempt->path)
    for (unsigned i = 0; i < attempt->path->nr_steps; i++)
      free (attempt->path->steps[i].request);
  free (attempt->path);
  free (attempt);
}

struct attempt *
attempt_new (struct lane *lane, struct fetch *fetch, struct key *key)
{
  struct attempt *attempt = calloc (1, sizeof *attempt);

  if (attempt == NULL)
    return NULL;
  if (is_of_large_blob (fetch)) {
    attempt->has_digest =
      digest_table_find (&lane->fetcher->digests, &fetch->root,
                         fetch->offset, &attempt->digest);
    if (!attempt->has_digest)
      attempt->path = path_new (attempt, fetch);
    if (!attempt->has_digest && attempt->path == NULL) {
      free (attempt);
      return NULL;
    }
  }
  attempt->fetch = fetch;
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

/* An answer has come; ERROR is 0 or what was wrong with it. */
static void
note_answer (struct attempt *attempt, int error)
{
  struct lane *lane = attempt->lane;

  if (error < 0 && attempt->error == 0)
    attempt->error = error;
  assert (attempt->waiting > 0);
  if (--attempt->waiting == 0)
    TAILQ_INSERT_TAIL (&lane->ready, attempt, link);
}

static void
tree_written (struct command *command, int error)
{
  struct tree_step *step = command->owner;

  note_answer (step->attempt, error);
}

/* Whether REPLY, which came without an error, holds the node. */
static int
check_tree_reply (const struct tree_step *step)
{
  int status, r;
  size_t len;

  r = bp_reply_header_decode (step->reply, &status, &len);
  if (r < 0 || status < 0)
    return r < 0 ? r : status;
  return len == step->node.count * (size_t) BP_ROOT_SIZE ? 0 : -EPROTO;
}

static void
tree_answered (struct command *command, int error)
{
  struct tree_step *step = command->owner;

  lane_request_answered (step->attempt->lane);
  note_answer (step->attempt, error < 0 ? error : check_tree_reply (step));
}

static void
data_answered (struct command *command, int error)
{
  struct attempt *attempt = command->owner;

  if (error == 0)
    METRIC_ADD (driver_bytes, attempt->fetch->len);
  note_answer (attempt, error);
}

void
attempt_open_answered (struct attempt *attempt, int status)
{
  attempt->open_error = status;
  note_answer (attempt, 0);
}

static void
send_tree (struct attempt *attempt, struct tree_step *step)
{
  const struct bp_request request = {
    .op = BP_OP_TREE,
    .key = attempt->key->number,
    .level = step->node.level,
    .first = step->node.first,
    .nr = step->node.count,
  };
  size_t len;
  int r;

  r = bp_request_encode (&request, NULL, NULL, &step->request, &len);
  if (r < 0) {
    attempt->error = r;
    return;
  }
  step->write = (struct command){ .answered = tree_written, .owner = step };
  step->read = (struct command){ .answered = tree_answered, .owner = step };
  attempt->waiting += 2;
  METRIC_ADD (driver_nodes, 1);
  lane_request (attempt->lane, &step->write, &step->read, step->request, len,
                step->reply,
                BP_REPLY_HEADER_SIZE + step->node.count * BP_ROOT_SIZE);
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
      for (unsigned i = 0; i < attempt->path->nr_steps; i++)
        send_tree (attempt, &attempt->path->steps[i]);
    /* The empty blob has nothing to read, and is verified all the same. */
    if (attempt->fetch->len > 0)
      send_data (attempt);
  }
  note_answer (attempt, 0);
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

/* Keep what the path has shown of the window and its neighbours. */
static void
keep_digests (const struct attempt *attempt)
{
  const struct fetch *fetch = attempt->fetch;
  const struct tree_path *path = attempt->path;
  uint64_t offset;

  if (path == NULL)
    return;
  offset = path->steps[0].node.first * BP_BLOCK_SIZE;
  for (unsigned i = 0; i < path->nr_digests; i++)
    digest_table_add (&attempt->lane->fetcher->digests, &fetch->root,
                      offset + i * (uint64_t) BP_WINDOW_SIZE,
                      &path->digests[i]);
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
    keep_digests (attempt);
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

/* PATH (or NULL) has been verified. */
static void
digest_leaves (struct tree_path *path)
{
  if (path)
    path->nr_digests =
      bp_window_digests (path->steps[0].reply + BP_REPLY_HEADER_SIZE,
                         path->steps[0].node.count, path->digests);
}

/* Verify those of the COUNT attempts that brought bytes, as one list. */
static void
verify_attempts (struct attempt *const *attempts, size_t count)
{
  const uint8_t *nodes[VERIFY_BATCH][BP_MERKLE_MAX_LEVELS];
  struct verify_job jobs[VERIFY_BATCH];
  size_t nr = 0;

  for (size_t i = 0; i < count; i++) {
    const struct attempt *attempt = attempts[i];
    const struct fetch *fetch = attempt->fetch;

    if (!has_bytes (attempt))
      continue;
    if (attempt->path)
      for (unsigned j = 0; j < attempt->path->nr_steps; j++)
        nodes[nr][j] = attempt->path->steps[j].reply + BP_REPLY_HEADER_SIZE;
    jobs[nr] = (struct verify_job){
      .root = &fetch->root,
      .size = fetch->blob_size,
      .offset = fetch->offset,
      .data = fetch->buf,
      .len = fetch->len,
      .digest = attempt->has_digest ? &attempt->digest : NULL,
      .nodes = nodes[nr],
    };
    nr++;
  }
  verify_list (jobs, nr);
  nr = 0;
  for (size_t i = 0; i < count; i++)
    if (has_bytes (attempts[i])) {
      attempts[i]->status = jobs[nr++].status;
      if (attempts[i]->status == 0)
        digest_leaves (attempts[i]->path);
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

void
lane_settle_ready (struct lane *lane)
{
  struct attempt *attempts[VERIFY_BATCH];
  struct outcome outcome;
  size_t count;

  while (!TAILQ_EMPTY (&lane->ready)) {
    for (count = 0; count < VERIFY_BATCH; count++) {
      attempts[count] = TAILQ_FIRST (&lane->ready);
      if (attempts[count] == NULL)
        break;
      TAILQ_REMOVE (&lane->ready, attempts[count], link);
    }
    verify_attempts (attempts, count);
    outcome_init (&outcome);
    end_attempts (lane->fetcher, attempts, count, &outcome);
    outcome_report (lane->fetcher, &outcome);
    for (size_t i = 0; i < count; i++)
      free_attempt (attempts[i]);
  }
}
