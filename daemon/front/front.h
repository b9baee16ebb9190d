/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The NBD server: listeners, and event loops that own connections.
 *
 * A few threads run an epoll loop each; a connection belongs to one from
 * accept to close.  A loop parses requests in batches, hands reads to the
 * pager, and answers a batch with one sendmsg straight from the cache.
 * It never hashes, never waits, and stops reading from a connection whose
 * requests or replies in flight have reached their limits.
 */
#ifndef BP_FRONT_H
#define BP_FRONT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

struct front;
struct pager;
struct options;
struct tls_server;

/* Open the listeners of OPTIONS and start the loops; accepts nothing
 * until front_run.  All borrowed; TLS is NULL if there is none.
 */
int front_new (struct front **ret_front, const struct options *options,
               struct pager *pager, struct tls_server *tls,
               struct bp_error *err);

/* Serve the connected socket FD (taken over), too, from front_run on.  It
 * may do what OPTIONS let all clients do; INPUT_MAY_END before it has taken
 * its replies.
 */
int front_add_client (struct front *front, const struct options *options,
                      int fd, bool input_may_end, struct bp_error *err);

/* Start accepting clients; returns at once. */
void front_run (struct front *front);

/* Becomes readable when there is nobody to serve any more: the last client
 * has gone (--stdio), or none has been there for --exit-when-idle seconds
 * and none is accepted now.
 */
int front_end_fd (const struct front *front);

/* Stop accepting, let what is in flight be answered for at most DRAIN_S
 * seconds, or until HURRY_FD (-1: none) is readable; then close every
 * connection without an answer, and remove the sockets.  Blocks.
 */
void front_stop (struct front *front, unsigned drain_s, int hurry_fd);
void front_free (struct front *front);

#endif /* BP_FRONT_H */
