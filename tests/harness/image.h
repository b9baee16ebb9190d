/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* For tests: an image in memory, segmented, and its index. */
#ifndef BP_TEST_IMAGE_H
#define BP_TEST_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/image-index.h"
#include "lib/merkle.h"

struct segment {
  uint64_t offset;
  uint32_t len;
  struct bp_root root;
};

/* Segments in order of offset. */
struct segments {
  struct segment *list;
  size_t count;
  uint64_t image_size; /* Bytes, as the segmenter counted them. */
};

/* Segment LEN bytes, added in pieces of PIECE bytes. */
void segments_of (struct segments *segments, const uint8_t *image, size_t len,
                  size_t piece);
void segments_done (struct segments *segments);

/* An index in memory. */
struct index_blob {
  uint8_t *bytes;
  struct bp_index index;
};

void index_of (struct index_blob *blob, const struct segments *segments);
void index_done (struct index_blob *blob);

#endif /* BP_TEST_IMAGE_H */
