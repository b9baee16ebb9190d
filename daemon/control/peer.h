/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* One client of the control socket.
 *
 *   bytes ─▶ in[] ─▶ a line ─▶ command ─▶ reply ─▶ out[] ─▶ bytes
 *                                │  ▲
 *                                ▼  │ (a command that blocks)
 *                            job, on a thread of its own
 *
 * One request at a time: while a job runs or a reply is being sent,
 * nothing more is read.  So a connection holds one request and one reply,
 * and one that is slow or idle costs nobody else anything.
 *
 * Threads: everything here is called by the control loop; a job touches
 * only its own struct.
 */
#ifndef BP_PEER_H
#define BP_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/control/commands.h"

struct job;

struct peer {
  bool is_used;             /* This slot of the table is taken. */
  int fd;                   /* Non-blocking; -1: the client has gone, a job is
                               still under way. */
  bool is_at_end;           /* The client sends no more. */
  bool is_closing;          /* To be closed when OUT has been sent. */
  uint64_t active_ns;       /* When a byte last came or went. */
  char *in;                 /* CONTROL_MAX_REQUEST + 1 bytes; owned. */
  size_t in_len;            /* Bytes in it. */
  char *out;                /* A reply; owned. */
  size_t out_len;           /* Bytes of it, */
  size_t out_sent;          /* and of those, gone. */
  struct job *job;          /* Under way, or NULL; owned. */
  char owned[BP_NAME_SIZE]; /* The recording that ends with us, or "". */
  char news[BP_NAME_SIZE];  /* See peer_take_news. */

  /* Set by the loop when it takes the slot. */
  const struct control_context *context;
  int wake_fd; /* An eventfd: a job writes to it when it is done. */
};

/* Take FD into the free slot CONN.  False if there is no memory. */
bool peer_open (struct peer *peer, int fd);

/* What to poll for. */
short peer_events (const struct peer *peer);

/* Do what REVENTS of poll allows; 0 after a job may have ended. */
void peer_advance (struct peer *peer, short revents);

/* True if nothing is lost when it is closed to make room. */
bool peer_is_idle (const struct peer *peer);

/* True if a reply waits that the client has not taken for a long time. */
bool peer_is_stuck (const struct peer *peer);

/* The client is gone, or has to go: abort what it owned. */
void peer_close (struct peer *peer);

/* Shutdown: wait for the job, if any, and free everything. */
void peer_destroy (struct peer *peer);

/* The recording that a request of CONN started or ended since the last
 * call, "" if none: no other connection owns it any more.
 */
void peer_take_news (struct peer *peer,
                     char ret_name[BP_NAME_SIZE]);
void peer_disown (struct peer *peer, const char *name);

#endif /* BP_PEER_H */
