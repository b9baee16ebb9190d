/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A lane: a thread with a connection to the driver.
 *
 *   queue of its class ─┐
 *   its own queue ──────┴─▶ pull ─▶ OPEN, TREE, data reads ─▶ answers
 *                             ▲                                  │
 *                             └────────── verify, done ◀─────────┘
 *
 * Two lanes serve demand, two serve replay, so that what nobody waits for
 * never delays a client.  A lane pulls while it has less than its share
 * under way, and no more than a little ahead of its neighbour.  Its own
 * queue holds what only it may send (reads behind an OPEN of its own that
 * is not answered yet) and what failed on its neighbour.
 */
#ifndef BP_PAGER_LANE_H
#define BP_PAGER_LANE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/pager/wire.h"
#include "daemon/pager/fetcher.h"
#include "daemon/pager/keys.h"
#include "daemon/pager/session-gate.h"

struct lane {
  /* Fixed once it runs. */
  struct fetcher *fetcher;
  struct session_gate *gate;
  const struct wire_target *target;
  enum fetch_class class;
  int index; /* In the fetcher's array. */
  int event_fd;
  pthread_t thread;

  /* Under the fetcher's lock. */
  bool is_attached;      /* Connected, and pulls. */
  struct fetch_list own; /* Only this lane is to send them. */
  uint64_t bytes;        /* Under way, but for what hangs. */
  unsigned nr_attempts;  /* Likewise. */
  unsigned nr_hung;      /* Attempts that are not counted: they hang. */
  uint64_t answered_ns;  /* When it last got an answer, or began to wait. */
  bool is_stalled;       /* Something hangs, and nothing is answered. */
  bool must_reconnect;   /* For so long that it is to connect anew. */

  /* The thread's own. */
  struct session session;
  struct wire *wire;
  unsigned nr_unanswered;    /* Control requests. */
  struct attempt_list ready; /* Everything of them was answered. */
};

/* Start LANE, whose first part is filled in.  Returns 0 or -errno. */
int lane_start (struct lane *lane);

/* After session_stop. */
void lane_join (struct lane *lane);

/* Make it look at its queues.  Any thread. */
void lane_kick (struct lane *lane);

/* A control request and the read of its reply, back to back.  BYTES, REPLY
 * and both commands are lent.  READ's owner calls lane_request_answered
 * when it is answered.
 */
void lane_request (struct lane *lane, struct command *write,
                   struct command *read, const uint8_t *bytes, size_t len,
                   uint8_t *reply, size_t reply_len);
void lane_request_answered (struct lane *lane);

#endif /* BP_PAGER_LANE_H */
