/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The session gate: whether there is a session, and who is in it.
 *
 *   driver thread:  session_begin ──────────────▶ session_end
 *                        │ up                        │ waits until all
 *   lanes:   session_wait ─▶ session_enter … session_leave   have left
 *
 * So when session_end has returned nothing of the session is under way,
 * and its keys can be forgotten.
 *
 * Threads: any; the gate has a lock of its own, a leaf.
 */
#ifndef BP_SESSION_GATE_H
#define BP_SESSION_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/session-proto.h"

/* A session, for who connects to it. */
struct session {
  uint64_t epoch;                      /* Number, from 1. */
  char export[8 + BP_SESSION_ID_SIZE]; /* "session/ID". */
  uint32_t max_batch;                  /* Elements of an OPEN or CLOSE. */
  uint32_t max_unanswered;             /* Requests of a connection. */
};

struct session_gate {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct session session; /* The last one. */
  bool is_up;
  bool is_doubtful; /* A lane was refused: it is gone. */
  bool is_stopping;
  unsigned nr_inside;  /* Lanes. */
  int driver_event_fd; /* Signalled when it becomes doubtful. */
};

int session_gate_init (struct session_gate *gate, int driver_event_fd);
void session_gate_done (struct session_gate *gate);

/* ---- The driver thread ---- */

void session_begin (struct session_gate *gate,
                    const struct bp_hello_reply *hello);

/* No more session; who is inside is expected to notice. */
void session_end (struct session_gate *gate);

/* Until every lane has left. */
void session_wait_empty (struct session_gate *gate);

bool session_is_doubtful (struct session_gate *gate);

/* Wake everybody for good. */
void session_stop (struct session_gate *gate);

/* ---- Lanes, and others ---- */

/* Wait for a session.  False: stopping. */
bool session_wait (struct session_gate *gate, struct session *ret_session);

/* Wait until UNTIL_NS for a session.  Returns 0, -ETIMEDOUT, or
 * -ESHUTDOWN.
 */
int session_wait_until (struct session_gate *gate, uint64_t until_ns,
                        struct session *ret_session);

/* Wait until UNTIL_NS for NR_LANES lanes to be in the session, or for its
 * end.
 */
void session_wait_lanes (struct session_gate *gate, unsigned nr_lanes,
                         uint64_t until_ns);

/* Whether session EPOCH is up still. */
bool session_is_current (struct session_gate *gate, uint64_t epoch);

/* Returns false if EPOCH is over. */
bool session_enter (struct session_gate *gate, uint64_t epoch);
void session_leave (struct session_gate *gate);

/* The driver does not know session EPOCH any more. */
void session_doubt (struct session_gate *gate, uint64_t epoch);

/* Wait for MS, or until session EPOCH is over. */
void session_pause (struct session_gate *gate, uint64_t epoch, unsigned ms);

#endif /* BP_SESSION_GATE_H */
