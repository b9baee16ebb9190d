/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A few verified pieces of pack tables, shared by the packs of a store.
 *
 * Bytes are copied out, so nobody holds a slot: a lookup needs 32 to 76
 * bytes of the 64 KiB.
 *
 * Threads: any, at any time.
 */
#ifndef BP_PIECE_CACHE_H
#define BP_PIECE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bp_piece_cache;

/* Room for NR_SLOTS pieces, allocated when they are first used.  Returns
 * 0 or -ENOMEM.
 */
int bp_piece_cache_new (struct bp_piece_cache **ret_cache, size_t nr_slots);
void bp_piece_cache_free (struct bp_piece_cache *cache);

/* A number that no other user of the process has: names a pack here. */
uint64_t bp_piece_cache_owner (void);

/* Copy LEN bytes at OFFSET of OWNER's PIECE to BUF.  Returns false if the
 * piece is not there.
 */
bool bp_piece_cache_get (struct bp_piece_cache *cache, uint64_t owner,
                         uint64_t piece, size_t offset, void *buf,
                         size_t len);

/* Keep the LEN bytes of a piece, verified.  Without memory nothing is
 * kept.
 */
void bp_piece_cache_put (struct bp_piece_cache *cache, uint64_t owner,
                         uint64_t piece, const void *data, size_t len);

#endif /* BP_PIECE_CACHE_H */
