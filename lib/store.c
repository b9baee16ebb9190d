/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Opening and making a store, and what its files share.
 *
 * A directory is a store once it has a lock file, which is therefore made
 * last: a creation that was killed is taken up by the next one, and two
 * at once both succeed with the same store.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/hex.h"
#include "lib/base/io.h"
#include "lib/base/range.h"
#include "lib/store-internal.h"

enum {
  NR_CACHED_PIECES = 64
};

static const char *const subdirs[] = { "images", "packs", "profiles", "tmp" };

/* ---- Shared ---- */

int
store_new_id (char id[STORE_ID_SIZE], struct bp_error *err)
{
  uint8_t bytes[(STORE_ID_SIZE - 1) / 2];

  if (getrandom (bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
    return bp_error_set (err, -errno, "getrandom: %m");
  bp_hex_encode (bytes, sizeof bytes, id);
  return 0;
}

char *
store_path (char out[STORE_FILE_NAME_SIZE], const char *dir,
            const char *name, const char *suffix)
{
  const int n =
    snprintf (out, STORE_FILE_NAME_SIZE, "%s/%s%s", dir, name, suffix);

  assert (n > 0 && n < STORE_FILE_NAME_SIZE);
  (void) n;
  return out;
}

int
store_check_writable (const struct bp_store *store, struct bp_error *err)
{
  if (store->mode == BP_STORE_READ)
    return bp_error_set (err, -EROFS, "store '%s': opened for reading only",
                         store->path);
  return 0;
}

bool
store_split_name (const char *name, const char *suffix,
                  char out[STORE_FILE_NAME_SIZE])
{
  const size_t len = strlen (name), tail = strlen (suffix);

  if (len <= tail || len >= STORE_FILE_NAME_SIZE ||
      strcmp (name + len - tail, suffix) != 0)
    return false;
  memcpy (out, name, len - tail);
  out[len - tail] = '\0';
  return true;
}

/* ---- Names in a directory ---- */

struct name_list {
  char **names; /* Each allocated. */
  size_t count, max;
};

static void
free_names (struct name_list *list)
{
  for (size_t i = 0; i < list->count; i++)
    free (list->names[i]);
  free (list->names);
}

static int
add_name (struct name_list *list, const char *name)
{
  if (list->count == list->max) {
    const size_t max = list->max ? 2 * list->max : 64;
    char **names = reallocarray (list->names, max, sizeof *names);

    if (names == NULL)
      return -ENOMEM;
    list->names = names;
    list->max = max;
  }
  list->names[list->count] = strdup (name);
  if (list->names[list->count] == NULL)
    return -ENOMEM;
  list->count++;
  return 0;
}

static int
compare_names (const void *a, const void *b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

/* All names in DIR. */
static int
read_names (DIR *dir, struct name_list *list)
{
  for (;;) {
    const struct dirent *entry;
    int r;

    errno = 0;
    entry = readdir (dir);
    if (entry == NULL)
      return -errno;
    if (strcmp (entry->d_name, ".") == 0 || strcmp (entry->d_name, "..") == 0)
      continue;
    r = add_name (list, entry->d_name);
    if (r < 0)
      return r;
  }
}

int
store_each_name (const struct bp_store *store, const char *path,
                 store_name_fn fn, void *opaque, struct bp_error *err)
{
  __attribute__ ((cleanup (free_names))) struct name_list list = { 0 };
  CLEANUP_CLOSEDIR DIR *dir = NULL;
  CLEANUP_CLOSE int fd = -1;
  int r;

  fd = bp_openat_beneath (store->dirfd, path, O_RDONLY | O_DIRECTORY, 0);
  if (fd < 0)
    return bp_error_set (err, fd, "store '%s': open '%s': %m", store->path,
                         path);
  dir = fdopendir (fd);
  if (dir == NULL)
    return bp_error_set (err, -errno, "store '%s': '%s': %m", store->path,
                         path);
  steal_fd (&fd);
  r = read_names (dir, &list);
  if (r < 0)
    return bp_error_set (err, r, "store '%s': read '%s': %m", store->path,
                         path);
  if (list.count > 0)
    qsort (list.names, list.count, sizeof *list.names, compare_names);
  for (size_t i = 0; i < list.count; i++) {
    r = fn (opaque, list.names[i]);
    if (r != 0)
      return r;
  }
  return 0;
}

/* ---- Making one ---- */

/* A directory in which a store may be made: nothing but what an unfinished
 * creation left, or a file system's own directory.
 */
static int
refuse_foreign_name (void *opaque, const char *name)
{
  (void) opaque;
  for (size_t i = 0; i < ARRAY_LEN (subdirs); i++)
    if (strcmp (name, subdirs[i]) == 0)
      return 0;
  return strcmp (name, "lock") == 0 || strcmp (name, "lost+found") == 0
           ? 0
           : -ENOTEMPTY;
}

static int
create_store (struct bp_store *store, struct bp_error *err)
{
  int r = store_each_name (store, ".", refuse_foreign_name, NULL, err);

  if (r == -ENOTEMPTY)
    return bp_error_set (err, -EPROTO, "store '%s': %s", store->path,
                         "not a store, and not an empty directory");
  if (r < 0)
    return r;
  for (size_t i = 0; i < ARRAY_LEN (subdirs); i++)
    if (mkdirat (store->dirfd, subdirs[i], 0777) == -1 && errno != EEXIST)
      return bp_error_set (err, -errno, "store '%s': make '%s': %m",
                           store->path, subdirs[i]);
  return store_create_lock (store, err);
}

bool
store_has_lock (const struct bp_store *store)
{
  struct stat st;

  return fstatat (store->dirfd, "lock", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG (st.st_mode);
}

/* Names in these are changed without a look at the path, so they must be
 * directories of the store and no links.
 */
static int
check_subdirs (const struct bp_store *store, struct bp_error *err)
{
  if (store->mode == BP_STORE_READ)
    return 0;
  for (size_t i = 0; i < ARRAY_LEN (subdirs); i++) {
    CLEANUP_CLOSE int fd =
      bp_openat_beneath (store->dirfd, subdirs[i], O_PATH | O_DIRECTORY, 0);

    if (fd < 0)
      return bp_error_set (err, fd == -ENOENT ? -EPROTO : fd,
                           "store '%s': '%s': %s", store->path, subdirs[i],
                           strerror (-fd));
  }
  return 0;
}

static int
open_directory (struct bp_store *store, struct bp_error *err)
{
  if (store->mode == BP_STORE_CREATE && mkdir (store->path, 0777) == -1 &&
      errno != EEXIST)
    return bp_error_set (err, -errno, "store '%s': make: %m", store->path);
  store->dirfd = open (store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (store->dirfd == -1)
    return bp_error_set (err, -errno, "store '%s': open: %m", store->path);
  if (store_has_lock (store))
    return check_subdirs (store, err);
  if (store->mode == BP_STORE_CREATE)
    return create_store (store, err);
  return bp_error_set (err, -EPROTO, "store '%s': not a store: no lock file",
                       store->path);
}

int
bp_store_open (struct bp_store **ret_store, const char *path,
               enum bp_store_mode mode, struct bp_error *err)
{
  struct bp_store *store = calloc (1, sizeof *store);
  int r;

  if (store == NULL)
    return bp_error_set (err, -ENOMEM, "store '%s': %m", path);
  store->dirfd = store->packs_fd = -1;
  store->mode = mode;
  pthread_mutex_init (&store->lock, NULL);
  frame_pool_init (&store->frames);
  store->path = strdup (path);
  r = store->path == NULL ||
          bp_piece_cache_new (&store->pieces, NR_CACHED_PIECES) < 0
        ? bp_error_set (err, -ENOMEM, "store '%s': %m", path)
        : open_directory (store, err);
  if (r == 0)
    r = store_packs_init (store, err);
  if (r < 0) {
    bp_store_close (store);
    return r;
  }
  *ret_store = store;
  return 0;
}

void
bp_store_close (struct bp_store *store)
{
  if (store == NULL)
    return;
  store_packs_done (store);
  frame_pool_done (&store->frames);
  bp_piece_cache_free (store->pieces);
  cleanup_close (&store->dirfd);
  pthread_mutex_destroy (&store->lock);
  free (store->path);
  free (store);
}
