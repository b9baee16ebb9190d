/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The directory, for our eyes only, in which the captive nbdkit has its
 * socket.
 *
 * Its maker holds a lock on it for as long as it lives, so one whose lock
 * is free was left by a daemon that was killed, and is swept by the next
 * one of the same user.
 *
 * Threads: a directory belongs to one thread.
 */
#ifndef BP_PRIVATE_DIR_H
#define BP_PRIVATE_DIR_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PRIVATE_DIR_SOCKET "socket"

struct private_dir {
  char path[sizeof ((struct sockaddr_un *) 0)->sun_path];
  int fd; /* Of the directory, locked. */
};

/* Sweep what the dead have left in PARENT (its first LEN bytes), and make
 * a directory there, mode 0700.  Returns 0; -ENAMETOOLONG if the socket's
 * path would be too long; or the system's error.
 */
int private_dir_make (struct private_dir *dir, const char *parent,
                      size_t len);

/* Remove it, with the socket. */
void private_dir_remove (struct private_dir *dir);

#endif /* BP_PRIVATE_DIR_H */
