/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Reading an image.
 *
 * A lookup in the index asks for windows by number and borrows them until
 * it returns; the windows it was given are held here until then:
 *
 *   bp_index_lookup ──▶ give_checked ──▶ window_cache ──▶ store
 *                           │ first time: bp_index_check_window, whose
 *                           ▼ fences come through give_verified
 *                       held[]
 *
 * A window is checked against the rules of the format once, after its
 * digest; the mark stays with it in the cache.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "nbdkit-plugin/image-reader.h"

enum {
  MAX_HELD = 64,       /* More than the fences' binary search can ask. */
  WILL_NEED_BATCH = 64 /* Blobs. */
};

struct image_reader {
  struct bp_store *store;     /* Borrowed. */
  struct window_cache *cache; /* Borrowed. */
  struct bp_blob *blob;       /* The index. */
  struct bp_index index;
};

/* The windows that one lookup has been given. */
struct lookup {
  struct image_reader *reader;
  struct window *held[MAX_HELD];
  size_t nr_held;
  int code;            /* 0, or why a window could not be given. */
  struct bp_error err; /* If code is not 0. */
};

static void
begin_lookup (struct lookup *lookup, struct image_reader *reader)
{
  lookup->reader = reader;
  lookup->nr_held = 0;
  lookup->code = 0;
}

static void
cleanup_lookup (struct lookup *lookup)
{
  while (lookup->nr_held > 0)
    window_cache_put (lookup->reader->cache,
                      lookup->held[--lookup->nr_held]);
}
#define CLEANUP_LOOKUP __attribute__ ((cleanup (cleanup_lookup)))

/* The error of a lookup that returned R, which is not 0. */
static int
explain (const struct lookup *lookup, int r, struct bp_error *err)
{
  if (lookup->code == 0)
    return bp_error_set (err, r, "image index: contradicts itself");
  if (err)
    *err = lookup->err;
  return lookup->code;
}

static struct window *
find_held (const struct lookup *lookup, uint64_t w)
{
  for (size_t i = 0; i < lookup->nr_held; i++)
    if (lookup->held[i]->offset == w * BP_WINDOW_SIZE)
      return lookup->held[i];
  return NULL;
}

static int
hold_window (struct lookup *lookup, uint64_t w, struct window **ret_window)
{
  struct image_reader *reader = lookup->reader;
  struct window *window;
  int r;

  if (w > reader->index.nr_fences || lookup->nr_held == MAX_HELD)
    return bp_error_set (&lookup->err, -EPROTO,
                         "image index: no window %" PRIu64, w);
  r = window_cache_get (reader->cache, reader->blob, w * BP_WINDOW_SIZE,
                        &window, &lookup->err);
  if (r < 0)
    return r;
  lookup->held[lookup->nr_held++] = window;
  *ret_window = window;
  return 0;
}

/* bp_index_window_fn: a window whose digest matches. */
static const uint8_t *
give_verified (void *opaque, uint64_t w)
{
  struct lookup *lookup = opaque;
  struct window *window = find_held (lookup, w);

  if (window)
    return window->data;
  lookup->code = hold_window (lookup, w, &window);
  return lookup->code < 0 ? NULL : window->data;
}

static int
check_window (struct lookup *lookup, uint64_t w,
              const struct window *window)
{
  const struct bp_index *index = &lookup->reader->index;
  CLEANUP_LOOKUP struct lookup fences;
  uint64_t first, next, missing;
  int r;

  begin_lookup (&fences, lookup->reader);
  r = bp_index_fences_of (index, give_verified, &fences, w, &first, &next,
                          &missing);
  if (r < 0)
    return explain (&fences, r, &lookup->err);
  return bp_index_check_window (index, w, window->data, window->len, first,
                                next, &lookup->err);
}

/* bp_index_window_fn: a window that has been checked, too. */
static const uint8_t *
give_checked (void *opaque, uint64_t w)
{
  struct lookup *lookup = opaque;
  struct window_cache *cache = lookup->reader->cache;
  struct window *window = find_held (lookup, w);

  if (window)
    return window->data;
  lookup->code = hold_window (lookup, w, &window);
  if (lookup->code < 0)
    return NULL;
  if (!window_is_checked (cache, window)) {
    lookup->code = check_window (lookup, w, window);
    if (lookup->code < 0)
      return NULL;
    window_set_checked (cache, window);
  }
  return window->data;
}

int
image_reader_lookup (struct image_reader *reader, uint64_t offset,
                     uint64_t end, struct bp_extent *ret_extent,
                     struct bp_error *err)
{
  CLEANUP_LOOKUP struct lookup lookup;
  uint64_t missing;
  int r;

  begin_lookup (&lookup, reader);
  r = bp_index_lookup (&reader->index, give_checked, &lookup, offset,
                       ret_extent, &missing);
  if (r < 0)
    return explain (&lookup, r, err);
  ret_extent->len = MIN (ret_extent->len, end - offset);
  return 0;
}

static int
read_header (struct image_reader *reader, struct bp_error *err)
{
  const struct bp_blob_info *info = bp_blob_get_info (reader->blob);
  struct window *window;
  int r = window_cache_get (reader->cache, reader->blob, 0, &window, err);

  if (r < 0)
    return r;
  r = bp_index_decode_header (window->data, window->len, info->size,
                              &reader->index, err);
  window_cache_put (reader->cache, window);
  return r;
}

int
image_reader_new (struct image_reader **ret_reader, struct bp_store *store,
                  struct window_cache *cache, const struct bp_root *root,
                  struct bp_error *err)
{
  struct image_reader *reader = calloc (1, sizeof *reader);
  int r;

  if (reader == NULL)
    return bp_error_set (err, -ENOMEM, "image: %m");
  reader->store = store;
  reader->cache = cache;
  r = bp_store_open_blob (store, root, &reader->blob, err);
  if (r == 0)
    r = read_header (reader, err);
  if (r < 0) {
    image_reader_free (reader);
    return r;
  }
  *ret_reader = reader;
  return 0;
}

void
image_reader_free (struct image_reader *reader)
{
  if (reader == NULL)
    return;
  if (reader->blob)
    bp_blob_close (reader->blob);
  free (reader);
}

uint64_t
image_reader_size (const struct image_reader *reader)
{
  return reader->index.image_size;
}

/* ---- Bytes ---- */

static int
refuse_size (const struct bp_extent *extent, uint64_t size,
             struct bp_error *err)
{
  return bp_error_set (err, -EPROTO,
                       "segment at offset %" PRIu64 ": its blob has %" PRIu64
                       " bytes, the index says %" PRIu32,
                       extent->segment_offset, size, extent->blob_len);
}

/* Open the blob of EXTENT, which must have the size that the index says.
 */
static int
open_segment (struct image_reader *reader, const struct bp_extent *extent,
              struct bp_blob **ret_blob, struct bp_error *err)
{
  struct bp_blob *blob;
  uint64_t size;
  int r = bp_store_open_blob (reader->store, &extent->root, &blob, err);

  if (r < 0)
    return bp_error_wrap (err, r, "segment at offset %" PRIu64,
                          extent->segment_offset);
  size = bp_blob_get_info (blob)->size;
  if (size != extent->blob_len) {
    bp_blob_close (blob);
    return refuse_size (extent, size, err);
  }
  *ret_blob = blob;
  return 0;
}

/* The segment was not in the cache.  All of it is verified in BUF, part
 * of it in a window that is then kept.
 */
static int
read_segment (struct image_reader *reader, const struct bp_extent *extent,
              uint8_t *buf, struct bp_error *err)
{
  struct bp_blob *blob;
  struct window *window;
  int r = open_segment (reader, extent, &blob, err);

  if (r < 0)
    return r;
  if (extent->len == extent->blob_len)
    r = bp_blob_read_verified (blob, buf, extent->blob_len, 0, err);
  else {
    r = window_cache_get (reader->cache, blob, 0, &window, err);
    if (r == 0) {
      memcpy (buf, window->data + extent->blob_offset, extent->len);
      window_cache_put (reader->cache, window);
    }
  }
  bp_blob_close (blob);
  if (r < 0)
    return bp_error_wrap (err, r, "segment at offset %" PRIu64,
                          extent->segment_offset);
  return 0;
}

static int
read_extent (struct image_reader *reader, const struct bp_extent *extent,
             uint8_t *buf, struct bp_error *err)
{
  struct window *window;
  int r = 0;

  if (extent->is_hole) {
    memset (buf, 0, extent->len);
    return 0;
  }
  window = window_cache_find (reader->cache, &extent->root, 0);
  if (window == NULL)
    return read_segment (reader, extent, buf, err);
  if (window->blob_size == extent->blob_len)
    memcpy (buf, window->data + extent->blob_offset, extent->len);
  else
    r = refuse_size (extent, window->blob_size, err);
  window_cache_put (reader->cache, window);
  return r;
}

int
image_reader_read (struct image_reader *reader, void *buf, size_t len,
                   uint64_t offset, struct bp_error *err)
{
  const uint64_t end = offset + len;
  uint8_t *p = buf;

  while (offset < end) {
    struct bp_extent extent;
    int r = image_reader_lookup (reader, offset, end, &extent, err);

    if (r == 0)
      r = read_extent (reader, &extent, p, err);
    if (r < 0)
      return r;
    p += extent.len;
    offset += extent.len;
  }
  return 0;
}

static void
flush_batch (struct bp_blob **blobs, size_t *count)
{
  bp_blobs_will_need (blobs, *count);
  while (*count > 0)
    bp_blob_close (blobs[--*count]);
}

int
image_reader_will_need (struct image_reader *reader, uint64_t len,
                        uint64_t offset, struct bp_error *err)
{
  const uint64_t end = offset + len;
  struct bp_blob *blobs[WILL_NEED_BATCH];
  size_t count = 0;
  int r = 0;

  while (r == 0 && offset < end) {
    struct bp_extent extent;

    r = image_reader_lookup (reader, offset, end, &extent, err);
    if (r == 0 && !extent.is_hole) {
      r = open_segment (reader, &extent, &blobs[count], err);
      count += r == 0;
    }
    if (count == WILL_NEED_BATCH)
      flush_batch (blobs, &count);
    if (r == 0)
      offset += extent.len;
  }
  flush_batch (blobs, &count);
  return r;
}
