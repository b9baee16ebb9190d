/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The bytes of a pack (blobpager-store(5)), for its reader and its writer
 * alone.
 *
 *   header    0  "BLOBPACK"
 *             8  u32 version = 1
 *            12  zeros
 *   blobs    64  stored bytes, back to back
 *   trees        of the blobs of more than one window
 *   table        entries, sorted by root
 *   digests      SHA-256 of each 64 KiB piece of the table
 *   trailer   0  u64 offset of the table
 *             8  u64 entries in it
 *            16  SHA-256 of the digests
 *            48  SHA-256 of the header
 *            80  SHA-256 of the trailer's first 80 bytes
 *
 * Entry: 0 root, 32 u64 object id, 40 u64 offset, 48 u64 stored size,
 * 56 u64 size, 64 u32 codec, 68 u64 offset of the tree.
 */
#ifndef BP_PACK_FORMAT_H
#define BP_PACK_FORMAT_H

#include "lib/sha256.h"

#define PACK_MAGIC "BLOBPACK"

enum {
  PACK_VERSION = 1,
  PACK_HEADER_SIZE = 64,

  PACK_ENTRY_SIZE = 76,
  PACK_ENTRY_OBJECT_ID = 32,
  PACK_ENTRY_OFFSET = 40,
  PACK_ENTRY_STORED_SIZE = 48,
  PACK_ENTRY_BLOB_SIZE = 56,
  PACK_ENTRY_CODEC = 64,
  PACK_ENTRY_TREE = 68,

  PACK_PIECE_SIZE = 64 << 10, /* Bytes of the table that a digest covers. */

  PACK_TRAILER_SIZE = 112,
  PACK_TRAILER_TABLE = 0,
  PACK_TRAILER_COUNT = 8,
  PACK_TRAILER_LIST_DIGEST = 16,
  PACK_TRAILER_HEADER_DIGEST = 48,
  PACK_TRAILER_DIGEST = 80,
};

_Static_assert(PACK_TRAILER_DIGEST + BP_SHA256_SIZE == PACK_TRAILER_SIZE,
               "the trailer ends with its own digest");
_Static_assert(PACK_ENTRY_TREE + 8 == PACK_ENTRY_SIZE,
               "an entry ends with the offset of its tree");

#endif /* BP_PACK_FORMAT_H */
