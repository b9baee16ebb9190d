/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Writing an image index.  Entries go to the spool file back to back, in
 * their final form; after finish any part of the blob can be composed from
 * it: the header from the counts, a fence from the entry it repeats, and
 * the entries of a window, which are neighbours in the spool, by one read.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/io.h"
#include "lib/image-index-layout.h"
#include "lib/segmenter.h"

enum {
  BUFFER_ENTRIES = 1024
};

struct bp_index_writer {
  int spool_fd;          /* Borrowed. */
  uint64_t nr_spooled;   /* Entries in the file. */
  uint32_t nr_buffered;  /* Entries behind them, in buffer. */
  uint64_t end;          /* Of the last segment, in the image. */
  struct bp_index index; /* After finish. */
  uint8_t buffer[BUFFER_ENTRIES * BP_INDEX_ENTRY_SIZE];
};

int
bp_index_writer_new (struct bp_index_writer **ret_writer, int spool_fd)
{
  struct bp_index_writer *writer = calloc (1, sizeof *writer);

  if (writer == NULL)
    return -ENOMEM;
  writer->spool_fd = spool_fd;
  *ret_writer = writer;
  return 0;
}

void
bp_index_writer_free (struct bp_index_writer *writer)
{
  free (writer);
}

static uint64_t
nr_entries (const struct bp_index_writer *writer)
{
  return writer->nr_spooled + writer->nr_buffered;
}

static int
flush_buffer (struct bp_index_writer *writer, struct bp_error *err)
{
  const int r = bp_pwrite_all (
    writer->spool_fd, writer->buffer,
    (size_t) writer->nr_buffered * BP_INDEX_ENTRY_SIZE,
    writer->nr_spooled * BP_INDEX_ENTRY_SIZE);

  if (r < 0)
    return bp_error_set (err, r, "image index: spool: write: %m");
  writer->nr_spooled += writer->nr_buffered;
  writer->nr_buffered = 0;
  return 0;
}

/* A segment may follow what is there.  Only the last may end off a block,
 * so whatever follows such a one is refused.
 */
static bool
can_add (const struct bp_index_writer *writer, uint64_t offset, uint32_t len)
{
  return offset % BP_SEGMENT_BLOCK == 0 && offset >= writer->end &&
         writer->end % BP_SEGMENT_BLOCK == 0 && len > 0 &&
         len <= BP_SEGMENT_MAX &&
         range_is_within (BP_IMAGE_MAX_SIZE, offset, len);
}

int
bp_index_writer_add (struct bp_index_writer *writer, uint64_t offset,
                     uint32_t len, const struct bp_root *root,
                     struct bp_error *err)
{
  uint8_t *p;
  int r;

  if (!can_add (writer, offset, len))
    return bp_error_set (err, -EINVAL,
                         "image index: segment of %u bytes at offset %" PRIu64
                         " cannot be added",
                         len, offset);
  if (nr_entries (writer) == BP_INDEX_MAX_ENTRIES)
    return bp_error_set (err, -EFBIG, "image index: too many segments");
  if (writer->nr_buffered == BUFFER_ENTRIES) {
    r = flush_buffer (writer, err);
    if (r < 0)
      return r;
  }
  p = writer->buffer + (size_t) writer->nr_buffered * BP_INDEX_ENTRY_SIZE;
  put_le64 (p, offset);
  put_le32 (p + BP_INDEX_AT_LENGTH, len);
  put_le32 (p + BP_INDEX_AT_FLAGS, 0);
  memcpy (p + BP_INDEX_AT_ROOT, root->bytes, BP_ROOT_SIZE);
  writer->nr_buffered++;
  writer->end = offset + len;
  return 0;
}

int
bp_index_writer_finish (struct bp_index_writer *writer, uint64_t image_size,
                        struct bp_index *ret_index, struct bp_error *err)
{
  const uint64_t count = nr_entries (writer);
  int r;

  if (image_size < writer->end || image_size > BP_IMAGE_MAX_SIZE ||
      (writer->end % BP_SEGMENT_BLOCK != 0 && writer->end != image_size))
    return bp_error_set (err, -EINVAL,
                         "image index: image size %" PRIu64
                         " does not fit its segments",
                         image_size);
  if (bp_index_blob_size (count) > BP_BLOB_MAX_SIZE)
    return bp_error_set (err, -EFBIG, "image index: too many segments");
  r = flush_buffer (writer, err);
  if (r < 0)
    return r;
  writer->index = (struct bp_index){
    .image_size = image_size,
    .nr_entries = count,
    .nr_fences = bp_index_nr_fences (count),
    .blob_size = bp_index_blob_size (count),
  };
  *ret_index = writer->index;
  return 0;
}

/* ---- Composing ---- */

/* The part of the blob that is asked for. */
struct range {
  uint64_t offset;
  size_t len;
  uint8_t *buf; /* Zeroed before. */
};

/* Copy what RANGE wants of the LEN bytes that stand at AT of the blob. */
static void
give (const struct range *range, uint64_t at, const void *data, size_t len)
{
  const uint64_t from = MAX (at, range->offset);
  const uint64_t to = MIN (at + len, range->offset + range->len);

  if (from < to)
    memcpy (range->buf + (from - range->offset),
            (const uint8_t *) data + (from - at), to - from);
}

static void
give_header (const struct bp_index *index, const struct range *range)
{
  uint8_t header[BP_INDEX_HEADER_SIZE] = BP_INDEX_MAGIC;

  put_le64 (header + BP_INDEX_AT_IMAGE_SIZE, index->image_size);
  put_le64 (header + BP_INDEX_AT_NR_ENTRIES, index->nr_entries);
  put_le32 (header + BP_INDEX_AT_ENTRY_SIZE, BP_INDEX_ENTRY_SIZE);
  put_le32 (header + BP_INDEX_AT_NR_FENCES, index->nr_fences);
  give (range, 0, header, sizeof header);
}

/* Fence I repeats the offset of the first entry in window I + 1. */
static int
give_fence (const struct bp_index_writer *writer, const struct range *range,
            uint64_t i)
{
  const struct bp_index_run run = bp_index_run_of (&writer->index, i + 1);
  uint8_t fence[BP_INDEX_FENCE_SIZE] = { 0 };
  int r = 0;

  if (run.count > 0)
    r = bp_pread_exact (writer->spool_fd, fence, sizeof fence,
                        run.first * BP_INDEX_ENTRY_SIZE);
  if (r == 0)
    give (range, bp_index_fence_at (i), fence, sizeof fence);
  return r;
}

static int
give_fences (const struct bp_index_writer *writer, const struct range *range)
{
  const uint64_t from = MAX (range->offset, BP_INDEX_HEADER_SIZE);
  const uint64_t to = MIN (range->offset + range->len,
                           bp_index_fence_at (writer->index.nr_fences));
  int r = 0;

  for (uint64_t at = round_down (from, BP_INDEX_FENCE_SIZE);
       r == 0 && at < to; at += BP_INDEX_FENCE_SIZE)
    r = give_fence (writer, range,
                    (at - BP_INDEX_HEADER_SIZE) / BP_INDEX_FENCE_SIZE);
  return r;
}

/* The entries of window W that RANGE wants, read into place. */
static int
give_entries (const struct bp_index_writer *writer,
              const struct range *range, uint64_t w)
{
  const struct bp_index_run run = bp_index_run_of (&writer->index, w);
  const uint64_t start = w * BP_WINDOW_SIZE + run.at;
  const uint64_t from = MAX (start, range->offset);
  const uint64_t to = MIN (start + (uint64_t) run.count * BP_INDEX_ENTRY_SIZE,
                           range->offset + range->len);

  if (from >= to)
    return 0;
  return bp_pread_exact (writer->spool_fd,
                         range->buf + (from - range->offset), to - from,
                         run.first * BP_INDEX_ENTRY_SIZE + from - start);
}

int
bp_index_writer_read (struct bp_index_writer *writer, uint64_t offset,
                      void *buf, size_t len, struct bp_error *err)
{
  const struct range range = { .offset = offset, .len = len, .buf = buf };
  int r;

  assert (range_is_within (writer->index.blob_size, offset, len));
  if (len == 0)
    return 0;
  memset (buf, 0, len);
  give_header (&writer->index, &range);
  r = give_fences (writer, &range);
  for (uint64_t w = offset / BP_WINDOW_SIZE;
       r == 0 && w <= (offset + len - 1) / BP_WINDOW_SIZE; w++)
    r = give_entries (writer, &range, w);
  if (r < 0)
    return bp_error_set (err, r, "image index: spool: read: %m");
  return 0;
}
