/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the files of the driver share.
 *
 *   driver.c        the driver thread: captive nbdkit, sessions
 *   hello.c         the request that makes a session
 *   slow-request.c  one blocking request at a time on the control
 *                   connection
 *   requests.c      the requests themselves
 *
 * Lock: driver->lock.  It is held neither around the gate's lock nor
 * around the fetcher's.
 */
#ifndef BP_DRIVER_INTERNAL_H
#define BP_DRIVER_INTERNAL_H

#include <pthread.h>

#include "daemon/pager/captive.h"
#include "daemon/pager/wire.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/fetcher-internal.h"
#include "daemon/pager/session-gate.h"

enum slow_state {
  SLOW_QUEUED,
  SLOW_SENT,
  SLOW_ANSWERED,
};

/* A request of a caller who waits for it.  Its memory is the caller's
 * until it is queued, the driver thread's while it is sent, and the
 * caller's again once it is answered; a caller who does not wait that long
 * abandons it to the driver thread.
 */
struct slow_request {
  uint8_t *bytes;     /* Encoded; owned. */
  size_t len;         /* Bytes. */
  size_t max_reply;   /* Bytes of the reply without its header. */
  uint64_t epoch;     /* Only in this session; 0: in any. */
  bool is_repeatable; /* May be sent again in another session. */
  uint64_t deadline_ns;

  /* Once answered. */
  int status;              /* 0 or negative errno. */
  uint8_t *reply;          /* Header and all; owned. */
  size_t reply_len;        /* Bytes after the header. */
  uint64_t answered_epoch; /* The session that answered. */
  uint64_t windows_sent;   /* fetcher_windows_sent then. */

  /* Under driver->lock. */
  enum slow_state state;
  bool is_abandoned;
  TAILQ_ENTRY (slow_request) link;

  /* The driver thread's. */
  struct driver *driver;
  struct command write, read;
  unsigned waiting; /* Answers still to come. */
  uint64_t number;  /* Of the request on its connection. */
  size_t room;      /* Bytes of the reply asked for so far. */
  int error;        /* The first that an answer brought, or 0. */
};
TAILQ_HEAD (slow_list, slow_request);

struct driver {
  /* Fixed. */
  char *uri; /* For status. */
  struct wire_target target;
  int event_fd; /* Wakes the driver thread. */
  pthread_t thread;
  struct session_gate gate;
  struct fetcher *fetcher;
  struct captive *captive; /* Or NULL; the driver thread's. */

  pthread_mutex_t lock;
  pthread_cond_t changed; /* A slow request, NR_CALLERS. */
  struct slow_list queue; /* SLOW_QUEUED. */
  unsigned nr_callers;    /* Inside a slow request. */
  bool is_stopping;
  struct bp_error last_error; /* Why there is no session. */

  /* The driver thread's. */
  struct wire *control;
  struct session session;                           /* While there is one. */
  struct slow_request *current;                     /* SLOW_SENT, or NULL. */
  char logged[sizeof ((struct bp_error *) 0)->msg]; /* Last failure. */
};

/* ---- hello.c ---- */

/* On the control connection just opened, which is closed if it fails. */
int driver_say_hello (struct driver *driver,
                      struct bp_hello_reply *ret_reply,
                      struct bp_error *err);

/* ---- slow-request.c ---- */

/* Send REQUEST (allocated by the caller, with BYTES) and wait.  Returns
 * what it came to.  With 0 *ret_request is the request, to be freed by
 * slow_request_free; otherwise it is gone.
 */
int slow_request_run (struct driver *driver, struct slow_request *request,
                      struct slow_request **ret_request);
void slow_request_free (struct slow_request *request);

/* The driver thread: send the next one, if none is under way. */
void slow_request_start_next (struct driver *driver);

/* Milliseconds until the current one ought to be answered; -1: no limit. */
int slow_request_timeout_ms (struct driver *driver);

/* Whether the current one has had its time. */
bool slow_request_is_stuck (struct driver *driver);

/* Whether the program is ending. */
bool driver_is_stopping (struct driver *driver);

#endif /* BP_DRIVER_INTERNAL_H */
