/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* lib/pack-writer, lib/pack-reader: what is written is found, and every
 * damage is noticed.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/pack-format.h"
#include "lib/pack.h"

/* A pack file in a directory of its own. */
struct fixture {
  char dir[64];
  int dirfd;
  struct bp_piece_cache *cache;
  uint8_t *bytes; /* Of the pack as written. */
  size_t len;
};
static struct fixture f;

static void
setup (void)
{
  snprintf (f.dir, sizeof f.dir, "/tmp/test-pack.XXXXXX");
  cr_assert_not_null (mkdtemp (f.dir));
  f.dirfd = open (f.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  cr_assert (f.dirfd >= 0);
  cr_assert_eq (bp_piece_cache_new (&f.cache, 8), 0);
}

static void
teardown (void)
{
  unlinkat (f.dirfd, "a.pack", 0);
  close (f.dirfd);
  rmdir (f.dir);
  bp_piece_cache_free (f.cache);
  free (f.bytes);
}

TestSuite (pack, .init = setup, .fini = teardown);

/* Blob number I is the u64 I. */
static struct bp_root
root_of (uint64_t i)
{
  struct bp_root root;

  cr_assert_eq (bp_merkle_root (&i, sizeof i, &root), 0);
  return root;
}

static void
add_number (struct bp_pack_writer *writer, uint64_t i)
{
  const struct bp_root root = root_of (i);

  cr_assert_eq (bp_pack_writer_append (writer, &i, sizeof i, NULL), 0);
  cr_assert_eq (bp_pack_writer_add_blob (writer, &root, sizeof i,
                                         BP_CODEC_RAW, NULL, 0, NULL, 0,
                                         NULL),
                0);
}

/* A pack of the numbers below COUNT, with object ids from 100 on. */
static void
write_numbers (uint64_t count)
{
  struct bp_pack_writer *writer;
  const int fd = openat (f.dirfd, "a.pack", O_RDWR | O_CREAT | O_TRUNC, 0600);

  cr_assert (fd >= 0);
  cr_assert_eq (bp_pack_writer_new (&writer, fd), 0);
  for (uint64_t i = 0; i < count; i++)
    add_number (writer, i);
  cr_assert_eq (bp_pack_writer_finish (writer, 100, NULL), 0);
  bp_pack_writer_free (writer);
  close (fd);
  free (f.bytes);
  cr_assert_eq (bp_read_file (f.dirfd, "a.pack", 64 << 20, &f.bytes, &f.len),
                0);
}

static void
write_bytes (const uint8_t *bytes, size_t len)
{
  const int fd = openat (f.dirfd, "a.pack", O_WRONLY | O_CREAT | O_TRUNC,
                         0600);

  cr_assert (fd >= 0);
  cr_assert_eq (bp_write_all (fd, bytes, len), 0);
  close (fd);
}

static int
open_pack (struct bp_pack **ret_pack)
{
  struct bp_error err;

  return bp_pack_open (ret_pack, f.dirfd, "a.pack", f.cache, &err);
}

Test (pack, finds_every_blob_and_no_other)
{
  enum {
    COUNT = 5000
  }; /* Six pieces: entries straddle. */
  struct bp_pack_entry entry;
  struct bp_pack *pack;
  struct bp_root root;

  write_numbers (COUNT);
  cr_assert_eq (open_pack (&pack), 0);
  cr_assert_eq (bp_pack_count (pack), COUNT);
  for (uint64_t i = 0; i < COUNT; i++) {
    root = root_of (i);
    cr_assert_eq (bp_pack_find (pack, &root, &entry, NULL), 0);
    cr_assert_eq (entry.object_id, 100 + i);
    cr_assert_eq (entry.offset, PACK_HEADER_SIZE + 8 * i);
    cr_assert_eq (entry.size, 8);
    cr_assert_eq (get_le64 (f.bytes + entry.offset), i);
  }
  for (uint64_t i = COUNT; i < 2 * COUNT; i++) {
    root = root_of (i);
    cr_assert_eq (bp_pack_find (pack, &root, &entry, NULL), -ENOENT);
  }
  memset (root.bytes, 0, sizeof root.bytes);
  cr_assert_eq (bp_pack_find (pack, &root, &entry, NULL), -ENOENT);
  memset (root.bytes, 0xff, sizeof root.bytes);
  cr_assert_eq (bp_pack_find (pack, &root, &entry, NULL), -ENOENT);
  bp_pack_close (pack);
}

struct walked {
  uint64_t count;
  struct bp_root last;
};

static int
note_entry (void *opaque, const struct bp_pack_entry *entry, int code)
{
  struct walked *walked = opaque;

  cr_assert_eq (code, 0);
  if (walked->count > 0)
    cr_assert_lt (memcmp (walked->last.bytes, entry->root.bytes,
                          BP_ROOT_SIZE),
                  0);
  walked->last = entry->root;
  walked->count++;
  return 0;
}

Test (pack, walk_visits_every_entry_in_order_of_root)
{
  struct walked walked = { 0 };
  struct bp_pack *pack;

  write_numbers (3000);
  cr_assert_eq (open_pack (&pack), 0);
  cr_assert_eq (bp_pack_walk (pack, note_entry, &walked, NULL), 0);
  cr_assert_eq (walked.count, 3000);
  bp_pack_close (pack);
}

Test (pack, an_empty_pack_has_nothing)
{
  const struct bp_root root = root_of (0);
  struct bp_pack_entry entry;
  struct bp_pack *pack;

  write_numbers (0);
  cr_assert_eq (open_pack (&pack), 0);
  cr_assert_eq (bp_pack_find (pack, &root, &entry, NULL), -ENOENT);
  bp_pack_close (pack);
}

Test (pack, writer_knows_what_it_has_and_forgets_what_is_discarded)
{
  struct bp_pack_writer *writer;
  const int fd = openat (f.dirfd, "a.pack", O_RDWR | O_CREAT, 0600);
  const uint64_t junk[100] = { 0 };
  struct bp_root root;

  cr_assert_eq (bp_pack_writer_new (&writer, fd), 0);
  root = root_of (0);
  cr_assert (!bp_pack_writer_has (writer, &root));
  for (uint64_t i = 0; i < 3000; i++) {
    add_number (writer, i);
    cr_assert_eq (bp_pack_writer_append (writer, junk, sizeof junk, NULL), 0);
    bp_pack_writer_discard (writer);
  }
  for (uint64_t i = 0; i < 6000; i++) {
    root = root_of (i);
    cr_assert_eq (bp_pack_writer_has (writer, &root), i < 3000);
  }
  cr_assert_eq (bp_pack_writer_size (writer), 3000 * 8);
  cr_assert_eq (bp_pack_writer_count (writer), 3000);
  bp_pack_writer_free (writer);
  close (fd);
}

Test (pack, a_tree_and_its_frames_stand_behind_the_blobs)
{
  static uint8_t data[2 * BP_WINDOW_SIZE], frames[8] = { 1, 2, 3, 4 };
  struct bp_merkle_builder *builder;
  struct bp_pack_writer *writer;
  struct bp_pack_entry entry;
  struct bp_pack *pack;
  struct bp_root root;
  const uint8_t *tree;
  size_t tree_len;
  uint64_t size;
  const int fd = openat (f.dirfd, "a.pack", O_RDWR | O_CREAT, 0600);

  memset (data, 'x', sizeof data);
  cr_assert_eq (bp_merkle_builder_new (&builder, true), 0);
  cr_assert_eq (bp_merkle_builder_add (builder, data, sizeof data), 0);
  cr_assert_eq (bp_merkle_builder_finish (builder, &root, &size, &tree,
                                          &tree_len),
                0);
  cr_assert_eq (bp_pack_writer_new (&writer, fd), 0);
  cr_assert_eq (bp_pack_writer_append (writer, "stored", 6, NULL), 0);
  cr_assert_eq (bp_pack_writer_add_blob (writer, &root, size, BP_CODEC_ZSTD,
                                         tree, tree_len, frames,
                                         sizeof frames, NULL),
                0);
  add_number (writer, 1);
  cr_assert_eq (bp_pack_writer_finish (writer, 1, NULL), 0);

  cr_assert_eq (open_pack (&pack), 0);
  cr_assert_eq (bp_pack_find (pack, &root, &entry, NULL), 0);
  cr_assert_eq (entry.stored_size, 6);
  cr_assert_eq (entry.tree_offset, PACK_HEADER_SIZE + 6 + 8);
  cr_assert_eq (bp_read_file (f.dirfd, "a.pack", 1 << 20, &f.bytes, &f.len),
                0);
  cr_assert_eq (memcmp (f.bytes + entry.tree_offset, tree, tree_len), 0);
  cr_assert_eq (memcmp (f.bytes + entry.tree_offset + tree_len, frames,
                        sizeof frames),
                0);
  bp_pack_close (pack);
  bp_pack_writer_free (writer);
  bp_merkle_builder_free (builder);
  close (fd);
}

Test (pack, every_truncation_is_refused)
{
  struct bp_pack *pack;

  write_numbers (3);
  for (size_t len = 0; len < f.len; len++) {
    int r;

    write_bytes (f.bytes, len);
    r = open_pack (&pack);
    cr_assert (r == -EPROTO || r == -EBADMSG, "%zu bytes: %d", len, r);
  }
}

/* What a reader says of every blob of the pack as it is on disk: 0 if all
 * is well.
 */
static int
read_all (uint64_t count)
{
  struct bp_pack_entry entry;
  struct bp_pack *pack;
  int r = open_pack (&pack);

  if (r < 0)
    return r;
  for (uint64_t i = 0; i < count && r == 0; i++) {
    const struct bp_root root = root_of (i);

    r = bp_pack_find (pack, &root, &entry, NULL);
  }
  bp_pack_close (pack);
  return r;
}

Test (pack, every_flipped_bit_outside_the_blobs_is_noticed)
{
  enum {
    COUNT = 4
  };

  write_numbers (COUNT);
  cr_assert_eq (read_all (COUNT), 0);
  for (size_t at = 0; at < f.len; at++) {
    int r;

    if (at >= PACK_HEADER_SIZE && at < PACK_HEADER_SIZE + 8 * COUNT)
      continue; /* A blob's bytes: the root tells. */
    f.bytes[at] ^= 1u << at % 8;
    write_bytes (f.bytes, f.len);
    r = read_all (COUNT);
    cr_assert (r == -EPROTO || r == -EBADMSG || r == -EOPNOTSUPP,
               "byte %zu: %d", at, r);
    f.bytes[at] ^= 1u << at % 8;
  }
}

Test (pack, a_later_version_is_not_supported)
{
  struct bp_pack *pack;

  write_numbers (1);
  f.bytes[8] = PACK_VERSION + 1;
  write_bytes (f.bytes, f.len);
  cr_assert_eq (open_pack (&pack), -EOPNOTSUPP);
}

/* Sign the pack in f.bytes anew, of one piece, so that only the checks of
 * its content are left.
 */
static void
sign (void)
{
  uint8_t *trailer = f.bytes + f.len - PACK_TRAILER_SIZE;
  uint8_t *digest = trailer - BP_SHA256_SIZE;
  const uint64_t table = get_le64 (trailer + PACK_TRAILER_TABLE);

  if (table < f.len)
    bp_sha256 (f.bytes + table, (size_t) (digest - f.bytes) - table, digest);
  bp_sha256 (digest, BP_SHA256_SIZE, trailer + PACK_TRAILER_LIST_DIGEST);
  bp_sha256 (trailer, PACK_TRAILER_DIGEST, trailer + PACK_TRAILER_DIGEST);
  write_bytes (f.bytes, f.len);
}

Test (pack, a_lying_entry_is_malformed)
{
  static const struct {
    size_t place;
    uint64_t value;
    const char *what;
  } lies[] = {
    { PACK_ENTRY_OFFSET, 0, "bytes in the header" },
    { PACK_ENTRY_OFFSET, UINT64_MAX, "offset past the end" },
    { PACK_ENTRY_OFFSET, UINT64_MAX - 7, "offset and size wrap" },
    { PACK_ENTRY_STORED_SIZE, 9, "raw of another size" },
    { PACK_ENTRY_STORED_SIZE, UINT64_MAX, "stored size past the end" },
    { PACK_ENTRY_BLOB_SIZE, UINT64_MAX, "blob too large" },
    { PACK_ENTRY_CODEC, 2, "unknown codec" },
    { PACK_ENTRY_TREE, 64, "tree of a small blob" },
  };
  const struct bp_root root = root_of (0);

  for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
    struct bp_pack_entry entry;
    struct bp_pack *pack;
    uint8_t *bytes;

    write_numbers (1);
    bytes = f.bytes + PACK_HEADER_SIZE + 8 + lies[i].place;
    if (lies[i].place == PACK_ENTRY_CODEC)
      put_le32 (bytes, (uint32_t) lies[i].value);
    else
      put_le64 (bytes, lies[i].value);
    sign ();
    cr_assert_eq (open_pack (&pack), 0, "%s", lies[i].what);
    cr_assert_eq (bp_pack_find (pack, &root, &entry, NULL), -EPROTO, "%s",
                  lies[i].what);
    bp_pack_close (pack);
  }
}

Test (pack, a_lying_trailer_is_malformed)
{
  static const struct {
    size_t place;
    uint64_t value;
  } lies[] = {
    { PACK_TRAILER_TABLE, 0 },
    { PACK_TRAILER_TABLE, UINT64_MAX },
    { PACK_TRAILER_COUNT, 0 },
    { PACK_TRAILER_COUNT, 2 },
    { PACK_TRAILER_COUNT, UINT64_MAX },
    { PACK_TRAILER_COUNT, UINT64_MAX / PACK_ENTRY_SIZE + 2 },
  };

  for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
    struct bp_pack *pack;

    write_numbers (1);
    put_le64 (f.bytes + f.len - PACK_TRAILER_SIZE + lies[i].place,
              lies[i].value);
    sign ();
    cr_assert_eq (open_pack (&pack), -EPROTO, "lie %zu", i);
  }
}

Test (pack, what_is_no_file_neither_hangs_nor_crashes)
{
  struct bp_pack *pack;

  cr_assert_eq (open_pack (&pack), -ENOENT);
  cr_assert_eq (mkfifoat (f.dirfd, "a.pack", 0600), 0);
  cr_assert_eq (open_pack (&pack), -EPROTO);
  unlinkat (f.dirfd, "a.pack", 0);
  cr_assert_eq (symlinkat ("/etc/passwd", f.dirfd, "a.pack"), 0);
  cr_assert_eq (open_pack (&pack), -ELOOP);
  unlinkat (f.dirfd, "a.pack", 0);
  cr_assert_eq (mkdirat (f.dirfd, "a.pack", 0700), 0);
  cr_assert_eq (open_pack (&pack), -EPROTO);
  unlinkat (f.dirfd, "a.pack", AT_REMOVEDIR);
}
