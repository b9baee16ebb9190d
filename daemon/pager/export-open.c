/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Resolving the name of an export.
 *
 *   ""          the only image
 *   TAG         the driver says which root; --pin may object
 *   TAG@ROOT    that root, whatever TAG is now
 *   ROOT        an image
 *   blob/ROOT   any blob, as a disk
 *
 * The driver's word is taken for a tag, and for the size of a blob until
 * it is proven: an image's by window 0 of its index, which gives the size
 * of the whole; another blob's by its last window.
 *
 * A tag says how many entries its index has, hence how large that is: so
 * the index can be read at once.  If the tag is wrong the driver is asked
 * for the size, as it is where there is no tag.
 *
 * Everything here runs on a worker thread, and blocks.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/base/size.h"
#include "daemon/options.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/internal.h"

/* ---- Waiting, on a worker ---- */

struct blocking_wait {
  union {
    struct waiter waiter; /* First, both. */
    struct blob_open open;
  };
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_over;
  int status;
};

static void
wait_init (struct blocking_wait *wait)
{
  memset (wait, 0, sizeof *wait);
  pthread_mutex_init (&wait->lock, NULL);
  pthread_cond_init (&wait->changed, NULL);
}

static void
wait_over (struct blocking_wait *wait, int status)
{
  LOCKED (&wait->lock);

  wait->status = status;
  wait->is_over = true;
  pthread_cond_signal (&wait->changed);
}

static int
wait_done (struct blocking_wait *wait)
{
  pthread_mutex_lock (&wait->lock);
  while (!wait->is_over)
    pthread_cond_wait (&wait->changed, &wait->lock);
  pthread_mutex_unlock (&wait->lock);
  pthread_mutex_destroy (&wait->lock);
  pthread_cond_destroy (&wait->changed);
  return wait->status;
}

static void
wake_blocked (struct waiter *waiter, int status)
{
  wait_over ((struct blocking_wait *) waiter, status);
}

static void
opened (struct blob_open *open, int status)
{
  wait_over ((struct blocking_wait *) open, status);
}

/* A reference to the verified window that holds OFFSET. */
static int
fetch_window (struct export *export, uint64_t offset, uint64_t blob_size,
              struct window **ret_window)
{
  struct cache *cache = export->pager->cache;
  struct fetch_batch batch = { .user = export->user };
  struct blocking_wait wait;
  struct window *window;
  int r;

  window = cache_get (cache, &export->info.root, offset, blob_size);
  if (window == NULL)
    return -ENOMEM;
  wait_init (&wait);
  wait.waiter.window = window;
  wait.waiter.wake = wake_blocked;
  r = cache_wait (cache, &wait.waiter, &batch);
  cache_submit (cache, &batch);
  if (r != 1)
    wait_over (&wait, r);
  r = wait_done (&wait);
  if (r < 0) {
    cache_put (cache, window);
    return r;
  }
  *ret_window = window;
  return 0;
}

/* What the driver says is the size of the export's blob. */
static int
ask_blob_size (struct export *export, uint64_t *ret_size)
{
  struct blocking_wait wait;
  struct blob_open *open = &wait.open;
  int r;

  wait_init (&wait);
  wait.open.root = export->info.root;
  wait.open.class = FETCH_DEMAND;
  wait.open.user = export->user->user;
  wait.open.done = opened;
  fetcher_open_blobs (export->pager->fetcher, &open, 1);
  r = wait_done (&wait);
  if (r < 0)
    return r;
  if (wait.open.size > BP_BLOB_MAX_SIZE)
    return -EPROTO;
  *ret_size = wait.open.size;
  return 0;
}

/* ---- Images ---- */

/* Window 0 is verified: decode and check it. */
static int
use_index (struct export *export, struct window *window,
           struct bp_error *err)
{
  struct index_view view = { .pager = export->pager, .export = export };
  int r;

  r = bp_index_decode_header (window->data, window->len,
                              window->blob_size, &export->index, err);
  if (r < 0)
    return r;
  export->info.size = export->index.image_size;
  r = index_check (&view, 0, window);
  index_view_done (&view);
  if (r < 0)
    return bp_error_set (err, -EPROTO, "export '%s': index is malformed",
                         export->info.name);
  return 0;
}

/* The first window of the index, of BLOB_SIZE bytes if that is not 0. */
static int
fetch_index (struct export *export, uint64_t blob_size,
             struct window **ret_window)
{
  int r = -EPROTO;

  if (blob_size > 0)
    r = fetch_window (export, 0, blob_size, ret_window);
  if (r != -EPROTO)
    return r;
  r = ask_blob_size (export, &blob_size);
  if (r < 0)
    return r;
  if (blob_size < BP_INDEX_HEADER_SIZE)
    return -EPROTO;
  return fetch_window (export, 0, blob_size, ret_window);
}

static int
attach_image (struct export *export, const struct bp_tag *tag,
              struct bp_error *err)
{
  const uint64_t max_entries = BP_BLOB_MAX_SIZE / BP_INDEX_ENTRY_SIZE;
  const char *name = export->info.name;
  uint64_t blob_size = 0;
  struct window *window;
  int r;

  export->info.kind = EXPORT_IMAGE;
  if (tag && tag->segments < max_entries)
    blob_size = bp_index_blob_size (tag->segments);
  r = fetch_index (export, blob_size, &window);
  if (r < 0)
    return bp_error_set (err, r, "export '%s': image index: %m", name);
  r = use_index (export, window, err);
  cache_put (export->pager->cache, window);
  if (r < 0)
    return r;
  if (tag && tag->size != export->info.size)
    return bp_error_set (err, -EPROTO,
                         "export '%s': the tag says %llu bytes, the index "
                         "%llu",
                         name, (unsigned long long) tag->size,
                         (unsigned long long) export->info.size);
  if (tag)
    atomic_store (&export->placed_bytes, tag->bytes);
  return 0;
}

/* ---- Blobs ---- */

static int
check_empty_blob (const struct bp_root *root)
{
  struct bp_window window = { .data = "", .root = root };

  bp_verify_windows (&window, 1);
  return window.status == 0 ? 0 : -EPROTO;
}

static int
attach_blob (struct export *export, struct bp_error *err)
{
  struct window *window;
  uint64_t size = 0;
  int r;

  export->info.kind = EXPORT_BLOB;
  r = ask_blob_size (export, &size);
  if (r == 0 && size == 0)
    r = check_empty_blob (&export->info.root);
  else if (r == 0) {
    r = fetch_window (export, size - 1, size, &window);
    if (r == 0)
      cache_put (export->pager->cache, window);
  }
  if (r < 0)
    return bp_error_set (err, r, "export '%s': %m", export->info.name);
  export->info.size = size;
  return 0;
}

/* ---- Names ---- */

/* --pin: TAG may name no other root. */
static int
check_pins (const struct export *export, struct bp_error *err)
{
  const struct options *options = export->pager->options;
  size_t i;

  for (i = 0; i < options->nr_pins; i++)
    if (strcmp (options->pins[i].tag, export->info.tag) == 0 &&
        !bp_root_equal (&options->pins[i].root, &export->info.root))
      return bp_error_set (err, -EPERM,
                           "export '%s': its root is not the one that is "
                           "pinned",
                           export->info.name);
  return 0;
}

static int
attach_by_tag (struct export *export, const struct bp_tag *tag,
               struct bp_error *err)
{
  int r;

  strcpy (export->info.name, tag->name);
  strcpy (export->info.tag, tag->name);
  export->info.root = tag->root;
  r = check_pins (export, err);
  if (r == 0)
    r = attach_image (export, tag, err);
  /* The tag is there: a store that lacks its index is damaged, and must
   * not look like a name that nobody has given.
   */
  return r == -ENOENT ? bp_error_set (err, -EIO,
                                      "export '%s': the store lacks its "
                                      "image index",
                                      tag->name)
                      : r;
}

static int
attach_only_image (struct export *export, struct bp_error *err)
{
  CLEANUP_FREE struct bp_tag *tags = NULL;
  size_t count;
  int r;

  r = driver_list_images (export->pager->driver, &tags, &count, err);
  if (r < 0)
    return r;
  if (count != 1)
    return bp_error_set (err, -ENOENT,
                         "export '': the store holds %zu images, not one",
                         count);
  return attach_by_tag (export, &tags[0], err);
}

static int
no_such_export (const char *name, struct bp_error *err)
{
  return bp_error_set (err, -ENOENT, "export '%s': no such image", name);
}

/* TAG@ROOT; AT points to the '@'. */
static int
attach_tag_at_root (struct export *export, const char *at,
                    struct bp_error *err)
{
  struct export_info *info = &export->info;
  const size_t len = (size_t) (at - info->name);
  int r;

  if (len >= sizeof info->tag || bp_root_parse (at + 1, &info->root) < 0)
    return no_such_export (info->name, err);
  memcpy (info->tag, info->name, len);
  info->tag[len] = '\0';
  if (!bp_is_tag_name (info->tag))
    return no_such_export (info->name, err);
  r = check_pins (export, err);
  return r < 0 ? r : attach_image (export, NULL, err);
}

static int
attach (struct export *export, struct bp_error *err)
{
  struct export_info *info = &export->info;
  const char *at = strchr (info->name, '@');
  struct bp_tag tag;
  int r;

  if (info->name[0] == '\0')
    return attach_only_image (export, err);
  if (strncmp (info->name, "blob/", 5) == 0)
    return bp_root_parse (info->name + 5, &info->root) < 0
             ? no_such_export (info->name, err)
             : attach_blob (export, err);
  if (at)
    return attach_tag_at_root (export, at, err);
  if (bp_root_parse (info->name, &info->root) == 0)
    return attach_image (export, NULL, err);
  if (!bp_is_tag_name (info->name))
    return no_such_export (info->name, err);
  r = driver_get_image (export->pager->driver, info->name, &tag, err);
  return r < 0 ? r : attach_by_tag (export, &tag, err);
}

static void
describe (struct export_info *info)
{
  char hex[BP_ROOT_HEX_SIZE], size[32];

  snprintf (info->description, sizeof info->description, "%s of %s, root %s",
            info->kind == EXPORT_IMAGE ? "image" : "blob",
            bp_size_format (info->size, size, sizeof size),
            bp_root_format (&info->root, hex));
}

int
export_resolve (struct pager *pager, const char *name,
                struct export **ret_export, struct bp_error *err)
{
  struct export *export =
    aligned_alloc (_Alignof(struct export), sizeof *export);
  int r;

  if (export == NULL)
    return bp_error_set (err, -ENOMEM, "export '%s': out of memory", name);
  memset (export, 0, sizeof *export);
  cache_charge (pager->cache, sizeof *export);
  export->pager = pager;
  export->refs = 1;
  read_ahead_init (&export->ahead);
  pthread_mutex_init (&export->stall_lock, NULL);
  strcpy (export->info.name, name);
  export->user = page_user_new (pager->fetcher);
  r = export->user
        ? attach (export, err)
        : bp_error_set (err, -ENOMEM, "export '%s': out of memory", name);
  if (r < 0) {
    export_free (export);
    return r;
  }
  describe (&export->info);
  *ret_export = export;
  return 0;
}

void
export_find_placed_bytes (struct export *export)
{
  CLEANUP_FREE struct bp_tag *tags = NULL;
  size_t count, i;

  if (export->info.kind != EXPORT_IMAGE || export_placed_bytes (export) > 0 ||
      !export->pager->options->profile_auto ||
      driver_list_images (export->pager->driver, &tags, &count, NULL) < 0)
    return;
  for (i = 0; i < count; i++)
    if (bp_root_equal (&tags[i].root, &export->info.root))
      atomic_store (&export->placed_bytes, tags[i].bytes);
}
