/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* An image of the store, read and verified here: which segment lies where
 * (through the windows of its index), and the bytes of segments.
 *
 * Threads: any.
 */
#ifndef BP_IMAGE_READER_H
#define BP_IMAGE_READER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/image-index.h"
#include "lib/store.h"
#include "nbdkit-plugin/window-cache.h"

struct image_reader;

/* The image whose index is the blob ROOT.  STORE and CACHE are borrowed
 * until it is freed.  Returns 0; -ENOENT; -EBADMSG; -EPROTO (a blob that
 * is no image index); or an I/O error.
 */
int image_reader_new (struct image_reader **ret_reader,
                      struct bp_store *store, struct window_cache *cache,
                      const struct bp_root *root, struct bp_error *err);
/* Accepts NULL. */
void image_reader_free (struct image_reader *reader);

/* Bytes of the disk. */
uint64_t image_reader_size (const struct image_reader *reader);

/* What lies at OFFSET, inside the image, up to END at most. */
int image_reader_lookup (struct image_reader *reader, uint64_t offset,
                         uint64_t end, struct bp_extent *ret_extent,
                         struct bp_error *err);

/* LEN bytes at OFFSET, inside the image; every byte verified. */
int image_reader_read (struct image_reader *reader, void *buf, size_t len,
                       uint64_t offset, struct bp_error *err);

/* LEN bytes at OFFSET will be read soon. */
int image_reader_will_need (struct image_reader *reader, uint64_t len,
                            uint64_t offset, struct bp_error *err);

#endif /* BP_IMAGE_READER_H */
