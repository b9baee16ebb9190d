/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* lib/store: opening, import and blobs in a directory. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/store.h"
#include "harness/store-fixture.h"

TestSuite (store, .init = setup, .fini = teardown);

/* The only file in DIR whose name ends in SUFFIX, with DIR before it. */
static char *
only_file (const char *dir, const char *suffix)
{
  CLEANUP_CLOSEDIR DIR *d = opendir (in_store (dir));
  const struct dirent *entry;
  char *found = NULL;

  cr_assert_not_null (d);
  while ((entry = readdir (d)) != NULL) {
    const size_t len = strlen (entry->d_name), tail = strlen (suffix);

    if (len <= tail || strcmp (entry->d_name + len - tail, suffix) != 0)
      continue;
    cr_assert_null (found, "more than one");
    cr_assert_gt (asprintf (&found, "%s/%s", dir, entry->d_name), 0);
  }
  return found;
}

static unsigned
count_names (const char *dir)
{
  CLEANUP_CLOSEDIR DIR *d = opendir (in_store (dir));
  const struct dirent *entry;
  unsigned count = 0;

  cr_assert_not_null (d);
  while ((entry = readdir (d)) != NULL)
    count += entry->d_name[0] != '.';
  return count;
}

/* A blob of SIZE bytes: text, so that it compresses, or noise. */
static uint8_t *
make_bytes (size_t size, bool is_noise)
{
  uint8_t *bytes = malloc (size + 1);
  uint64_t state = size;

  cr_assert_not_null (bytes);
  for (size_t i = 0; i < size; i++) {
    state = state * UINT64_C (6364136223846793005) + 1442695040888963407u;
    bytes[i] = is_noise ? (uint8_t) (state >> 56)
                        : "blobpager "[state >> 62];
  }
  return bytes;
}

static int
read_memory (void *opaque, uint64_t offset, void *buf, size_t len,
             struct bp_error *err)
{
  (void) err;
  memcpy (buf, (const uint8_t *) opaque + offset, len);
  return 0;
}

static struct bp_root
add_blob (struct bp_import *import, uint8_t *bytes, uint64_t size,
          bool wanted_new)
{
  struct bp_root root;
  struct bp_error err;
  bool is_new;

  cr_assert_eq (bp_import_add_blob (import, size, read_memory, bytes, &root,
                                    &is_new, &err),
                0, "%s", err.msg);
  cr_assert_eq (is_new, wanted_new);
  return root;
}

static struct bp_blob *
open_blob (const struct bp_root *root)
{
  struct bp_blob *blob;
  struct bp_error err;

  cr_assert_eq (bp_store_open_blob (f.store, root, &blob, &err), 0, "%s",
                err.msg);
  return blob;
}

/* Every window verifies, and all ways of reading agree with BYTES. */
static void
assert_blob_is (const struct bp_root *root, const uint8_t *bytes,
                uint64_t size)
{
  CLEANUP_FREE uint8_t *buf = malloc (size + BP_WINDOW_SIZE);
  struct bp_blob *blob = open_blob (root);

  cr_assert_eq (bp_blob_get_info (blob)->size, size);
  for (uint64_t at = 0; at == 0 || at < size; at += BP_WINDOW_SIZE) {
    const size_t len = size - at < BP_WINDOW_SIZE ? size - at
                                                  : BP_WINDOW_SIZE;

    cr_assert_eq (bp_blob_read_verified (blob, buf, len, at, NULL), 0);
    cr_assert_eq (memcmp (buf, bytes + at, len), 0);
  }
  memset (buf, 0xaa, size);
  cr_assert_eq (bp_blob_read (blob, buf, size, 0, NULL), 0);
  cr_assert_eq (memcmp (buf, bytes, size), 0);
  if (size > 2) {
    cr_assert_eq (bp_blob_read (blob, buf, size - 2, 1, NULL), 0);
    cr_assert_eq (memcmp (buf, bytes + 1, size - 2), 0);
  }
  cr_assert_eq (bp_blob_read (blob, buf, 1, size, NULL), -EINVAL);
  cr_assert_eq (bp_blob_read (blob, buf, 2, UINT64_MAX, NULL), -EINVAL);
  bp_blob_close (blob);
}

static void
reopen (enum bp_store_mode mode)
{
  bp_store_close (f.store);
  cr_assert_eq (bp_store_open (&f.store, f.path, mode, NULL), 0);
}

static void
flip_byte (const char *name, uint64_t offset)
{
  CLEANUP_CLOSE int fd = open (in_store (name), O_RDWR | O_CLOEXEC);
  uint8_t byte;

  cr_assert_eq (bp_pread_exact (fd, &byte, 1, offset), 0);
  byte ^= 1;
  cr_assert_eq (bp_pwrite_all (fd, &byte, 1, offset), 0);
}

/* ---- Opening ---- */

Test (store, opens_only_what_is_a_store)
{
  struct bp_store *store;
  struct bp_error err;
  char path[128];

  snprintf (path, sizeof path, "%s/absent", f.parent);
  cr_assert_eq (bp_store_open (&store, path, BP_STORE_READ, &err), -ENOENT);
  cr_assert_eq (bp_store_open (&store, f.parent, BP_STORE_READ, &err),
                -EPROTO);
  cr_assert_eq (bp_store_open (&store, f.parent, BP_STORE_CREATE, &err),
                -EPROTO, "a directory of other things");
  snprintf (path, sizeof path, "%s/lock", f.path);
  cr_assert_eq (bp_store_open (&store, path, BP_STORE_CREATE, &err),
                -ENOTDIR);
}

Test (store, creation_takes_up_one_that_was_killed)
{
  struct bp_store *store;

  cr_assert_eq (unlink (in_store ("lock")), 0);
  cr_assert_eq (rmdir (in_store ("tmp")), 0);
  cr_assert_eq (bp_store_open (&store, f.path, BP_STORE_READ, NULL),
                -EPROTO);
  cr_assert_eq (bp_store_open (&store, f.path, BP_STORE_CREATE, NULL), 0);
  bp_store_close (store);
}

Test (store, a_link_in_place_of_a_directory_is_refused)
{
  struct bp_store *store;

  cr_assert_eq (rmdir (in_store ("images")), 0);
  cr_assert_eq (symlink ("/tmp", in_store ("images")), 0);
  cr_assert_eq (bp_store_open (&store, f.path, BP_STORE_WRITE, NULL),
                -ELOOP);
}

Test (store, opened_for_reading_refuses_to_write)
{
  struct bp_import *import;

  reopen (BP_STORE_READ);
  cr_assert_eq (bp_import_begin (&import, f.store, BP_CODEC_RAW, NULL),
                -EROFS);
  cr_assert_eq (bp_store_remove_tag (f.store, "x", NULL), -EROFS);
}

/* ---- Blobs ---- */

Test (store, blobs_of_all_sizes_come_back_in_both_codecs)
{
  static const size_t sizes[] = { 0, 1, 4096, 8191, 8192,
                                  8193, 65536, 131071, 131072, 131073,
                                  262144, 300001, 2105344 };

  for (unsigned variant = 0; variant < 4; variant++) {
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      struct bp_import *import =
        begin (variant & 1 ? BP_CODEC_ZSTD : BP_CODEC_RAW);
      CLEANUP_FREE uint8_t *bytes = make_bytes (sizes[i], variant & 2);
      struct bp_root root;

      bytes[0] = (uint8_t) variant; /* No variant has another's roots. */
      root = add_blob (import, bytes, sizes[i], sizes[i] > 0 || variant == 0);
      commit (import, NULL);
      assert_blob_is (&root, bytes, sizes[i]);
    }
  }
}

Test (store, zstd_is_kept_where_it_saves_a_block)
{
  struct bp_import *import = begin (BP_CODEC_ZSTD);
  CLEANUP_FREE uint8_t *text = make_bytes (300000, false);
  CLEANUP_FREE uint8_t *noise = make_bytes (300000, true);
  const struct bp_root large = add_blob (import, text, 300000, true);
  const struct bp_root small = add_segment (import, text, 65536, true);
  const struct bp_root block = add_segment (import, text, 4096, true);
  const struct bp_root random = add_blob (import, noise, 300000, true);
  struct bp_blob *blob;

  commit (import, NULL);
  assert_blob_is (&large, text, 300000);
  assert_blob_is (&small, text, 65536);
  assert_blob_is (&block, text, 4096);
  assert_blob_is (&random, noise, 300000);

  blob = open_blob (&large);
  cr_assert_eq (bp_blob_get_info (blob)->codec, BP_CODEC_ZSTD);
  cr_assert_lt (bp_blob_get_info (blob)->stored_size, 150000);
  bp_blob_close (blob);
  blob = open_blob (&block);
  cr_assert_eq (bp_blob_get_info (blob)->codec, BP_CODEC_RAW);
  bp_blob_close (blob);
  blob = open_blob (&random);
  cr_assert_eq (bp_blob_get_info (blob)->codec, BP_CODEC_RAW);
  bp_blob_close (blob);
}

/* The codec of noise that begins with ZEROS zeros. */
static enum bp_codec
codec_of_noise (size_t zeros)
{
  struct bp_import *import = begin (BP_CODEC_ZSTD);
  CLEANUP_FREE uint8_t *bytes = make_bytes (65536, true);
  struct bp_blob *blob;
  struct bp_root root;
  enum bp_codec codec;

  memset (bytes, 0, zeros);
  root = add_segment (import, bytes, 65536, true);
  commit (import, NULL);
  blob = open_blob (&root);
  codec = bp_blob_get_info (blob)->codec;
  bp_blob_close (blob);
  return codec;
}

Test (store, zstd_that_saves_less_than_a_block_is_not_kept)
{
  cr_assert_eq (codec_of_noise (3000), BP_CODEC_RAW);
  cr_assert_eq (codec_of_noise (8000), BP_CODEC_ZSTD);
}

Test (store, a_blob_half_noise_mixes_frames_and_raw_windows)
{
  struct bp_import *import = begin (BP_CODEC_ZSTD);
  CLEANUP_FREE uint8_t *bytes = make_bytes (4 * BP_WINDOW_SIZE, false);
  CLEANUP_FREE uint8_t *noise = make_bytes (BP_WINDOW_SIZE, true);
  uint32_t frames[4];
  struct bp_blob *blob;
  struct bp_root root;

  memcpy (bytes + BP_WINDOW_SIZE, noise, BP_WINDOW_SIZE);
  root = add_blob (import, bytes, 4 * BP_WINDOW_SIZE, true);
  commit (import, NULL);
  assert_blob_is (&root, bytes, 4 * BP_WINDOW_SIZE);

  blob = open_blob (&root);
  cr_assert_eq (bp_blob_read_frames (blob, 0, 4, frames, NULL), 0);
  cr_assert_lt (frames[0], BP_WINDOW_SIZE);
  cr_assert_eq (frames[1], BP_WINDOW_SIZE);
  cr_assert_eq ((uint64_t) frames[0] + frames[1] + frames[2] + frames[3],
                bp_blob_get_info (blob)->stored_size);
  cr_assert_eq (bp_blob_read_frames (blob, 4, 1, frames, NULL), -EINVAL);
  cr_assert_eq (bp_blob_read_frames (blob, UINT64_MAX, 2, frames, NULL),
                -EINVAL);
  bp_blob_close (blob);
}

Test (store, stored_bytes_and_tree_are_bounded_by_the_blob)
{
  struct bp_import *import = begin (BP_CODEC_RAW);
  CLEANUP_FREE uint8_t *bytes = make_bytes (200000, true);
  const struct bp_root root = add_blob (import, bytes, 200000, true);
  struct bp_blob *blob;
  uint8_t buf[64];

  commit (import, NULL);
  blob = open_blob (&root);
  cr_assert_eq (bp_blob_read_stored (blob, buf, 8, 199992, NULL), 0);
  cr_assert_eq (memcmp (buf, bytes + 199992, 8), 0);
  cr_assert_eq (bp_blob_read_stored (blob, buf, 9, 199992, NULL), -EINVAL);
  cr_assert_eq (bp_blob_read_tree (blob, 0, 24, 1, buf, NULL), 0);
  cr_assert_eq (bp_blob_read_tree (blob, 0, 24, 2, buf, NULL), -EINVAL);
  cr_assert_eq (bp_blob_read_tree (blob, 1, 0, 1, buf, NULL), -EINVAL);
  cr_assert_eq (bp_blob_read_tree (blob, 0, UINT64_MAX, 2, buf, NULL),
                -EINVAL);
  cr_assert_eq (bp_blob_read_verified (blob, buf, 64, 0, NULL), -EINVAL);
  bp_blob_close (blob);
}

Test (store, one_flipped_bit_is_told_for_its_window_and_no_other)
{
  enum {
    SIZE = 3 * BP_WINDOW_SIZE
  };
  struct bp_import *import = begin (BP_CODEC_RAW);
  CLEANUP_FREE uint8_t *bytes = make_bytes (SIZE, true);
  CLEANUP_FREE uint8_t *buf = malloc (BP_WINDOW_SIZE);
  const struct bp_root root = add_blob (import, bytes, SIZE, true);
  CLEANUP_FREE char *pack = NULL;
  struct bp_blob *blob;

  commit (import, NULL);
  pack = only_file ("packs", ".pack");
  flip_byte (pack, 64 + BP_WINDOW_SIZE + 5);
  blob = open_blob (&root);
  for (uint64_t w = 0; w < 3; w++)
    cr_assert_eq (bp_blob_read_verified (blob, buf, BP_WINDOW_SIZE,
                                         w * BP_WINDOW_SIZE, NULL),
                  w == 1 ? -EBADMSG : 0);
  bp_blob_close (blob);
}

Test (store, a_frame_that_does_not_decode_reads_as_zeros)
{
  struct bp_import *import = begin (BP_CODEC_ZSTD);
  CLEANUP_FREE uint8_t *bytes = make_bytes (65536, false);
  const struct bp_root root = add_segment (import, bytes, 65536, true);
  CLEANUP_FREE uint8_t *buf = malloc (65536);
  CLEANUP_FREE char *pack = NULL;
  struct bp_blob *blob;

  commit (import, NULL);
  pack = only_file ("packs", ".pack");
  flip_byte (pack, 64); /* The frame's magic. */
  blob = open_blob (&root);
  memset (buf, 0xaa, 65536);
  cr_assert_eq (bp_blob_read (blob, buf, 65536, 0, NULL), 0);
  cr_assert (bytes_are_zero (buf, 65536));
  cr_assert_eq (bp_blob_read_verified (blob, buf, 65536, 0, NULL), -EBADMSG);
  bp_blob_close (blob);
}

Test (store, bytes_that_a_pack_has_lost_read_as_zeros)
{
  struct bp_import *import = begin (BP_CODEC_RAW);
  CLEANUP_FREE uint8_t *bytes = make_bytes (65536, true);
  const struct bp_root root = add_segment (import, bytes, 65536, true);
  CLEANUP_FREE uint8_t *buf = malloc (65536);
  CLEANUP_FREE char *pack = NULL;
  struct bp_blob *blob;

  commit (import, NULL);
  pack = only_file ("packs", ".pack");
  blob = open_blob (&root);
  cr_assert_eq (truncate (in_store (pack), 64 + 100), 0);
  memset (buf, 0xaa, 65536);
  cr_assert_eq (bp_blob_read (blob, buf, 65536, 0, NULL), 0);
  cr_assert_eq (memcmp (buf, bytes, 100), 0);
  cr_assert (bytes_are_zero (buf + 100, 65536 - 100));
  cr_assert_eq (bp_blob_read_verified (blob, buf, 65536, 0, NULL), -EBADMSG);
  bp_blob_close (blob);
}

Test (store, an_open_blob_survives_the_removal_of_its_pack)
{
  struct bp_import *import = begin (BP_CODEC_RAW);
  const struct bp_root root = add_segment (import, "abc", 3, true);
  CLEANUP_FREE char *pack = NULL;
  struct bp_blob *blob, *other;
  char buf[3];

  commit (import, NULL);
  blob = open_blob (&root);
  pack = only_file ("packs", ".pack");
  cr_assert_eq (unlink (in_store (pack)), 0);
  cr_assert_eq (bp_blob_read_verified (blob, buf, 3, 0, NULL), 0);
  cr_assert_eq (memcmp (buf, "abc", 3), 0);
  bp_blob_close (blob);
  reopen (BP_STORE_READ);
  cr_assert_eq (bp_store_open_blob (f.store, &root, &other, NULL), -ENOENT);
}

Test (store, an_import_by_another_is_found_at_once)
{
  struct bp_store *reader;
  struct bp_import *import;
  struct bp_blob *blob;
  struct bp_root root;

  cr_assert_eq (bp_store_open (&reader, f.path, BP_STORE_READ, NULL), 0);
  cr_assert_eq (bp_root_parse ("15ec7bf0b50732b49f8228e07d24365338f9e3ab994b"
                               "00af08e5a3bffe55fd8b",
                               &root),
                0);
  cr_assert_eq (bp_store_open_blob (reader, &root, &blob, NULL), -ENOENT);
  import = begin (BP_CODEC_RAW);
  root = add_segment (import, "abc", 3, true);
  commit (import, NULL);
  cr_assert_eq (bp_store_open_blob (reader, &root, &blob, NULL), 0);
  bp_blob_close (blob);
  bp_store_close (reader);
}

Test (store, a_damaged_pack_hides_nothing_and_is_not_absence)
{
  struct bp_import *import = begin (BP_CODEC_RAW);
  const struct bp_root lost = add_segment (import, "lost", 4, true);
  CLEANUP_FREE char *pack = NULL;
  struct bp_blob *blob;
  struct bp_root kept;

  commit (import, NULL);
  pack = only_file ("packs", ".pack");
  cr_assert_eq (truncate (in_store (pack), 80), 0);
  reopen (BP_STORE_WRITE);
  import = begin (BP_CODEC_RAW);
  kept = add_segment (import, "kept", 4, true);
  commit (import, NULL);

  assert_blob_is (&kept, (const uint8_t *) "kept", 4);
  cr_assert_eq (bp_store_open_blob (f.store, &lost, &blob, NULL), -EPROTO);

  /* Storing it again heals the store. */
  import = begin (BP_CODEC_RAW);
  add_segment (import, "lost", 4, true);
  commit (import, NULL);
  assert_blob_is (&lost, (const uint8_t *) "lost", 4);
}

/* Descriptors that this process has open. */
static unsigned
count_descriptors (void)
{
  CLEANUP_CLOSEDIR DIR *d = opendir ("/proc/self/fd");
  unsigned count = 0;

  cr_assert_not_null (d);
  while (readdir (d))
    count++;
  return count;
}

Test (store, many_packs_are_found_and_few_stay_open)
{
  enum {
    COUNT = 136
  };
  struct bp_root roots[COUNT], absent = { { 0 } };
  const unsigned before = count_descriptors ();
  struct bp_blob *blob, *held[COUNT];

  for (uint32_t i = 0; i < COUNT; i++) {
    struct bp_import *import = begin (BP_CODEC_RAW);

    roots[i] = add_segment (import, &i, 4, true);
    commit (import, NULL);
  }
  cr_assert_eq (count_names ("packs"), COUNT);
  for (uint32_t round = 0; round < 3; round++)
    for (uint32_t i = 0; i < COUNT; i++) {
      const uint32_t n = i * 7 % COUNT;

      assert_blob_is (&roots[n], (const uint8_t *) &n, 4);
      cr_assert_eq (bp_store_open_blob (f.store, &absent, &blob, NULL),
                    -ENOENT);
    }
  cr_assert_leq (count_descriptors (), before + 130);

  /* Packs that are in use stay open all the same. */
  for (uint32_t i = 0; i < COUNT; i++)
    held[i] = open_blob (&roots[i]);
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t got;

    cr_assert_eq (bp_blob_read_verified (held[i], &got, 4, 0, NULL), 0);
    cr_assert_eq (got, i);
    bp_blob_close (held[i]);
  }
}

/* ---- Import ---- */

Test (store, a_blob_is_stored_once)
{
  struct bp_import *import = begin (BP_CODEC_RAW);
  struct bp_root first, second;
  uint64_t stored;

  first = add_segment (import, "abc", 3, true);
  stored = bp_import_stored (import);
  second = add_segment (import, "abc", 3, false);
  cr_assert (bp_root_equal (&first, &second));
  cr_assert_eq (bp_import_stored (import), stored);
  commit (import, NULL);
  import = begin (BP_CODEC_ZSTD);
  add_segment (import, "abc", 3, false);
  cr_assert_eq (bp_import_stored (import), 0);
  commit (import, NULL);
  cr_assert_eq (count_names ("packs"), 1, "no pack without blobs");
}

Test (store, object_ids_are_never_used_twice)
{
  uint64_t last = 0;

  for (uint32_t i = 0; i < 5; i++) {
    struct bp_import *import = begin (BP_CODEC_RAW);
    const uint32_t numbers[2] = { 2 * i, 2 * i + 1 };
    struct bp_root roots[2];

    for (unsigned j = 0; j < 2; j++)
      roots[j] = add_segment (import, &numbers[j], 4, true);
    commit (import, NULL);
    for (unsigned j = 0; j < 2; j++) {
      struct bp_blob *blob = open_blob (&roots[j]);

      cr_assert_gt (bp_blob_get_info (blob)->object_id, last);
      last = bp_blob_get_info (blob)->object_id;
      bp_blob_close (blob);
    }
  }
}

Test (store, a_damaged_lock_gives_no_object_ids)
{
  struct bp_import *import = begin (BP_CODEC_RAW);
  struct bp_error err;

  add_segment (import, "abc", 3, true);
  cr_assert_eq (truncate (in_store ("lock"), 3), 0);
  cr_assert_eq (bp_import_commit (import, NULL, &err), -EPROTO);
  bp_import_free (import);
  cr_assert_eq (count_names ("packs"), 0);
}

Test (store, without_commit_nothing_stays)
{
  struct bp_import *import = begin (BP_CODEC_RAW);
  const struct bp_root root = add_segment (import, "abc", 3, true);
  struct bp_blob *blob;
  int spool = bp_import_spool (import, NULL);

  cr_assert (spool >= 0);
  close (spool);
  cr_assert_eq (count_names ("tmp"), 1);
  bp_import_free (import);
  cr_assert_eq (count_names ("tmp"), 0);
  cr_assert_eq (bp_store_open_blob (f.store, &root, &blob, NULL), -ENOENT);
}

Test (store, two_imports_side_by_side_both_succeed)
{
  struct bp_import *a = begin (BP_CODEC_RAW), *b = begin (BP_CODEC_RAW);
  const struct bp_root in_a = add_segment (a, "a", 1, true);
  const struct bp_root in_b = add_segment (b, "b", 1, true);
  struct bp_tag tag_a, tag_b, tag;

  add_segment (a, "both", 4, true);
  add_segment (b, "both", 4, true);
  tag_a = tag_named ("a", &in_a);
  tag_b = tag_named ("b", &in_b);
  commit (b, &tag_b);
  commit (a, &tag_a);
  assert_blob_is (&in_a, (const uint8_t *) "a", 1);
  assert_blob_is (&in_b, (const uint8_t *) "b", 1);
  cr_assert_eq (bp_store_get_tag (f.store, "a", &tag, NULL), 0);
  cr_assert_eq (bp_store_get_tag (f.store, "b", &tag, NULL), 0);
}

Test (store, leftovers_of_the_dead_are_swept_and_the_living_are_spared)
{
  struct bp_import *alive = begin (BP_CODEC_RAW), *next;
  CLEANUP_CLOSE int fd = -1;

  add_segment (alive, "alive", 5, true);
  cr_assert_eq (mkdir (in_store ("tmp/dead"), 0700), 0);
  fd = open (in_store ("tmp/dead/lock"), O_CREAT | O_RDWR, 0600);
  cr_assert (fd >= 0);
  cr_assert_eq (mknod (in_store ("tmp/dead/x.pack"), S_IFREG | 0600, 0), 0);
  cr_assert_eq (mknod (in_store ("tmp/new"), S_IFREG | 0600, 0), 0);
  cr_assert_eq (flock (fd, LOCK_EX), 0);
  next = begin (BP_CODEC_RAW);
  cr_assert_eq (count_names ("tmp"), 3, "while its lock is held");
  bp_import_free (next);

  cleanup_close (&fd);
  fd = -1;
  next = begin (BP_CODEC_RAW);
  cr_assert_eq (count_names ("tmp"), 2);
  bp_import_free (next);
  commit (alive, NULL);
  cr_assert_eq (count_names ("tmp"), 0);
}

static int
fail_to_read (void *opaque, uint64_t offset, void *buf, size_t len,
              struct bp_error *err)
{
  (void) opaque;
  memset (buf, 0, len);
  return offset == 0 ? 0 : bp_error_set (err, -EIO, "broken");
}

Test (store, a_known_blob_or_a_failed_source_leaves_the_pack_as_it_was)
{
  struct bp_import *import = begin (BP_CODEC_RAW);
  CLEANUP_FREE uint8_t *bytes = make_bytes (300000, true);
  const struct bp_root large = add_blob (import, bytes, 300000, true);
  const uint64_t stored = bp_import_stored (import);
  struct bp_root root;
  bool is_new;

  add_blob (import, bytes, 300000, false);
  cr_assert_eq (bp_import_stored (import), stored);
  cr_assert_eq (bp_import_add_blob (import, 300000, fail_to_read, NULL, &root,
                                    &is_new, NULL),
                -EIO);
  cr_assert_eq (bp_import_stored (import), stored);
  root = add_segment (import, "abc", 3, true);
  commit (import, NULL);
  assert_blob_is (&root, (const uint8_t *) "abc", 3);
  assert_blob_is (&large, bytes, 300000);
}

Test (store, a_blob_beyond_the_limit_is_too_big)
{
  struct bp_import *import = begin (BP_CODEC_RAW);
  struct bp_root root;
  bool is_new;

  cr_assert_eq (bp_import_add_blob (import, BP_BLOB_MAX_SIZE + 1, read_memory,
                                    NULL, &root, &is_new, NULL),
                -EFBIG);
  bp_import_free (import);
}
