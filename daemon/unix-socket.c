/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Listening Unix sockets. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/unix-socket.h"
#include "lib/base/cleanup.h"

/* Lock the directory of PATH until the descriptor is closed. */
static int
lock_directory (const char *path, int *ret_fd)
{
  const char *slash = strrchr (path, '/');
  CLEANUP_FREE char *dir = NULL;
  CLEANUP_CLOSE int fd = -1;

  if (slash == NULL)
    dir = strdup (".");
  else
    dir = strndup (path, slash == path ? 1 : (size_t) (slash - path));
  if (dir == NULL)
    return -ENOMEM;
  fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd == -1)
    return -errno;
  while (flock (fd, LOCK_EX) == -1)
    if (errno != EINTR)
      return -errno;
  *ret_fd = steal_fd (&fd);
  return 0;
}

/* Make way for a socket at ADDR.  Called with the directory locked. */
static int
remove_stale_socket (const struct sockaddr_un *addr, struct bp_error *err)
{
  CLEANUP_CLOSE int fd = -1;
  struct stat st;

  if (lstat (addr->sun_path, &st) == -1)
    return errno == ENOENT ? 0 : bp_error_set (err, -errno, "stat: %m");
  if (!S_ISSOCK (st.st_mode))
    return bp_error_set (err, -EEXIST, "something that is no socket is there");

  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd == -1)
    return bp_error_set (err, -errno, "socket: %m");
  if (connect (fd, (const struct sockaddr *) addr, sizeof *addr) == 0 ||
      errno == EAGAIN)
    return bp_error_set (err, -EADDRINUSE, "another program serves it");
  if (errno != ECONNREFUSED)
    return bp_error_set (err, -errno, "connect: %m");
  if (unlink (addr->sun_path) == -1)
    return bp_error_set (err, -errno, "remove a stale socket: %m");
  return 0;
}

/* Linux gives the new name the mode of the socket's own inode, so it is
 * never there with a wider one.
 */
static int
bind_and_listen (int fd, const struct sockaddr_un *addr, mode_t mode,
                 gid_t gid, struct bp_error *err)
{
  int r;

  if (fchmod (fd, 0) == -1)
    return bp_error_set (err, -errno, "fchmod: %m");
  if (bind (fd, (const struct sockaddr *) addr, sizeof *addr) == -1)
    return bp_error_set (err, -errno, "bind: %m");
  if ((gid != (gid_t) -1 &&
       lchown (addr->sun_path, (uid_t) -1, gid) == -1) ||
      chmod (addr->sun_path, mode) == -1 ||
      listen (fd, SOMAXCONN) == -1) {
    r = bp_error_set (err, -errno, "mode, group or listen: %m");
    unlink (addr->sun_path);
    return r;
  }
  return 0;
}

int
unix_socket_listen (struct unix_socket *ret_socket, const char *path,
                    mode_t mode, gid_t gid, struct bp_error *err)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  CLEANUP_CLOSE int fd = -1;
  CLEANUP_CLOSE int lock = -1;
  CLEANUP_FREE char *copy = strdup (path);
  struct stat st;
  int r;

  if (strlen (path) >= sizeof addr.sun_path)
    return bp_error_set (err, -ENAMETOOLONG, "'%s': %m", path);
  strcpy (addr.sun_path, path);
  if (copy == NULL)
    return bp_error_set (err, -ENOMEM, "'%s': %m", path);
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd == -1)
    return bp_error_set (err, -errno, "'%s': socket: %m", path);

  r = lock_directory (path, &lock);
  if (r < 0)
    return bp_error_set (err, r, "'%s': its directory: %m", path);
  r = remove_stale_socket (&addr, err);
  if (r == 0)
    r = bind_and_listen (fd, &addr, mode, gid, err);
  if (r < 0)
    return bp_error_wrap (err, r, "'%s'", path);
  if (lstat (path, &st) == -1)
    return bp_error_set (err, -errno, "'%s': stat: %m", path);

  *ret_socket = (struct unix_socket){
    .fd = steal_fd (&fd),
    .path = steal_ptr (&copy),
    .dev = st.st_dev,
    .ino = st.st_ino,
  };
  return 0;
}

void
unix_socket_close (struct unix_socket *socket)
{
  CLEANUP_CLOSE int lock = -1;
  struct stat st;

  if (socket->fd == -1)
    return;
  if (lock_directory (socket->path, &lock) == 0 &&
      lstat (socket->path, &st) == 0 && st.st_dev == socket->dev &&
      st.st_ino == socket->ino)
    unlink (socket->path);
  close (socket->fd);
  free (socket->path);
  *socket = (struct unix_socket) UNIX_SOCKET_NONE;
}
