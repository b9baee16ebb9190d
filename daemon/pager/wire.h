/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A connection to the driver: a libnbd handle, the commands under way on
 * it, and the numbering of its control requests.
 *
 *   wire_read, wire_request ─▶ in flight ─▶ completed ─▶ wire_dispatch
 *                                  └── connection ended: -ENOTCONN ──┘
 *
 * libnbd's callbacks only move a command from one list to the other; what
 * an answer means is decided in wire_dispatch, when no libnbd function is
 * running.  Once wire_close has returned, nothing writes to any buffer
 * that was lent to a command.
 *
 * Threads: a connection belongs to one thread.
 */
#ifndef BP_WIRE_H
#define BP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/error.h"

struct nbd_handle;

/* Where the driver is. */
struct wire_target {
  const char *uri;    /* An NBD URI, whose export name is not used; or … */
  const char *socket; /* … the path of a Unix socket. */
  unsigned timeout_s; /* A peer silent for so long is gone (TCP). */
};

/* One NBD command.  Owned by who sends it; lent to the connection until
 * ANSWERED has been called.
 */
struct command {
  /* ERROR is 0 or a negative errno: the driver's, or -ENOTCONN when the
   * connection ended first.  May send other commands; may free this one.
   */
  void (*answered) (struct command *command, int error);
  void *owner; /* The sender's. */

  /* The connection's own. */
  struct wire *wire;
  TAILQ_ENTRY (command) link;
  int error;
  bool is_completed;
};
TAILQ_HEAD (command_list, command);

struct wire {
  struct nbd_handle *nbd;
  struct command_list in_flight;
  struct command_list completed;
  uint64_t next_request; /* Number of the next control request. */
  bool is_broken;        /* A command could not be sent. */
};

/* What may end a wait: the descriptor becomes readable and IS_CANCELLED
 * says so, or the deadline passes.
 */
struct wire_wait {
  int event_fd;
  bool (*is_cancelled) (void *opaque);
  void *opaque;
  uint64_t deadline_ns;
};

/* Connect and open EXPORT.  Returns 0; -ECANCELED; -ETIMEDOUT; -ENOENT if
 * the server refuses the export; or why there is no connection.
 */
int wire_open (struct wire **ret_wire, const struct wire_target *target,
               const char *export, const struct wire_wait *wait,
               struct bp_error *err);

/* End the connection.  What is under way is answered with -ENOTCONN, from
 * here.  NULL is allowed.
 */
void wire_close (struct wire *wire);

/* Read LEN >= 1 bytes at OFFSET into BUF, which is lent like the command. */
void wire_read (struct wire *wire, struct command *command, void *buf,
                size_t len, uint64_t offset);

/* Send control request BYTES (lent like the command).  Returns its number.
 * COMMAND is answered when the write is; the reply is read by wire_read at
 * bp_control_offset (number).
 */
uint64_t wire_request (struct wire *wire, struct command *command,
                       const uint8_t *bytes, size_t len);

/* Wait until something can be done: bytes move, EVENT_FD is readable (then
 * it is drained), or TIMEOUT_MS (-1: none) have passed.  Returns 0, or
 * -ENOTCONN when the connection has ended.
 */
int wire_poll (struct wire *wire, int event_fd, int timeout_ms);

/* Call ANSWERED for what has been completed.  Returns how many. */
size_t wire_dispatch (struct wire *wire);

/* An eventfd used with wire_poll. */
void event_fd_signal (int event_fd);
void event_fd_drain (int event_fd);

#endif /* BP_WIRE_H */
