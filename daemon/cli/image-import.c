/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* An image's way into the store:
 *
 *   source ─▶ segmenter ─▶ import (blobs)
 *                     └──▶ index writer ─▶ import (index) ─▶ tag
 *
 * All in one thread and one pass; each segment is hashed once.  The index
 * is spooled to a file, so memory does not grow with the image.
 */
#include <config.h>

#include <errno.h>
#include <time.h>

#include "daemon/cli/image-import.h"
#include "lib/base/cleanup.h"
#include "lib/image-index.h"
#include "lib/segmenter.h"

/* Everything that the callbacks need; all owned. */
struct work {
  struct bp_import *import;
  struct bp_segmenter *segmenter;
  struct bp_index_writer *index;
  int spool_fd;
  struct bp_tag *tag;   /* Borrowed; counts are kept in it. */
  struct bp_error *err; /* Borrowed; of the segmenter's callback. */
  uint64_t total;       /* Bytes of the source. */
  bp_progress_fn progress;
  void *opaque;
};

static void
work_done (struct work *work)
{
  bp_import_free (work->import);
  bp_segmenter_free (work->segmenter);
  bp_index_writer_free (work->index);
  cleanup_close (&work->spool_fd);
}

static int
take_segment (void *opaque, uint64_t offset, const uint8_t *data,
              uint32_t len)
{
  struct work *work = opaque;
  struct bp_root root;
  bool is_new;
  int r = bp_import_add_segment (work->import, data, len, &root, &is_new,
                                 work->err);

  if (r == 0)
    r = bp_index_writer_add (work->index, offset, len, &root, work->err);
  if (r < 0)
    return r;
  work->tag->segments++;
  work->tag->bytes += len;
  if (is_new)
    work->tag->bytes_new += len;
  return 0;
}

static void
show_progress (const struct work *work)
{
  if (work->progress)
    work->progress (work->opaque, bp_segmenter_size (work->segmenter),
                    work->total);
}

static int
take_data (void *opaque, const void *data, size_t len, struct bp_error *err)
{
  struct work *work = opaque;

  work->err = err;
  show_progress (work);
  return bp_segmenter_add (work->segmenter, data, len);
}

static int
take_hole (void *opaque, uint64_t len, struct bp_error *err)
{
  struct work *work = opaque;

  work->err = err;
  show_progress (work);
  return bp_segmenter_skip (work->segmenter, len);
}

static int
work_start (struct work *work, struct bp_store *store, enum bp_codec codec,
            struct bp_error *err)
{
  const int r = bp_import_begin (&work->import, store, codec, err);

  if (r < 0)
    return r;
  work->spool_fd = bp_import_spool (work->import, err);
  if (work->spool_fd < 0)
    return work->spool_fd;
  if (bp_segmenter_new (&work->segmenter, take_segment, work) < 0 ||
      bp_index_writer_new (&work->index, work->spool_fd) < 0)
    return bp_error_set (err, -ENOMEM, "import: %m");
  return 0;
}

static int
read_index (void *opaque, uint64_t offset, void *buf, size_t len,
            struct bp_error *err)
{
  struct work *work = opaque;

  return bp_index_writer_read (work->index, offset, buf, len, err);
}

/* The index becomes a blob, and its root the tag's. */
static int
store_index (struct work *work, struct bp_error *err)
{
  struct bp_index index;
  bool is_new;
  int r;

  work->tag->size = bp_segmenter_size (work->segmenter);
  r = bp_index_writer_finish (work->index, work->tag->size, &index, err);
  return r < 0 ? r
               : bp_import_add_blob (work->import, index.blob_size,
                                     read_index, work, &work->tag->root,
                                     &is_new, err);
}

static void
set_created (struct bp_tag *tag)
{
  const time_t now = time (NULL);
  struct tm tm;

  gmtime_r (&now, &tm);
  strftime (tag->created, sizeof tag->created, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

int
image_import (struct bp_store *store, struct import_source *source,
              enum bp_codec codec, struct bp_tag *tag,
              bp_progress_fn progress, void *opaque, struct bp_error *err)
{
  __attribute__ ((cleanup (work_done))) struct work work = {
    .spool_fd = -1,
    .tag = tag,
    .total = source->size,
    .progress = progress,
    .opaque = opaque,
  };
  const struct import_sink sink = {
    .data = take_data,
    .hole = take_hole,
    .opaque = &work,
  };
  int r = work_start (&work, store, codec, err);

  if (r == 0)
    r = import_source_read (source, &sink, err);
  work.err = err;
  if (r == 0)
    r = bp_segmenter_finish (work.segmenter);
  if (r == 0)
    r = store_index (&work, err);
  if (r < 0)
    return r;
  set_created (tag);
  tag->stored_new = bp_import_stored (work.import);
  return bp_import_commit (work.import, tag, err);
}
