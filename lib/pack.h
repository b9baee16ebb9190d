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
#include "lib/piece-cache.h"

enum bp_codec {
  BP_CODEC_RAW = 0,
  BP_CODEC_ZSTD = 1,
};

/* Bytes of blobs in a pack (one blob that is larger has a pack of its
 * own), and blobs in it.
 */
#define BP_PACK_MAX_STORED (UINT64_C (1) << 30)
#define BP_PACK_MAX_BLOBS (UINT64_C (1) << 19)

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

/* Open PACKS_DIRFD/NAME and check header and trailer.  CACHE keeps pieces
 * of its table (borrowed until the pack is closed).  Returns 0; -EPROTO
 * malformed, -EBADMSG a digest that does not match, -EOPNOTSUPP a later
 * version.
 */
int bp_pack_open (struct bp_pack **ret_pack, int packs_dirfd,
                  const char *name, struct bp_piece_cache *cache,
                  struct bp_error *err);
void bp_pack_close (struct bp_pack *pack);

uint64_t bp_pack_count (const struct bp_pack *pack);
int bp_pack_fd (const struct bp_pack *pack);

/* Look ROOT up.  Returns 0, -ENOENT, or what damaged the table piece. */
int bp_pack_find (struct bp_pack *pack, const struct bp_root *root,
                  struct bp_pack_entry *ret_entry, struct bp_error *err);

/* Call FN for every entry, in order of root; the table is read once, from
 * its start, past the cache.  CODE is 0, or -EPROTO for an entry that
 * cannot be right (of which only root and object id are then set).  A
 * non-zero return stops the walk and is passed on.  Returns 0, or what
 * damaged a piece of the table.
 */
typedef int (*bp_pack_walk_fn) (void *opaque,
                                const struct bp_pack_entry *entry, int code);
int bp_pack_walk (struct bp_pack *pack, bp_pack_walk_fn fn, void *opaque,
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

/* The bytes appended since the last blob are the blob ROOT of SIZE bytes.
 * TREE (TREE_LEN bytes) is the tree of a blob of more than one window,
 * followed by the FRAMES_LEN bytes of its frames' sizes for codec 1; both
 * are copied.
 */
int bp_pack_writer_add_blob (struct bp_pack_writer *writer,
                             const struct bp_root *root, uint64_t size,
                             enum bp_codec codec, const uint8_t *tree,
                             size_t tree_len, const uint8_t *frames,
                             size_t frames_len, struct bp_error *err);

/* Forget the bytes appended since the last blob. */
void bp_pack_writer_discard (struct bp_pack_writer *writer);

/* Whether a blob of this root has been added. */
bool bp_pack_writer_has (const struct bp_pack_writer *writer,
                         const struct bp_root *root);

/* Bytes appended so far, and blobs added. */
uint64_t bp_pack_writer_size (const struct bp_pack_writer *writer);
uint64_t bp_pack_writer_count (const struct bp_pack_writer *writer);

/* Write trees, table and trailer and sync the file.  The blobs take the
 * object ids from FIRST_OBJECT_ID on, in the order they were added.
 */
int bp_pack_writer_finish (struct bp_pack_writer *writer,
                           uint64_t first_object_id, struct bp_error *err);
void bp_pack_writer_free (struct bp_pack_writer *writer);

#endif /* BP_PACK_H */
