/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The one client of --stdio, who is at standard input and output.
 *
 *   one socket for both ───────────────────────────────▶ the front
 *   in ─▶ thread ─▶ ┌────────────┐
 *                   │ socketpair │ ◀──────────────────▶ the front
 *  out ◀─ thread ◀─ └────────────┘
 *
 * Two descriptors may be pipes or files, which the front's loops cannot
 * serve, so two threads copy between them and a socket.  The descriptors
 * stay as they are, since others who share them may not expect them to
 * become non-blocking.
 *
 * Threads: main's, but for what stdio-client.c says.
 */
#ifndef BP_STDIO_CLIENT_H
#define BP_STDIO_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"

struct stdio_client {
  int in_fd, out_fd;   /* -1: not taken, or handed on. */
  bool is_bridged;     /* The rest is in use. */
  int socket_fd;       /* Our end of the pair. */
  int done_fd;         /* An eventfd: all that the front sent is written. */
  int stop_fd;         /* An eventfd: the threads are to end. */
  unsigned nr_threads; /* That there are, in this order: */
  pthread_t in_thread, out_thread;
};
#define STDIO_NONE                                             \
  {                                                            \
    .in_fd = -1, .out_fd = -1, .socket_fd = -1, .done_fd = -1, \
    .stop_fd = -1                                              \
  }

/* Take standard input and output over, before a child could inherit them:
 * what is read and written there from now on is /dev/null and standard
 * error.
 */
int stdio_take (struct stdio_client *stdio, struct bp_error *err);

/* A connected socket to the client, which the caller closes. */
int stdio_connect (struct stdio_client *stdio, int *ret_fd,
                   struct bp_error *err);

/* The front has closed its socket: let what it sent be written until the
 * clock says END_NS or HURRY_FD is readable, and close everything.
 */
void stdio_done (struct stdio_client *stdio, uint64_t end_ns, int hurry_fd);

#endif /* BP_STDIO_CLIENT_H */
