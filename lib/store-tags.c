/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Tags in images/.  A tag is read afresh each time it is asked for; the
 * import writes it (store-import.c), since it comes after the packs.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/store-internal.h"

static int
check_tag_name (const char *name, struct bp_error *err)
{
  if (!bp_is_tag_name (name))
    return bp_error_set (err, -EINVAL, "tag '%.130s': not a tag's name",
                         name);
  return 0;
}

int
bp_store_get_tag (struct bp_store *store, const char *name,
                  struct bp_tag *ret_tag, struct bp_error *err)
{
  char path[STORE_FILE_NAME_SIZE];
  CLEANUP_FREE uint8_t *text = NULL;
  size_t len;
  int r = check_tag_name (name, err);

  if (r < 0)
    return r;
  r = bp_read_file (store->dirfd,
                    store_path (path, "images", name, ".json"),
                    BP_TAG_MAX_SIZE, &text, &len);
  if (r == -ENOENT)
    return bp_error_set (err, r, "tag '%s': no such image", name);
  if (r < 0)
    return bp_error_set (err, r == -ERANGE || r == -ELOOP ? -EPROTO : r,
                         "tag '%s': read: %s", name, strerror (-r));
  return bp_tag_decode ((const char *) text, len, name, ret_tag, err);
}

/* The tags so far. */
struct tag_list {
  struct bp_store *store;
  struct bp_tag *tags;
  size_t count, max;
  size_t nr_bad;
  struct bp_error *err;
};

static int
grow_tags (struct tag_list *list)
{
  const size_t max = list->max ? 2 * list->max : 16;
  struct bp_tag *tags = reallocarray (list->tags, max, sizeof *tags);

  if (tags == NULL)
    return bp_error_set (list->err, -ENOMEM, "store '%s': %m",
                         list->store->path);
  list->tags = tags;
  list->max = max;
  return 0;
}

static int
add_tag (void *opaque, const char *file)
{
  struct tag_list *list = opaque;
  char name[STORE_FILE_NAME_SIZE];
  int r;

  if (!store_split_name (file, ".json", name) || !bp_is_tag_name (name))
    return 0;
  if (list->count == list->max) {
    r = grow_tags (list);
    if (r < 0)
      return r;
  }
  r = bp_store_get_tag (list->store, name, &list->tags[list->count], NULL);
  if (r == 0)
    list->count++;
  else if (r != -ENOENT) /* Removed meanwhile. */
    list->nr_bad++;
  return 0;
}

static int
compare_tags (const void *a, const void *b)
{
  const struct bp_tag *x = a, *y = b;

  return strcmp (x->name, y->name);
}

int
bp_store_list_tags (struct bp_store *store, struct bp_tag **ret_tags,
                    size_t *ret_count, size_t *ret_nr_bad,
                    struct bp_error *err)
{
  struct tag_list list = { .store = store, .err = err };
  const int r = store_each_name (store, "images", add_tag, &list, err);

  if (r < 0) {
    free (list.tags);
    return r;
  }
  /* File names are sorted, but ".json" sorts behind "." and "-". */
  if (list.count > 0)
    qsort (list.tags, list.count, sizeof *list.tags, compare_tags);
  *ret_tags = list.tags;
  *ret_count = list.count;
  if (ret_nr_bad)
    *ret_nr_bad = list.nr_bad;
  return 0;
}

/* Called with the lock file held: the last tag of ROOT has gone or not. */
static int
remove_attached_of (struct bp_store *store, const struct bp_root *root,
                    struct bp_error *err)
{
  CLEANUP_FREE struct bp_tag *tags = NULL;
  size_t count;
  const int r = bp_store_list_tags (store, &tags, &count, NULL, err);

  if (r < 0)
    return r;
  for (size_t i = 0; i < count; i++)
    if (bp_root_equal (&tags[i].root, root))
      return 0;
  return store_remove_attached_profile (store, root, err);
}

int
bp_store_remove_tag (struct bp_store *store, const char *name,
                     struct bp_error *err)
{
  CLEANUP_STORE_LOCK struct store_lock lock = { -1 };
  char path[STORE_FILE_NAME_SIZE];
  struct bp_tag tag;
  bool known;
  int r = check_tag_name (name, err);

  if (r == 0)
    r = store_lock (store, &lock, err);
  if (r < 0)
    return r;
  known = bp_store_get_tag (store, name, &tag, NULL) == 0;
  if (unlinkat (store->dirfd, store_path (path, "images", name, ".json"),
                0) == -1)
    return errno == ENOENT
             ? bp_error_set (err, -ENOENT, "tag '%s': no such image", name)
             : bp_error_set (err, -errno, "tag '%s': remove: %m", name);
  r = bp_sync_dir (store->dirfd, "images");
  if (r < 0)
    return bp_error_set (err, r, "tag '%s': sync: %m", name);
  return known ? remove_attached_of (store, &tag.root, err) : 0;
}
