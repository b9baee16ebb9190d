/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Order and waiting on one connection.
 *
 *   number    0 … next-1 │ next │ next+1 …                     next+63 │ …
 *             have run   │ runs, or has arrived (its bit is set)       │
 *                        │ and waits, or has not arrived               │
 *
 * A connection may have 64 requests unanswered, so the numbers that can
 * arrive are 64 from next on, and a bit each says which have.  Only the
 * worker that carries request number next runs one: that is what makes
 * requests of a connection run one at a time, with no lock held.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/profile.h"
#include "lib/session-proto.h"
#include "nbdkit-plugin/filters.h"
#include "nbdkit-plugin/lane.h"
#include "nbdkit-plugin/reply-memory.h"
#include "nbdkit-plugin/requests.h"
#include "nbdkit-plugin/wait.h"

struct lane {
  const struct session_config *config; /* Borrowed. */
  struct departure departure;          /* For wait_slice. */
  pthread_mutex_t lock;                /* Protects everything below. */

  struct session *session;     /* NULL until HELLO has run, then constant. */
  uint64_t arrived;            /* Bit n mod 64: request n is here, unrun. */
  struct reply_memory replies; /* Its "next" counts what has run. */
};

int
lane_new (struct lane **ret_lane, const struct session_config *config,
          const char *session_id, struct bp_error *err)
{
  CLEANUP_FREE struct lane *lane = calloc (1, sizeof *lane);

  if (lane == NULL)
    return bp_error_set (err, -ENOMEM, "session: %m");
  if (session_id) {
    const int r = session_find (session_id, &lane->session, err);

    if (r < 0)
      return r;
  }
  lane->config = config;
  pthread_mutex_init (&lane->lock, NULL);
  *ret_lane = steal_ptr (&lane);
  return 0;
}

void
lane_free (struct lane *lane)
{
  if (lane == NULL)
    return;
  session_unref (lane->session);
  reply_memory_done (&lane->replies);
  pthread_mutex_destroy (&lane->lock);
  free (lane);
}

/* ---- Numbers.  Called with the lock held. ---- */

static uint64_t
bit_of (uint64_t n)
{
  return UINT64_C (1) << n % BP_MAX_UNANSWERED;
}

static bool
has_arrived (const struct lane *lane, uint64_t n)
{
  return (lane->arrived & bit_of (n)) != 0;
}

/* N is one of the 64 numbers from next on. */
static bool
is_in_reach (const struct lane *lane, uint64_t n)
{
  return n >= lane->replies.next &&
         n - lane->replies.next < BP_MAX_UNANSWERED;
}

/* Behind the last request that has arrived; next, if none has. */
static uint64_t
end_of_arrived (const struct lane *lane)
{
  uint64_t end = lane->replies.next + BP_MAX_UNANSWERED;

  while (end > lane->replies.next && !has_arrived (lane, end - 1))
    end--;
  return end;
}

/* A request that has arrived, with a number below END, has not run. */
static bool
is_any_unrun (const struct lane *lane, uint64_t end)
{
  for (uint64_t n = lane->replies.next; n < end; n++)
    if (has_arrived (lane, n))
      return true;
  return false;
}

static struct session *
lane_session (struct lane *lane)
{
  LOCKED (&lane->lock);

  return lane->session;
}

/* ---- Requests ---- */

/* Note that request N is here.  Refused at once: a number that has been
 * used or is out of reach, and before HELLO everything else.
 */
static int
enter_request (struct lane *lane, uint64_t n, bool is_hello,
               struct bp_error *err)
{
  LOCKED (&lane->lock);

  if (lane->session == NULL && !(n == 0 && is_hello))
    return bp_error_set (err, -EINVAL, "session: HELLO comes first");
  if (!is_in_reach (lane, n) || has_arrived (lane, n))
    return bp_error_set (err, -EINVAL,
                         "request %" PRIu64 ": the next is number %" PRIu64,
                         n, lane->replies.next);
  lane->arrived |= bit_of (n);
  return 0;
}

/* 0 if it is the turn of request N, which has arrived; -EBUSY if it waits
 * for one that has arrived; -EAGAIN if for one that has not.
 */
static int
look_at_turn (struct lane *lane, uint64_t n)
{
  LOCKED (&lane->lock);

  if (n == lane->replies.next)
    return 0;
  return has_arrived (lane, n - 1) ? -EBUSY : -EAGAIN;
}

static int
wait_turn (struct lane *lane, uint64_t n, struct bp_error *err)
{
  struct wait wait = wait_begin (&lane->departure);
  int r;

  while ((r = look_at_turn (lane, n)) != 0) {
    if (r == -EAGAIN && !wait_may_arrive (&wait))
      return bp_error_set (err, -EINVAL,
                           "request %" PRIu64
                           ": the one before it did not arrive",
                           n);
    r = wait_slice (&wait, err);
    if (r < 0)
      return r;
  }
  return 0;
}

/* Request N goes as if it had never come. */
static void
leave_request (struct lane *lane, uint64_t n)
{
  LOCKED (&lane->lock);

  lane->arrived &= ~bit_of (n);
}

/* Request N has run.  SESSION is what it made, or NULL.  Takes ownership
 * of both.
 */
static void
finish_request (struct lane *lane, uint64_t n, struct session *session,
                const struct reply *reply)
{
  LOCKED (&lane->lock);

  if (session)
    lane->session = session;
  lane->arrived &= ~bit_of (n);
  reply_memory_add (&lane->replies, reply);
}

static int
make_session (struct lane *lane, const struct bp_request *hello,
              struct session **ret_session)
{
  struct bp_error err;
  char filter[64];
  int r;

  if (hello->version != BP_SESSION_VERSION)
    r = bp_error_set (&err, -EOPNOTSUPP, "session: HELLO of version %u",
                      hello->version);
  else if (filters_find_unsuitable (filter, sizeof filter))
    r = bp_error_set (&err, -EOPNOTSUPP,
                      "session: the filter '%s' may change or repeat "
                      "requests, which a session does not survive",
                      filter);
  else
    r = session_new (ret_session, lane->config, &err);
  if (r < 0)
    nbdkit_error ("%s", err.msg);
  return r;
}

static void
run_hello (struct lane *lane, const struct bp_request *hello,
           struct session **ret_session, struct reply *ret_reply)
{
  struct bp_hello_reply answer = {
    .version = BP_SESSION_VERSION,
    .max_unanswered = BP_MAX_UNANSWERED,
    .max_messages = BP_RECORDING_MAX,
    .max_batch = BP_MAX_BATCH,
    .profiles_writable = lane->config->profiles_writable,
  };
  CLEANUP_FREE uint8_t *payload = malloc (BP_HELLO_REPLY_SIZE);

  *ret_reply = (struct reply){ .status = payload ? 0 : -ENOMEM };
  if (payload)
    ret_reply->status = make_session (lane, hello, ret_session);
  if (ret_reply->status < 0)
    return;
  memcpy (answer.id, (*ret_session)->id, sizeof answer.id);
  bp_hello_reply_encode (&answer, payload);
  ret_reply->payload = steal_ptr (&payload);
  ret_reply->len = BP_HELLO_REPLY_SIZE;
}

/* It is the turn of request N.  DECODED is what decoding it returned. */
static void
run_request (struct lane *lane, uint64_t n, int decoded,
             const struct bp_request *request)
{
  struct session *session = lane_session (lane), *made = NULL;
  struct reply reply = { .status = decoded };

  if (decoded == 0 && session == NULL)
    run_hello (lane, request, &made, &reply);
  else if (decoded == 0 && request->op == BP_OP_HELLO)
    reply.status = -EINVAL;
  else if (decoded == 0)
    request_run (session, request, &reply);
  finish_request (lane, n, made, &reply);
}

int
lane_pwrite (struct lane *lane, const void *buf, uint32_t count,
             uint64_t offset, struct bp_error *err)
{
  const uint64_t n = (offset & ~BP_CONTROL_BIT) / BP_AREA_SIZE;
  struct bp_request request;
  int decoded, r;

  if (!(offset & BP_CONTROL_BIT) || offset % BP_AREA_SIZE != 0 ||
      count > BP_AREA_SIZE)
    return bp_error_set (err, -EINVAL,
                         "session: a write of %" PRIu32
                         " bytes at %" PRIu64 " is no request",
                         count, offset);
  decoded = bp_request_decode (buf, count, &request, err);
  r = enter_request (lane, n, decoded == 0 && request.op == BP_OP_HELLO,
                     err);
  if (r < 0)
    return r;
  r = wait_turn (lane, n, err);
  if (r < 0) {
    leave_request (lane, n);
    return r;
  }
  run_request (lane, n, decoded, &request);
  return 0;
}

/* ---- Replies ---- */

/* Returns 0; -EBUSY if request N has arrived; -EAGAIN if it may come;
 * -EINVAL.
 */
static int
try_reply (struct lane *lane, uint64_t n, void *buf, uint32_t count,
           uint64_t start, struct bp_error *err)
{
  LOCKED (&lane->lock);

  if (lane->session == NULL && n != 0)
    return bp_error_set (err, -EINVAL, "session: HELLO comes first");
  if (n >= lane->replies.next) {
    if (!is_in_reach (lane, n))
      return bp_error_set (err, -EINVAL,
                           "reply %" PRIu64 ": the next is number %" PRIu64,
                           n, lane->replies.next);
    return has_arrived (lane, n) ? -EBUSY : -EAGAIN;
  }
  if (!reply_memory_read (&lane->replies, n, buf, count, start))
    return bp_error_set (err, -EINVAL,
                         "reply %" PRIu64 ": has been forgotten", n);
  return 0;
}

static int
read_reply (struct lane *lane, void *buf, uint32_t count, uint64_t offset,
            struct bp_error *err)
{
  const uint64_t n = (offset & ~BP_CONTROL_BIT) / BP_AREA_SIZE;
  const uint64_t start = offset % BP_AREA_SIZE;
  struct wait wait = wait_begin (&lane->departure);
  int r;

  if (!range_is_within (BP_AREA_SIZE, start, count))
    return bp_error_set (err, -EINVAL,
                         "reply %" PRIu64 ": a read beyond its area", n);
  for (;;) {
    r = try_reply (lane, n, buf, count, start, err);
    if (r != -EBUSY && r != -EAGAIN)
      return r;
    if (r == -EAGAIN && !wait_may_arrive (&wait))
      return bp_error_set (err, -EINVAL,
                           "reply %" PRIu64 ": its request did not arrive",
                           n);
    r = wait_slice (&wait, err);
    if (r < 0)
      return r;
  }
}

/* ---- Data ---- */

/* Whether an OPEN that was sent before this read may still run: anything
 * may arrive until the deadline; after it, only what had arrived by then.
 * *END is 0 until that is known.
 */
static bool
may_open_come (struct lane *lane, const struct wait *wait, uint64_t *end)
{
  if (wait_may_arrive (wait))
    return true;

  LOCKED (&lane->lock);
  if (*end == 0)
    *end = end_of_arrived (lane);
  return is_any_unrun (lane, *end);
}

static int
wait_slot (struct lane *lane, struct mapper *mapper, uint32_t slot,
           struct mapped_blob **ret_mapped, struct bp_error *err)
{
  struct wait wait = wait_begin (&lane->departure);
  uint64_t end = 0;
  int r;

  for (;;) {
    /* Asked before the slot is looked at: what runs in between is seen. */
    const bool is_hopeful = may_open_come (lane, &wait, &end);

    r = mapper_get_slot (mapper, slot, ret_mapped, err);
    if (r != -EBUSY && r != -EAGAIN)
      return r;
    if (r == -EAGAIN && !is_hopeful)
      return bp_error_set (err, -EINVAL, "slot %" PRIu32 ": is not open",
                           slot);
    r = wait_slice (&wait, err);
    if (r < 0)
      return r;
  }
}

static int
read_data (struct lane *lane, void *buf, uint32_t count, uint64_t offset,
           struct bp_error *err)
{
  const uint32_t slot = (offset >> BP_SLOT_SHIFT) % BP_NR_SLOTS;
  struct session *session = lane_session (lane);
  CLEANUP_MAPPED_BLOB struct mapped_blob *mapped = NULL;
  int r;

  if (session == NULL)
    return bp_error_set (err, -EINVAL, "session: HELLO comes first");
  r = wait_slot (lane, session->mapper, slot, &mapped, err);
  if (r < 0)
    return r;
  return mapped_blob_read (mapped, session->recordings, buf, count,
                           offset & BP_DATA_OFFSET_MASK,
                           (offset & BP_STORED_BIT) != 0, err);
}

int
lane_pread (struct lane *lane, void *buf, uint32_t count, uint64_t offset,
            struct bp_error *err)
{
  return offset & BP_CONTROL_BIT
           ? read_reply (lane, buf, count, offset, err)
           : read_data (lane, buf, count, offset, err);
}
