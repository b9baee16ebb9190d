/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Sessions: one daemon's connections, with its keys and recordings.
 *
 *   HELLO on `session` ──▶ session_new ──▶ id
 *   open of `session/ID` ─▶ session_find
 *   close of any of them ─▶ session_unref: after the last the session
 *                           ends, its keys are closed, its recordings
 *                           aborted, nothing is written
 *
 * Threads: any.  Lock order: the registry's lock (session.c), then the
 * leaves in mapper and recording-log.
 */
#ifndef BP_SESSION_H
#define BP_SESSION_H

#include <stdbool.h>

#include "lib/error.h"
#include "lib/session-proto.h"
#include "lib/store.h"
#include "nbdkit-plugin/mapper.h"
#include "nbdkit-plugin/recording-log.h"

/* Sessions of one driver, at most. */
enum {
  SESSION_MAX = 1024
};

/* What every session stands on; constant while nbdkit serves. */
struct session_config {
  struct bp_store *store;
  bool profiles_writable;
};

/* Constant after session_new, but for what its members lock. */
struct session {
  const struct session_config *config; /* Borrowed. */
  char id[BP_SESSION_ID_SIZE];
  struct mapper *mapper;
  struct recording_set *recordings;

  unsigned refs;        /* The registry's lock. */
  struct session *next; /* The registry's lock. */
};

/* A new session with one reference.  Returns 0; -EBUSY past SESSION_MAX;
 * -ENOMEM; or what getrandom said.
 */
int session_new (struct session **ret_session,
                 const struct session_config *config, struct bp_error *err);

/* The session ID, with a reference for the caller, or -ENOENT. */
int session_find (const char *id, struct session **ret_session,
                  struct bp_error *err);

/* Accepts NULL. */
void session_unref (struct session *session);

#endif /* BP_SESSION_H */
