/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The thread of a lane.
 *
 *   session_wait ─▶ connect ─▶ attach ─▶ [pull, send, wait, settle]…
 *        ▲                                         │ connection or
 *        └───────── close ◀── detach ◀─────────────┘ session lost
 *
 * Between attach and detach the lane may be given work; what is under way
 * when the connection closes is answered with -ENOTCONN, and tried again.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/pager/fetcher-internal.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/session-proto.h"

enum {
  FIRST_PAUSE_MS = 10, /* Between tries to connect. */
  MAX_PAUSE_MS = 1000,
  CONNECT_TIMEOUT_S = 10,
  RECONNECT_TIMEOUT_S = 2,
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

/* ---- The thread ---- */

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
    lane_pull (lane);
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
