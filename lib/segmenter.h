/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Segmentation: where an image is cut into blobs.
 *
 * A block of 4096 zero bytes (or a short last one) is a hole and ends
 * the segment before it.  Any other block joins the segment, which ends
 * after it if it is 131072 bytes long, or at least 16384 bytes long and
 * the low four bits of the block's XXH3 are zero, or at the image's end.
 * So cuts depend on content alone, not on the source or on who imports.
 *
 * Threads: a segmenter belongs to one thread.
 */
#ifndef BP_SEGMENTER_H
#define BP_SEGMENTER_H

#include <stddef.h>
#include <stdint.h>

enum {
  BP_SEGMENT_BLOCK = 4096,
  BP_SEGMENT_MIN = 16384,
  BP_SEGMENT_MAX = 131072,
};

/* Called for each segment, in order of offset.  DATA is borrowed for the
 * call.  A negative return stops the segmenter and is passed on.
 */
typedef int (*bp_segment_fn) (void *opaque, uint64_t offset,
                              const uint8_t *data, uint32_t len);

struct bp_segmenter;

/* Returns 0 or -ENOMEM. */
int bp_segmenter_new (struct bp_segmenter **ret_segmenter, bp_segment_fn fn,
                      void *opaque);

/* The next LEN bytes of the image, in pieces of any size. */
int bp_segmenter_add (struct bp_segmenter *segmenter, const void *data,
                      size_t len);

/* The next LEN bytes of the image are zeros (a hole of the source, of any
 * place and length): the same as adding that many zero bytes, without
 * reading them.
 */
int bp_segmenter_skip (struct bp_segmenter *segmenter, uint64_t len);

/* The image ends here. */
int bp_segmenter_finish (struct bp_segmenter *segmenter);

/* Bytes added and skipped so far: the image's size after finish. */
uint64_t bp_segmenter_size (const struct bp_segmenter *segmenter);

void bp_segmenter_free (struct bp_segmenter *segmenter);

#endif /* BP_SEGMENTER_H */
