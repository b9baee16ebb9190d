/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What systemd asks of a service, without its library: sockets that it
 * opened for us (sd_listen_fds(3)) and the word that we are ready
 * (sd_notify(3)).
 *
 * Threads: main only; listen before any other thread starts, because it
 * changes the environment.
 */
#ifndef BP_SYSTEMD_H
#define BP_SYSTEMD_H

#include <stdbool.h>

enum {
  SYSTEMD_FIRST_FD = 3
};

/* How many listening sockets were passed, from SYSTEMD_FIRST_FD on; they
 * are close-on-exec afterwards and the environment no longer names them,
 * so that they do not reach our children.
 */
unsigned systemd_take_fds (void);

/* Is FD a socket that listens? */
bool systemd_fd_listens (int fd);

/* Send STATE ("READY=1") to the service manager, if there is one. */
void systemd_notify (const char *state);

#endif /* BP_SYSTEMD_H */
