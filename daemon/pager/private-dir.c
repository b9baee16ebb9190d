/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Making, locking and sweeping private directories. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/pager/private-dir.h"
#include "lib/base/cleanup.h"

#define NAME_PREFIX "blobpagerd."
#define NAME_PATTERN NAME_PREFIX "XXXXXX"

enum {
  MAKE_TRIES = 16, /* A sweeper may come between mkdtemp and the lock. */
};

/* Open and lock NAME in DIRFD, if it is a directory of ours that nobody
 * has locked.  Returns a descriptor, or -1.
 */
static int
lock_dir (int dirfd, const char *name)
{
  CLEANUP_CLOSE int fd = -1;
  struct stat st;

  fd = openat (dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd == -1 || fstat (fd, &st) == -1 || st.st_uid != geteuid () ||
      flock (fd, LOCK_EX | LOCK_NB) == -1)
    return -1;
  return steal_fd (&fd);
}

/* What cannot be removed stays: it is in nobody's way. */
static void
sweep (const char *parent)
{
  CLEANUP_CLOSEDIR DIR *dir = opendir (parent);
  const struct dirent *entry;

  while (dir && (entry = readdir (dir)) != NULL) {
    CLEANUP_CLOSE int fd = -1;

    if (strlen (entry->d_name) != strlen (NAME_PATTERN) ||
        strncmp (entry->d_name, NAME_PREFIX, strlen (NAME_PREFIX)) != 0)
      continue;
    fd = lock_dir (dirfd (dir), entry->d_name);
    if (fd == -1)
      continue;
    unlinkat (fd, PRIVATE_DIR_SOCKET, 0);
    unlinkat (dirfd (dir), entry->d_name, AT_REMOVEDIR);
  }
}

/* True if the directory of FD has not been removed. */
static bool
is_there (int fd)
{
  struct stat st;

  return fstat (fd, &st) == 0 && st.st_nlink > 0;
}

int
private_dir_make (struct private_dir *dir, const char *parent, size_t len)
{
  char where[sizeof dir->path];
  int n = snprintf (where, sizeof where, "%.*s", (int) len, parent);

  if (n < 0 || (size_t) n >= sizeof where)
    return -ENAMETOOLONG;
  sweep (where);
  for (int tries = 0; tries < MAKE_TRIES; tries++) {
    n = snprintf (dir->path, sizeof dir->path, "%.*s/" NAME_PATTERN,
                  (int) len, parent);
    if (n < 0 || (size_t) n + sizeof "/" PRIVATE_DIR_SOCKET >
                   sizeof dir->path)
      return -ENAMETOOLONG;
    if (mkdtemp (dir->path) == NULL)
      return -errno;
    dir->fd = lock_dir (AT_FDCWD, dir->path);
    if (dir->fd != -1 && is_there (dir->fd))
      return 0;
    rmdir (dir->path);
    if (dir->fd != -1)
      close (dir->fd);
  }
  return -EAGAIN;
}

void
private_dir_remove (struct private_dir *dir)
{
  unlinkat (dir->fd, PRIVATE_DIR_SOCKET, 0);
  rmdir (dir->path);
  close (dir->fd);
}
