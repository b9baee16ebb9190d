/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The pidfile. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/pidfile.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"

/* "PID\n" into LINE, 16 bytes.  Returns its length. */
static size_t
format_pid (char *line)
{
  return (size_t) snprintf (line, 16, "%d\n", (int) getpid ());
}

int
pidfile_write (const char *path, struct bp_error *err)
{
  CLEANUP_FREE char *tmp = NULL;
  CLEANUP_CLOSE int fd = -1;
  char line[16];
  const size_t len = format_pid (line);
  int r;

  if (asprintf (&tmp, "%s.XXXXXX", path) == -1) {
    tmp = NULL;
    return bp_error_set (err, -ENOMEM, "pidfile '%s': %m", path);
  }
  fd = mkostemp (tmp, O_CLOEXEC);
  if (fd == -1)
    return bp_error_set (err, -errno, "pidfile '%s': create: %m", path);
  r = bp_write_all (fd, line, len);
  if (r == 0 && (fchmod (fd, 0644) == -1 || rename (tmp, path) == -1))
    r = -errno;
  if (r < 0) {
    unlink (tmp);
    return bp_error_set (err, r, "pidfile '%s': write: %m", path);
  }
  return 0;
}

void
pidfile_remove (const char *path)
{
  CLEANUP_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  char line[16], found[16];
  const size_t len = format_pid (line);
  const ssize_t n = fd != -1 ? bp_pread_all (fd, found, sizeof found, 0) : -1;

  if (n == (ssize_t) len && memcmp (line, found, len) == 0 &&
      unlink (path) == -1)
    log_warn ("pidfile '%s': remove: %m; it is left behind", path);
}
