/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The lock file: who changes names holds it (flock), and it holds the
 * next object id (u64).
 *
 * What is in tmp/ while the lock is held:
 *
 *   tmp/ID/lock     of an import, which holds a flock on it while it lives
 *   tmp/ID/X.pack   its packs
 *   tmp/FILE        being written by the holder of the lock: by us
 *
 * So whoever takes the lock can tell what a killed writer left: every
 * plain file, and every directory whose lock can be taken.  An import
 * makes its directory with the store's lock held, so that there is never
 * one that lives and has no lock of its own.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/store-internal.h"

enum {
  LOCK_FILE_SIZE = 8
};

void
store_unlock (struct store_lock *lock)
{
  cleanup_close (&lock->fd);
  lock->fd = -1;
}

/* ---- Sweeping ---- */

struct sweep {
  struct bp_store *store;
  const char *dir; /* Of the names that are removed. */
};

static int
remove_file_in (void *opaque, const char *name)
{
  const struct sweep *sweep = opaque;
  char path[STORE_FILE_NAME_SIZE];
  const int n =
    snprintf (path, sizeof path, "%s/%s", sweep->dir, name);

  if (n > 0 && (size_t) n < sizeof path)
    unlinkat (sweep->store->dirfd, path, 0);
  return 0;
}

/* True if the import that made the directory DIR still lives. */
static bool
import_lives (const struct bp_store *store, const char *dir)
{
  CLEANUP_CLOSE int fd = -1;
  char path[STORE_FILE_NAME_SIZE];
  const int n = snprintf (path, sizeof path, "%s/lock", dir);

  if (n < 0 || (size_t) n >= sizeof path)
    return true; /* No import of ours has such a name: leave it alone. */
  fd = bp_openat_beneath (store->dirfd, path, O_RDWR | O_NONBLOCK, 0);
  if (fd < 0)
    return fd != -ENOENT;
  return flock (fd, LOCK_EX | LOCK_NB) == -1;
}

/* One name in tmp/.  What cannot be removed does no harm, and the next
 * sweep tries again: so failures here are nobody's failure.
 */
static int
sweep_name (void *opaque, const char *name)
{
  struct bp_store *store = opaque;
  char path[STORE_FILE_NAME_SIZE];
  struct sweep inner = { .store = store, .dir = path };
  struct stat st;
  const int n = snprintf (path, sizeof path, "tmp/%s", name);

  if (n < 0 || (size_t) n >= sizeof path ||
      fstatat (store->dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == -1)
    return 0;
  if (!S_ISDIR (st.st_mode)) {
    unlinkat (store->dirfd, path, 0);
    return 0;
  }
  if (import_lives (store, path))
    return 0;
  store_each_name (store, path, remove_file_in, &inner, NULL);
  unlinkat (store->dirfd, path, AT_REMOVEDIR);
  return 0;
}

/* ---- Taking it ---- */

static int
wait_for_flock (int fd)
{
  int r;

  do
    r = flock (fd, LOCK_EX);
  while (r == -1 && errno == EINTR);
  return r == -1 ? -errno : 0;
}

int
store_lock (struct bp_store *store, struct store_lock *lock,
            struct bp_error *err)
{
  CLEANUP_CLOSE int fd = -1;
  int r = store_check_writable (store, err);

  if (r < 0)
    return r;
  fd = bp_openat_beneath (store->dirfd, "lock", O_RDWR | O_NONBLOCK, 0);
  if (fd < 0)
    return bp_error_set (err, fd, "store '%s': open 'lock': %m",
                         store->path);
  r = wait_for_flock (fd);
  if (r < 0)
    return bp_error_set (err, r, "store '%s': lock: %m", store->path);
  r = store_each_name (store, "tmp", sweep_name, store, err);
  if (r < 0)
    return r;
  lock->fd = steal_fd (&fd);
  return 0;
}

int
store_take_object_ids (struct store_lock *lock, uint64_t count,
                       uint64_t *ret_first, struct bp_error *err)
{
  uint8_t bytes[LOCK_FILE_SIZE + 1];
  uint64_t first;
  const ssize_t n = bp_pread_all (lock->fd, bytes, sizeof bytes, 0);
  int r;

  if (n < 0)
    return bp_error_set (err, (int) n, "store: read 'lock': %m");
  first = n == LOCK_FILE_SIZE ? get_le64 (bytes) : 0;
  if (first == 0 || first > UINT64_MAX - count)
    return bp_error_set (err, -EPROTO, "store: 'lock': no object id in it");
  put_le64 (bytes, first + count);
  r = bp_pwrite_all (lock->fd, bytes, LOCK_FILE_SIZE, 0);
  if (r == 0 && fdatasync (lock->fd) == -1)
    r = -errno;
  if (r < 0)
    return bp_error_set (err, r, "store: write 'lock': %m");
  *ret_first = first;
  return 0;
}

/* TMP holds the lock file of a new store: give it its name, unless another
 * creator was faster, which is as good.  The holder of that one's lock may
 * even have swept ours away.
 */
static int
link_lock (struct bp_store *store, const char *tmp)
{
  int r = 0;

  if (linkat (store->dirfd, tmp, store->dirfd, "lock", 0) == -1) {
    r = -errno;
    if (store_has_lock (store))
      r = 0;
  }
  unlinkat (store->dirfd, tmp, 0);
  return r == 0 ? bp_sync_dir (store->dirfd, ".") : r;
}

int
store_create_lock (struct bp_store *store, struct bp_error *err)
{
  CLEANUP_CLOSE int fd = -1;
  char id[STORE_ID_SIZE], tmp[STORE_FILE_NAME_SIZE];
  uint8_t bytes[LOCK_FILE_SIZE];
  int r = store_new_id (id, err);

  if (r < 0)
    return r;
  store_path (tmp, "tmp", id, "");
  put_le64 (bytes, 1);
  fd = bp_openat_beneath (store->dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL,
                          0666);
  r = fd < 0 ? fd : bp_write_all (fd, bytes, sizeof bytes);
  if (r == 0 && fsync (fd) == -1)
    r = -errno;
  if (r == 0)
    r = link_lock (store, tmp);
  if (r < 0)
    return bp_error_set (err, r, "store '%s': make 'lock': %m", store->path);
  return 0;
}

int
store_replace_file (struct bp_store *store, const char *path,
                    const void *data, size_t len, struct bp_error *err)
{
  const int r = bp_replace_file (store->dirfd, path, "tmp/new", data, len);

  if (r < 0)
    return bp_error_set (err, r, "store '%s': write '%s': %m", store->path,
                         path);
  return 0;
}
