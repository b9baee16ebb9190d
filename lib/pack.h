/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Packs: append-once files that hold blobs (blobpager-store(5)).
 *
 *   header (64)  stored blobs …  trees …  table  piece digests  trailer
 *
 * The table has a fixed-size entry a blob, sorted by root; each 64 KiB
 * piece of it is covered by a SHA-256, the list of these by another in
 * the trailer, which also covers the header and itself.  So a reader
 * looks a root up by reading a few pieces, each verified.
 *
 * What a pack says of a blob's bytes is not trusted by anyone: the root
 * is checked by whoever uses them.
 *
 * Threads: a writer belongs to one thread; a reader may be used by many.
 */
#ifndef BP_PACK_H
#define BP_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/merkle.h"

enum bp_codec {
  BP_CODEC_RAW = 0,
  BP_CODEC_ZSTD = 1,
};

#define BP_PACK_MAX_STORED (UINT64_C (1) << 30)

/* A blob's entry in the table. */
struct bp_pack_entry {
  struct bp_root root;
  uint64_t object_id;   /* Assigned by the store, never reused. */
  uint64_t offset;      /* Of the stored bytes in the pack. */
  uint64_t stored_size; /* Bytes. */
  uint64_t size;        /* Bytes of the blob. */
  uint32_t codec;       /* enum bp_codec. */
  uint64_t tree_offset; /* Of its tree in the pack; 0: one window. */
};

/* ---- Reading ---- */

struct bp_pack;

/* Open PACKS_DIRFD/NAME and check header and trailer.  Returns 0; -EPROTO
 * malformed, -EBADMSG a digest that does not match, -EOPNOTSUPP a later
 * version.
 */
int bp_pack_open (struct bp_pack **ret_pack, int packs_dirfd,
                  const char *name, struct bp_error *err);
void bp_pack_close (struct bp_pack *pack);

uint64_t bp_pack_count (const struct bp_pack *pack);
int bp_pack_fd (const struct bp_pack *pack);

/* Look ROOT up.  Returns 0, -ENOENT, or what damaged the table piece. */
int bp_pack_find (struct bp_pack *pack, const struct bp_root *root,
                  struct bp_pack_entry *ret_entry, struct bp_error *err);

/* Entry number I of the table, for listing and verifying. */
int bp_pack_entry_at (struct bp_pack *pack, uint64_t i,
                      struct bp_pack_entry *ret_entry,
                      struct bp_error *err);

/* ---- Writing ---- */

struct bp_pack_writer;

/* Start a pack in the empty file FD (borrowed until free). */
int bp_pack_writer_new (struct bp_pack_writer **ret_writer, int fd);

/* Append stored bytes of the blob being added.  May be called many times
 * for one blob, then bp_pack_writer_add_blob once.
 */
int bp_pack_writer_append (struct bp_pack_writer *writer, const void *data,
                           size_t len, struct bp_error *err);

/* The bytes appended since the last blob are blob ENTRY->root; offset and
 * stored_size are filled in here.  TREE (TREE_LEN bytes; NULL for a blob
 * of one window) is the tree and, for codec 1, the u32 frame sizes.
 */
int bp_pack_writer_add_blob (struct bp_pack_writer *writer,
                             struct bp_pack_entry *entry,
                             const uint8_t *tree, size_t tree_len,
                             struct bp_error *err);

/* Bytes stored so far. */
uint64_t bp_pack_writer_size (const struct bp_pack_writer *writer);

/* Write table and trailer and sync the file. */
int bp_pack_writer_finish (struct bp_pack_writer *writer,
                           struct bp_error *err);
void bp_pack_writer_free (struct bp_pack_writer *writer);

#endif /* BP_PACK_H */
