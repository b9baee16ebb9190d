/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Whole reads and writes.  Short transfers and EINTR end here, so that
 * no caller needs a loop.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"

ssize_t
bp_pread_all (int fd, void *buf, size_t len, uint64_t offset)
{
  size_t done = 0;

  while (done < len) {
    const ssize_t r = pread (fd, (uint8_t *) buf + done, len - done,
                             (off_t) (offset + done));

    if (r == 0)
      break;
    if (r > 0)
      done += (size_t) r;
    else if (errno != EINTR)
      return -errno;
  }
  return (ssize_t) done;
}

int
bp_pread_exact (int fd, void *buf, size_t len, uint64_t offset)
{
  const ssize_t r = bp_pread_all (fd, buf, len, offset);

  if (r < 0)
    return (int) r;
  return (size_t) r == len ? 0 : -EPROTO;
}

int
bp_pwrite_all (int fd, const void *buf, size_t len, uint64_t offset)
{
  size_t done = 0;

  while (done < len) {
    const ssize_t r = pwrite (fd, (const uint8_t *) buf + done, len - done,
                              (off_t) (offset + done));

    if (r >= 0)
      done += (size_t) r;
    else if (errno != EINTR)
      return -errno;
  }
  return 0;
}

int
bp_write_all (int fd, const void *buf, size_t len)
{
  size_t done = 0;

  while (done < len) {
    const ssize_t r = write (fd, (const uint8_t *) buf + done, len - done);

    if (r >= 0)
      done += (size_t) r;
    else if (errno != EINTR)
      return -errno;
  }
  return 0;
}

int
bp_openat_beneath (int dirfd, const char *path, int flags, mode_t mode)
{
  struct open_how how = {
    .flags = (uint64_t) (flags | O_CLOEXEC),
    .mode = flags & (O_CREAT | O_TMPFILE) ? mode : 0,
    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
  };
  int fd;

  do
    fd = (int) syscall (SYS_openat2, dirfd, path, &how, sizeof how);
  while (fd == -1 && (errno == EINTR || errno == EAGAIN));
  return fd == -1 ? -errno : fd;
}

int
bp_read_file (int dirfd, const char *path, size_t limit, uint8_t **ret_data,
              size_t *ret_len)
{
  CLEANUP_CLOSE int fd = -1;
  CLEANUP_FREE uint8_t *data = NULL;
  struct stat st;
  int r;

  /* O_NONBLOCK: a FIFO with this name must not hang the open. */
  fd = bp_openat_beneath (dirfd, path, O_RDONLY | O_NONBLOCK, 0);
  if (fd < 0)
    return fd;
  if (fstat (fd, &st) == -1)
    return -errno;
  if (!S_ISREG (st.st_mode))
    return -EPROTO;
  if ((uint64_t) st.st_size > limit)
    return -ERANGE;

  data = malloc ((size_t) st.st_size + 1);
  if (data == NULL)
    return -ENOMEM;
  r = bp_pread_exact (fd, data, (size_t) st.st_size, 0);
  if (r < 0)
    return r;
  data[st.st_size] = '\0';
  *ret_len = (size_t) st.st_size;
  *ret_data = steal_ptr (&data);
  return 0;
}

int
bp_sync_dir (int dirfd, const char *path)
{
  CLEANUP_CLOSE int fd = -1;

  fd = bp_openat_beneath (dirfd, path, O_RDONLY | O_DIRECTORY, 0);
  if (fd < 0)
    return fd;
  return fsync (fd) == -1 ? -errno : 0;
}

/* The directory part of PATH into OUT ("." if it has none). */
static int
parent_of (const char *path, char *out, size_t len)
{
  const char *slash = strrchr (path, '/');
  const size_t n = slash ? (size_t) (slash - path) : 1;

  if (n >= len)
    return -ENAMETOOLONG;
  memcpy (out, slash ? path : ".", n);
  out[n] = '\0';
  return 0;
}

/* Called with the temporary file complete; removes it on failure. */
static int
publish_file (int dirfd, const char *path, const char *tmp_path)
{
  char parent[256];
  int r = parent_of (path, parent, sizeof parent);

  if (r < 0)
    return r;
  if (renameat (dirfd, tmp_path, dirfd, path) == -1)
    return -errno;
  return bp_sync_dir (dirfd, parent);
}

int
bp_replace_file (int dirfd, const char *path, const char *tmp_path,
                 const void *data, size_t len)
{
  CLEANUP_CLOSE int fd = -1;
  int r;

  fd = bp_openat_beneath (dirfd, tmp_path, O_WRONLY | O_CREAT | O_TRUNC,
                          0644);
  if (fd < 0)
    return fd;
  r = bp_write_all (fd, data, len);
  if (r == 0 && fsync (fd) == -1)
    r = -errno;
  if (r == 0)
    r = publish_file (dirfd, path, tmp_path);
  if (r < 0)
    unlinkat (dirfd, tmp_path, 0);
  return r;
}
