/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Images in memory.  Whatever fails ends the process. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/image.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/segmenter.h"

static void
must (int r, const char *what)
{
  if (r < 0) {
    fprintf (stderr, "%s: error %d\n", what, r);
    abort ();
  }
}

static int
keep_segment (void *opaque, uint64_t offset, const uint8_t *data,
              uint32_t len)
{
  struct segments *segments = opaque;
  struct segment *segment;

  /* Grow at each power of two. */
  if ((segments->count & (segments->count - 1)) == 0) {
    segments->list =
      realloc (segments->list,
               MAX (2 * segments->count, 1) * sizeof *segments->list);
    must (segments->list ? 0 : -1, "realloc");
  }
  segment = &segments->list[segments->count++];
  segment->offset = offset;
  segment->len = len;
  return bp_merkle_root (data, len, &segment->root);
}

void
segments_of (struct segments *segments, const uint8_t *image, size_t len,
             size_t piece)
{
  struct bp_segmenter *segmenter;

  *segments = (struct segments){ 0 };
  must (bp_segmenter_new (&segmenter, keep_segment, segments), "new");
  for (size_t done = 0; done < len; done += piece)
    must (bp_segmenter_add (segmenter, image + done,
                            MIN (len - done, piece)),
          "bp_segmenter_add");
  must (bp_segmenter_finish (segmenter), "bp_segmenter_finish");
  segments->image_size = bp_segmenter_size (segmenter);
  bp_segmenter_free (segmenter);
}

void
segments_done (struct segments *segments)
{
  free (segments->list);
}

void
index_of (struct index_blob *blob, const struct segments *segments)
{
  CLEANUP_CLOSE int fd = memfd_create ("spool", MFD_CLOEXEC);
  struct bp_index_writer *writer;

  must (fd, "memfd_create");
  must (bp_index_writer_new (&writer, fd), "bp_index_writer_new");
  for (size_t i = 0; i < segments->count; i++)
    must (bp_index_writer_add (writer, segments->list[i].offset,
                               segments->list[i].len,
                               &segments->list[i].root, NULL),
          "bp_index_writer_add");
  must (bp_index_writer_finish (writer, segments->image_size, &blob->index,
                                NULL),
        "bp_index_writer_finish");
  blob->bytes = malloc (blob->index.blob_size);
  must (blob->bytes ? 0 : -1, "malloc");
  must (bp_index_writer_read (writer, 0, blob->bytes, blob->index.blob_size,
                              NULL),
        "bp_index_writer_read");
  bp_index_writer_free (writer);
}

void
index_done (struct index_blob *blob)
{
  free (blob->bytes);
}
