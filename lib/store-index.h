/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Reading an image index from the store, for walks over a whole image.
 *
 * Threads: a reader belongs to one thread.
 */
#ifndef BP_STORE_INDEX_H
#define BP_STORE_INDEX_H

#include "lib/image-index.h"
#include "lib/store.h"

struct store_index;

/* Open the index BLOB (borrowed until close) and decode its header. */
int store_index_open (struct store_index **ret_reader, struct bp_blob *blob,
                      struct bp_error *err);
void store_index_close (struct store_index *reader);

const struct bp_index *store_index_get (const struct store_index *reader);

/* Verify and check window W, and say which part of the image its entries
 * describe: [*RET_START, *RET_END), empty for a window of fences alone.
 * Returns 0, -EBADMSG, -EPROTO, or an I/O error.
 */
int store_index_load (struct store_index *reader, uint64_t w,
                      uint64_t *ret_start, uint64_t *ret_end,
                      struct bp_error *err);

/* What lies at OFFSET, inside the part of a loaded window. */
int store_index_lookup (struct store_index *reader, uint64_t offset,
                        struct bp_extent *ret_extent, struct bp_error *err);

#endif /* BP_STORE_INDEX_H */
