/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Blobs too large to be made: one path of the tree, and holes.
 *
 *   root ─ node of the top list ─ … ─ node 0 ─ 256 blocks of zeros
 *
 * Every other digest of the nodes on the path is zero, which nothing hashes
 * to.  Nodes are hashed here by what blobpager-store(5) says, not by lib.
 */
#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/io.h"
#include "lib/pack-format.h"
#include "lib/pack.h"
#include "tests/harness/fetching.h"

static void
hash_node (uint64_t location, const uint8_t node[BP_BLOCK_SIZE],
           uint8_t digest[BP_ROOT_SIZE])
{
  uint8_t message[12 + BP_BLOCK_SIZE];

  put_le64 (message, location);
  put_le32 (message + 8, BP_BLOCK_SIZE);
  memcpy (message + 12, node, BP_BLOCK_SIZE);
  bp_sha256 (message, sizeof message, digest);
}

static void
write_at (int fd, const void *data, size_t len, uint64_t offset)
{
  CHECK_EQ (bp_pwrite_all (fd, data, len, offset), 0);
}

/* Write the nodes that lead to OFFSET into the tree at TREE of FD. */
static struct bp_root
write_path (int fd, uint64_t tree, uint64_t size, uint64_t offset)
{
  static const uint8_t zeros[BP_BLOCK_SIZE];
  struct bp_merkle_node path[BP_MERKLE_MAX_LEVELS];
  const unsigned nr = bp_merkle_path (size, offset, path);
  uint8_t node[BP_BLOCK_SIZE] = { 0 };
  struct bp_root digest;

  for (uint32_t i = 0; i < path[0].count; i++)
    hash_node ((path[0].first + i) * BP_BLOCK_SIZE, zeros,
               node + i * BP_ROOT_SIZE);
  for (unsigned level = 0; level < nr; level++) {
    const uint64_t first = path[level].first * BP_ROOT_SIZE;

    write_at (fd, node, path[level].count * (size_t) BP_ROOT_SIZE,
              tree + bp_merkle_level_offset (size, level) + first);
    hash_node (first | (level + 1), node, digest.bytes);
    if (level + 1 < nr) {
      const uint64_t index = path[level].first / BP_NODE_DIGESTS;

      memset (node, 0, sizeof node);
      memcpy (node + (index - path[level + 1].first) * BP_ROOT_SIZE,
              digest.bytes, BP_ROOT_SIZE);
    }
  }
  return digest;
}

/* The table of one entry, and the trailer, at TABLE of FD. */
static void
write_end (int fd, uint64_t table, const struct bp_root *root, uint64_t size,
           uint64_t tree)
{
  uint8_t entry[PACK_ENTRY_SIZE] = { 0 }, trailer[PACK_TRAILER_SIZE];
  uint8_t header[PACK_HEADER_SIZE], digest[BP_SHA256_SIZE];

  memcpy (entry, root->bytes, BP_ROOT_SIZE);
  put_le64 (entry + PACK_ENTRY_OBJECT_ID, UINT64_C (1) << 40);
  put_le64 (entry + PACK_ENTRY_OFFSET, PACK_HEADER_SIZE);
  put_le64 (entry + PACK_ENTRY_STORED_SIZE, size);
  put_le64 (entry + PACK_ENTRY_BLOB_SIZE, size);
  put_le64 (entry + PACK_ENTRY_TREE, tree);
  bp_sha256 (entry, sizeof entry, digest);
  write_at (fd, entry, sizeof entry, table);
  write_at (fd, digest, sizeof digest, table + sizeof entry);

  CHECK_EQ (bp_pread_exact (fd, header, sizeof header, 0), 0);
  put_le64 (trailer + PACK_TRAILER_TABLE, table);
  put_le64 (trailer + PACK_TRAILER_COUNT, 1);
  bp_sha256 (digest, sizeof digest, trailer + PACK_TRAILER_LIST_DIGEST);
  bp_sha256 (header, sizeof header, trailer + PACK_TRAILER_HEADER_DIGEST);
  bp_sha256 (trailer, PACK_TRAILER_DIGEST, trailer + PACK_TRAILER_DIGEST);
  write_at (fd, trailer, sizeof trailer,
            table + sizeof entry + sizeof digest);
}

void
test_store_add_vast (struct test_store *store, uint64_t size,
                     uint64_t offset)
{
  const uint64_t tree = PACK_HEADER_SIZE + size;
  const uint64_t table =
    tree + bp_merkle_level_offset (size, bp_merkle_nr_levels (size));
  uint8_t header[PACK_HEADER_SIZE] = PACK_MAGIC;
  struct test_blob *blob;
  char path[160];
  int fd;

  store->blobs = realloc (store->blobs,
                          (store->nr_blobs + 1) * sizeof *store->blobs);
  CHECK (store->blobs != NULL);
  blob = &store->blobs[store->nr_blobs++];
  snprintf (path, sizeof path, "%s/packs/%032zx.pack", store->path,
            store->nr_blobs);
  fd = open (path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  CHECK (fd >= 0);
  put_le32 (header + 8, PACK_VERSION);
  write_at (fd, header, sizeof header, 0);
  *blob = (struct test_blob){
    .root = write_path (fd, tree, size, offset),
    .size = size,
  };
  write_end (fd, table, &blob->root, size, tree);
  CHECK_EQ (close (fd), 0);
}
