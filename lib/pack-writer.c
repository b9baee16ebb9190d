/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Writing a pack.
 *
 * Stored bytes go to the file as they come, one write each: they are
 * large.  Entries and trees wait in memory until the end, where the place
 * of the trees and the object ids are known:
 *
 *   append append add_blob  append add_blob …  finish
 *   └──── blob 0 ─────────┘ └── blob 1 ────┘   trees, table, trailer
 *
 * Nothing here makes the file visible: whoever owns its name renames it
 * after finish.  The writer also answers whether it has a root, so that
 * an import can leave out what it has just stored: the entries are found
 * through a hash table of their numbers, keyed by the root itself.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/range.h"
#include "lib/pack-format.h"
#include "lib/pack.h"
#include "lib/sha256.h"

enum {
  FIRST_ENTRIES = 1024,
  /* Writing starts this many bytes behind, so that the sync at the end
   * finds little left to do.
   */
  WRITEBACK_BYTES = 16 << 20,
};

struct bp_pack_writer {
  int fd;               /* Borrowed. */
  uint64_t end;         /* Where the next byte goes. */
  uint64_t blob_start;  /* Where the blob being appended starts. */
  uint64_t written_out; /* Bytes whose writing has been started. */

  /* In order of adding; tree_offset counts from the first tree, plus 1,
   * until finish.
   */
  struct bp_pack_entry *entries;
  size_t nr_entries;
  size_t max_entries;
  uint32_t *slots; /* 2 * max_entries: number of an entry plus 1, or 0. */

  uint8_t *trees;
  size_t trees_len;
  size_t trees_max;

  uint8_t *table; /* One piece of the table, being filled at finish. */
  size_t table_len;
  uint8_t *digests; /* Of the pieces so far. */
  size_t nr_digests;
};

int
bp_pack_writer_new (struct bp_pack_writer **ret_writer, int fd)
{
  static const uint8_t header[PACK_HEADER_SIZE] = { [8] = PACK_VERSION };
  uint8_t bytes[PACK_HEADER_SIZE];
  struct bp_pack_writer *writer;
  int r;

  memcpy (bytes, header, sizeof bytes);
  memcpy (bytes, PACK_MAGIC, 8);
  r = bp_pwrite_all (fd, bytes, sizeof bytes, 0);
  if (r < 0)
    return r;
  writer = calloc (1, sizeof *writer);
  if (writer == NULL)
    return -ENOMEM;
  writer->fd = fd;
  writer->end = writer->blob_start = PACK_HEADER_SIZE;
  *ret_writer = writer;
  return 0;
}

void
bp_pack_writer_free (struct bp_pack_writer *writer)
{
  if (writer == NULL)
    return;
  free (writer->entries);
  free (writer->slots);
  free (writer->trees);
  free (writer->table);
  free (writer->digests);
  free (writer);
}

int
bp_pack_writer_append (struct bp_pack_writer *writer, const void *data,
                       size_t len, struct bp_error *err)
{
  const int r = bp_pwrite_all (writer->fd, data, len, writer->end);

  if (r < 0)
    return bp_error_set (err, r, "pack: write at offset %llu: %m",
                         (unsigned long long) writer->end);
  writer->end += len;
  if (writer->end - writer->written_out >= 2 * WRITEBACK_BYTES) {
    /* A hint; a file system without it loses only time. */
    sync_file_range (writer->fd, (off_t) writer->written_out,
                     WRITEBACK_BYTES, SYNC_FILE_RANGE_WRITE);
    writer->written_out += WRITEBACK_BYTES;
  }
  return 0;
}

void
bp_pack_writer_discard (struct bp_pack_writer *writer)
{
  /* What follows overwrites them; finish cuts the file. */
  writer->end = writer->blob_start;
  writer->written_out = MIN (writer->written_out, writer->end);
}

/* The slot of ROOT in a table of NR_SLOTS (a power of 2): the one that
 * holds it, or the empty one where it belongs.
 */
static size_t
slot_of (const struct bp_pack_writer *writer, const uint32_t *slots,
         size_t nr_slots, const struct bp_root *root)
{
  size_t i = get_le64 (root->bytes) & (nr_slots - 1);

  while (slots[i] != 0 &&
         !bp_root_equal (&writer->entries[slots[i] - 1].root, root))
    i = (i + 1) & (nr_slots - 1);
  return i;
}

bool
bp_pack_writer_has (const struct bp_pack_writer *writer,
                    const struct bp_root *root)
{
  const size_t nr_slots = 2 * writer->max_entries;

  return nr_slots > 0 &&
         writer->slots[slot_of (writer, writer->slots, nr_slots, root)] != 0;
}

/* Double the room for entries and hash them anew. */
static int
grow_entries (struct bp_pack_writer *writer)
{
  const size_t max =
    writer->max_entries ? 2 * writer->max_entries : FIRST_ENTRIES;
  CLEANUP_FREE uint32_t *slots = calloc (2 * max, sizeof *slots);
  struct bp_pack_entry *entries =
    reallocarray (writer->entries, max, sizeof *entries);

  if (entries)
    writer->entries = entries;
  if (entries == NULL || slots == NULL)
    return -ENOMEM;
  for (size_t i = 0; i < writer->nr_entries; i++)
    slots[slot_of (writer, slots, 2 * max, &entries[i].root)] =
      (uint32_t) i + 1;
  free (writer->slots);
  writer->slots = steal_ptr (&slots);
  writer->max_entries = max;
  return 0;
}

/* Make room for LEN more bytes of trees. */
static int
grow_trees (struct bp_pack_writer *writer, size_t len)
{
  uint8_t *trees;
  size_t max;

  if (len <= writer->trees_max - writer->trees_len)
    return 0;
  max = MAX (writer->trees_len + len, 2 * writer->trees_max);
  trees = realloc (writer->trees, max);
  if (trees == NULL)
    return -ENOMEM;
  writer->trees = trees;
  writer->trees_max = max;
  return 0;
}

static void
add_tree_bytes (struct bp_pack_writer *writer, const uint8_t *data,
                size_t len)
{
  if (len == 0)
    return;
  memcpy (writer->trees + writer->trees_len, data, len);
  writer->trees_len += len;
}

int
bp_pack_writer_add_blob (struct bp_pack_writer *writer,
                         const struct bp_root *root, uint64_t size,
                         enum bp_codec codec, const uint8_t *tree,
                         size_t tree_len, const uint8_t *frames,
                         size_t frames_len, struct bp_error *err)
{
  struct bp_pack_entry *entry;

  assert (writer->nr_entries < BP_PACK_MAX_BLOBS);
  assert ((tree_len > 0) == (size > BP_WINDOW_SIZE));
  if ((writer->nr_entries == writer->max_entries &&
       grow_entries (writer) < 0) ||
      grow_trees (writer, tree_len + frames_len) < 0)
    return bp_error_set (err, -ENOMEM, "pack: %m");

  entry = &writer->entries[writer->nr_entries];
  *entry = (struct bp_pack_entry){
    .root = *root,
    .offset = writer->blob_start,
    .stored_size = writer->end - writer->blob_start,
    .size = size,
    .codec = codec,
    .tree_offset = tree_len > 0 ? writer->trees_len + 1 : 0,
  };
  add_tree_bytes (writer, tree, tree_len);
  add_tree_bytes (writer, frames, frames_len);
  writer->blob_start = writer->end;
  writer->nr_entries++;
  writer->slots[slot_of (writer, writer->slots, 2 * writer->max_entries,
                         root)] = (uint32_t) writer->nr_entries;
  return 0;
}

uint64_t
bp_pack_writer_size (const struct bp_pack_writer *writer)
{
  return writer->end - PACK_HEADER_SIZE;
}

uint64_t
bp_pack_writer_count (const struct bp_pack_writer *writer)
{
  return writer->nr_entries;
}

static int
compare_roots (const void *a, const void *b)
{
  const struct bp_pack_entry *x = a, *y = b;

  return memcmp (x->root.bytes, y->root.bytes, BP_ROOT_SIZE);
}

static void
encode_entry (const struct bp_pack_entry *entry,
              uint8_t out[PACK_ENTRY_SIZE])
{
  memcpy (out, entry->root.bytes, BP_ROOT_SIZE);
  put_le64 (out + PACK_ENTRY_OBJECT_ID, entry->object_id);
  put_le64 (out + PACK_ENTRY_OFFSET, entry->offset);
  put_le64 (out + PACK_ENTRY_STORED_SIZE, entry->stored_size);
  put_le64 (out + PACK_ENTRY_BLOB_SIZE, entry->size);
  put_le32 (out + PACK_ENTRY_CODEC, entry->codec);
  put_le64 (out + PACK_ENTRY_TREE, entry->tree_offset);
}

/* Write out the piece in writer->table and note its digest. */
static int
flush_piece (struct bp_pack_writer *writer)
{
  const int r = bp_pwrite_all (writer->fd, writer->table, writer->table_len,
                               writer->end);

  if (r < 0)
    return r;
  bp_sha256 (writer->table, writer->table_len,
             writer->digests + writer->nr_digests * BP_SHA256_SIZE);
  writer->nr_digests++;
  writer->end += writer->table_len;
  writer->table_len = 0;
  return 0;
}

static int
add_to_table (struct bp_pack_writer *writer, const uint8_t *data, size_t len)
{
  while (len > 0) {
    const size_t n = MIN (len, PACK_PIECE_SIZE - writer->table_len);

    memcpy (writer->table + writer->table_len, data, n);
    writer->table_len += n;
    data += n;
    len -= n;
    if (writer->table_len == PACK_PIECE_SIZE) {
      const int r = flush_piece (writer);

      if (r < 0)
        return r;
    }
  }
  return 0;
}

/* The table and the digests of its pieces. */
static int
write_table (struct bp_pack_writer *writer)
{
  const size_t bytes = writer->nr_entries * PACK_ENTRY_SIZE;
  uint8_t entry[PACK_ENTRY_SIZE];
  int r = 0;

  writer->table = malloc (PACK_PIECE_SIZE);
  writer->digests =
    malloc ((bytes / PACK_PIECE_SIZE + 1) * (size_t) BP_SHA256_SIZE);
  if (writer->table == NULL || writer->digests == NULL)
    return -ENOMEM;
  for (size_t i = 0; i < writer->nr_entries && r == 0; i++) {
    encode_entry (&writer->entries[i], entry);
    r = add_to_table (writer, entry, sizeof entry);
  }
  if (r == 0 && writer->table_len > 0)
    r = flush_piece (writer);
  if (r == 0)
    r = bp_pwrite_all (writer->fd, writer->digests,
                       writer->nr_digests * BP_SHA256_SIZE, writer->end);
  writer->end += writer->nr_digests * BP_SHA256_SIZE;
  return r;
}

static int
write_trailer (struct bp_pack_writer *writer, uint64_t table_offset)
{
  uint8_t header[PACK_HEADER_SIZE], trailer[PACK_TRAILER_SIZE];
  int r = bp_pread_exact (writer->fd, header, sizeof header, 0);

  if (r < 0)
    return r;
  put_le64 (trailer + PACK_TRAILER_TABLE, table_offset);
  put_le64 (trailer + PACK_TRAILER_COUNT, writer->nr_entries);
  bp_sha256 (writer->digests, writer->nr_digests * BP_SHA256_SIZE,
             trailer + PACK_TRAILER_LIST_DIGEST);
  bp_sha256 (header, sizeof header, trailer + PACK_TRAILER_HEADER_DIGEST);
  bp_sha256 (trailer, PACK_TRAILER_DIGEST, trailer + PACK_TRAILER_DIGEST);
  r = bp_pwrite_all (writer->fd, trailer, sizeof trailer, writer->end);
  writer->end += sizeof trailer;
  return r;
}

int
bp_pack_writer_finish (struct bp_pack_writer *writer,
                       uint64_t first_object_id, struct bp_error *err)
{
  uint64_t trees_offset, table_offset;
  int r;

  bp_pack_writer_discard (writer);
  trees_offset = writer->end;
  table_offset = trees_offset + writer->trees_len;
  for (size_t i = 0; i < writer->nr_entries; i++) {
    writer->entries[i].object_id = first_object_id + i;
    if (writer->entries[i].tree_offset > 0)
      writer->entries[i].tree_offset += trees_offset - 1;
  }
  if (writer->nr_entries > 0)
    qsort (writer->entries, writer->nr_entries, sizeof *writer->entries,
           compare_roots);

  r = bp_pwrite_all (writer->fd, writer->trees, writer->trees_len,
                     trees_offset);
  writer->end = table_offset;
  if (r == 0)
    r = write_table (writer);
  if (r == 0)
    r = write_trailer (writer, table_offset);
  if (r == 0 && (ftruncate (writer->fd, (off_t) writer->end) == -1 ||
                 fsync (writer->fd) == -1))
    r = -errno;
  return r < 0 ? bp_error_set (err, r, "pack: write: %m") : 0;
}
