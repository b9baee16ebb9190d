/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Direct exports: the name decides what is opened; after that an image is
 * an image reader and a blob is read window by window.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "nbdkit-plugin/direct-export.h"
#include "nbdkit-plugin/image-reader.h"

struct direct_export {
  struct window_cache *cache; /* Borrowed. */
  struct bp_root root;
  struct image_reader *image; /* One of these two is NULL. */
  struct bp_blob *blob;
};

/* ---- Opening ---- */

static int
open_image (struct direct_export *export, struct bp_store *store,
            const struct bp_root *root, struct bp_error *err)
{
  export->root = *root;
  return image_reader_new (&export->image, store, export->cache, root, err);
}

/* The size served is the index's; a tag that says another is malformed. */
static int
open_tag (struct direct_export *export, struct bp_store *store,
          const struct bp_tag *tag, struct bp_error *err)
{
  const int r = open_image (export, store, &tag->root, err);

  if (r < 0)
    return r;
  if (image_reader_size (export->image) != tag->size)
    return bp_error_set (err, -EPROTO,
                         "tag says %" PRIu64 " bytes, its index %" PRIu64,
                         tag->size, image_reader_size (export->image));
  return 0;
}

static int
open_blob (struct direct_export *export, struct bp_store *store,
           const char *hex, struct bp_error *err)
{
  int r = bp_root_parse (hex, &export->root);

  if (r < 0)
    return bp_error_set (err, -ENOENT, "not a root");
  return bp_store_open_blob (store, &export->root, &export->blob, err);
}

int
direct_find_only_tag (struct bp_store *store, struct bp_tag *ret_tag,
                      struct bp_error *err)
{
  CLEANUP_FREE struct bp_tag *tags = NULL;
  size_t count;
  int r = bp_store_list_tags (store, &tags, &count, NULL, err);

  if (r < 0)
    return r;
  if (count != 1)
    return bp_error_set (err, -ENOENT,
                         "the store holds %zu images: name one", count);
  *ret_tag = tags[0];
  return 0;
}

static int
open_by_name (struct direct_export *export, struct bp_store *store,
              const char *name, struct bp_error *err)
{
  static const char blob_prefix[] = "blob/";
  struct bp_root root;
  struct bp_tag tag;
  int r;

  if (strncmp (name, blob_prefix, sizeof blob_prefix - 1) == 0)
    return open_blob (export, store, name + sizeof blob_prefix - 1, err);
  if (bp_root_parse (name, &root) == 0)
    return open_image (export, store, &root, err);
  if (*name == '\0')
    r = direct_find_only_tag (store, &tag, err);
  else if (bp_is_tag_name (name))
    r = bp_store_get_tag (store, name, &tag, err);
  else
    r = bp_error_set (err, -ENOENT, "not the name of an image");
  return r < 0 ? r : open_tag (export, store, &tag, err);
}

int
direct_export_open (struct direct_export **ret_export,
                    struct bp_store *store, struct window_cache *cache,
                    const char *name, struct bp_error *err)
{
  struct direct_export *export = calloc (1, sizeof *export);
  int r;

  if (export == NULL)
    return bp_error_set (err, -ENOMEM, "export: %m");
  export->cache = cache;
  r = open_by_name (export, store, name, err);
  if (r < 0) {
    direct_export_close (export);
    return bp_error_wrap (err, r, "export '%.80s'", name);
  }
  *ret_export = export;
  return 0;
}

void
direct_export_close (struct direct_export *export)
{
  if (export == NULL)
    return;
  image_reader_free (export->image);
  if (export->blob)
    bp_blob_close (export->blob);
  free (export);
}

bool
direct_export_is_image (const struct direct_export *export)
{
  return export->image != NULL;
}

const struct bp_root *
direct_export_root (const struct direct_export *export)
{
  return &export->root;
}

uint64_t
direct_export_size (const struct direct_export *export)
{
  return export->image ? image_reader_size (export->image)
                       : bp_blob_get_info (export->blob)->size;
}

/* ---- Reading ---- */

static int
read_blob (struct direct_export *export, uint8_t *buf, size_t len,
           uint64_t offset, struct bp_error *err)
{
  while (len > 0) {
    const uint64_t start = round_down (offset, BP_WINDOW_SIZE);
    struct window *window;
    size_t n;
    int r = window_cache_get (export->cache, export->blob, start, &window,
                              err);

    if (r < 0)
      return r;
    n = MIN (len, window->len - (offset - start));
    memcpy (buf, window->data + (offset - start), n);
    window_cache_put (export->cache, window);
    buf += n;
    len -= n;
    offset += n;
  }
  return 0;
}

int
direct_export_read (struct direct_export *export, void *buf, uint32_t count,
                    uint64_t offset, struct bp_error *err)
{
  if (!range_is_within (direct_export_size (export), offset, count))
    return bp_error_set (err, -EINVAL, "export: a read beyond the end");
  return export->image
           ? image_reader_read (export->image, buf, count, offset, err)
           : read_blob (export, buf, count, offset, err);
}

int
direct_export_extents (struct direct_export *export, uint32_t count,
                       uint64_t offset, bool is_one, direct_extent_fn fn,
                       void *opaque, struct bp_error *err)
{
  const uint64_t size = direct_export_size (export);
  const uint64_t end = offset + MIN (count, size - MIN (size, offset));
  bool was_hole = false;

  for (uint64_t at = offset; at < end;) {
    struct bp_extent extent;
    int r = image_reader_lookup (export->image, at, end, &extent, err);

    if (r < 0)
      return r;
    if (is_one && at > offset && extent.is_hole != was_hole)
      return 0;
    was_hole = extent.is_hole;
    if (fn (opaque, at, extent.len, extent.is_hole) != 0)
      return bp_error_set (err, -ENOMEM, "extents: %m");
    at += extent.len;
  }
  return 0;
}

int
direct_export_will_need (struct direct_export *export, uint32_t count,
                         uint64_t offset, struct bp_error *err)
{
  if (!range_is_within (direct_export_size (export), offset, count))
    return bp_error_set (err, -EINVAL, "export: a read beyond the end");
  return image_reader_will_need (export->image, count, offset, err);
}
