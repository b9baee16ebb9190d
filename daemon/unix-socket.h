/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Listening Unix sockets that come and go cleanly.
 *
 * Whoever binds or removes a socket holds a lock on its directory, so two
 * daemons that start at once cannot both take one path, and a daemon that
 * ends does not remove another's socket.
 *
 * Threads: any.
 */
#ifndef BP_UNIX_SOCKET_H
#define BP_UNIX_SOCKET_H

#include <sys/types.h>

#include "lib/error.h"

/* A bound socket. */
struct unix_socket {
  int fd;     /* Listening, close-on-exec, non-blocking; -1 if none. */
  char *path; /* As it was given; owned. */
  dev_t dev;  /* What PATH was when it was bound. */
  ino_t ino;
};
#define UNIX_SOCKET_NONE \
  {                      \
    .fd = -1             \
  }

/* Bind PATH with MODE, and group GID unless it is (gid_t) -1, and listen.
 * A socket there that nobody serves is replaced.  -EADDRINUSE if somebody
 * does; -EEXIST if something else is there.
 */
int unix_socket_listen (struct unix_socket *ret_socket, const char *path,
                        mode_t mode, gid_t gid, struct bp_error *err);

/* Close it and remove the path, if that is still this socket. */
void unix_socket_close (struct unix_socket *socket);

#endif /* BP_UNIX_SOCKET_H */
