/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The sockets that clients come to: of --listen, and those that systemd
 * passes.
 */
#ifndef BP_LISTENER_H
#define BP_LISTENER_H

#include <stddef.h>

#include "lib/error.h"
#include "daemon/front/policy.h"
#include "daemon/unix-socket.h"

struct options;

/* The policy of the clients of FD, which no --listen is about and NAME is
 * for people; or of the one that it is connected to.
 */
int listener_make_policy (struct client_policy *ret_policy, int fd,
                          const char *name, const struct options *options,
                          struct bp_error *err);

struct listener {
  int fd;
  struct unix_socket socket;   /* That fd belongs to, or none. */
  struct client_policy policy; /* Of its clients. */
};

struct listeners {
  struct listener *list;
  size_t count;
};

/* Open all that OPTIONS ask for.  Nothing is left open on failure. */
int listeners_open (struct listeners *listeners,
                    const struct options *options, struct bp_error *err);

/* Say what listeners_open would say about who may connect and how, without
 * opening anything.
 */
int listeners_check (const struct options *options, struct bp_error *err);

/* Close them and remove their paths. */
void listeners_close (struct listeners *listeners);

#endif /* BP_LISTENER_H */
