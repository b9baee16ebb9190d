/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The key table, and which windows a read covers. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "lib/base/cleanup.h"
#include "nbdkit-plugin/mapper.h"

/* More windows than lie between two checkpoints, and a short last one. */
enum {
  NR_WINDOWS = 2100
};
#define LARGE_SIZE ((uint64_t) (NR_WINDOWS - 1) * BP_WINDOW_SIZE + 1000)

static char dir[] = "/tmp/bp.XXXXXX";
static struct bp_store *store;
static struct mapper *mapper;
static struct bp_root small_root, large_root;

/* Windows compress to different sizes: each has a number of its own of
 * changing bytes.
 */
static int
give_large (void *opaque, uint64_t offset, void *buf, size_t len,
            struct bp_error *err)
{
  const uint64_t w = offset / BP_WINDOW_SIZE;

  (void) opaque;
  (void) err;
  memset (buf, (int) w, len);
  for (size_t i = 0; i < len && i < w % 97; i++)
    ((uint8_t *) buf)[i * 8 % len] = (uint8_t) (i * i * 31 + w);
  return 0;
}

static void
add_blobs (void)
{
  static const uint8_t small[100] = "a small blob";
  struct bp_import *import;
  bool is_new;

  cr_assert_eq (bp_import_begin (&import, store, BP_CODEC_ZSTD, NULL), 0);
  cr_assert_eq (bp_import_add_segment (import, small, sizeof small,
                                       &small_root, &is_new, NULL),
                0);
  cr_assert_eq (bp_import_add_blob (import, LARGE_SIZE, give_large, NULL,
                                    &large_root, &is_new, NULL),
                0);
  cr_assert_eq (bp_import_commit (import, NULL, NULL), 0);
  bp_import_free (import);
}

static void
set_up (void)
{
  cr_assert_not_null (mkdtemp (dir));
  cr_assert_eq (bp_store_open (&store, dir, BP_STORE_CREATE, NULL), 0);
  add_blobs ();
  cr_assert_eq (mapper_new (&mapper, store), 0);
}

static void
tear_down (void)
{
  char command[64];

  mapper_free (mapper);
  bp_store_close (store);
  snprintf (command, sizeof command, "rm -rf %s", dir);
  cr_assert_eq (system (command), 0);
}

TestSuite (mapper, .init = set_up, .fini = tear_down);

static struct bp_error damage; /* Of the last open_key. */

/* Open one key through the bytes of a request; returns its status. */
static int
open_key (uint64_t key, const struct bp_root *root)
{
  const struct bp_open_item item = { .key = key, .root = *root };
  struct bp_request request = { .op = BP_OP_OPEN, .count = 1 };
  struct bp_open_result result;
  CLEANUP_FREE uint8_t *bytes = NULL;
  size_t len;

  cr_assert_eq (bp_request_encode (&request, &item, NULL, &bytes, &len), 0);
  cr_assert_eq (bp_request_decode (bytes, len, &request, NULL), 0);
  mapper_open_batch (mapper, &request, &result, &damage);
  return result.status;
}

static int
look_up (uint64_t key)
{
  CLEANUP_MAPPED_BLOB struct mapped_blob *mapped = NULL;

  return mapper_get_slot (mapper, bp_key_slot (key), &mapped, NULL);
}

Test (mapper, gives_a_slot_to_one_key_at_a_time)
{
  CLEANUP_MAPPED_BLOB struct mapped_blob *mapped = NULL;

  cr_assert_eq (look_up (5), -EAGAIN);
  cr_assert_eq (open_key (5, &small_root), 0);
  cr_assert_eq (look_up (5), 0);
  cr_assert_eq (open_key (5, &small_root), -EEXIST);
  cr_assert_eq (open_key (5 + BP_NR_SLOTS, &large_root), -EEXIST);
  cr_assert_eq (mapper_get_key (mapper, 5 + BP_NR_SLOTS, &mapped, NULL),
                -EINVAL);
  mapper_close_key (mapper, 5 + BP_NR_SLOTS);
  cr_assert_eq (look_up (5), 0);
  mapper_close_key (mapper, 5);
  cr_assert_eq (look_up (5), -EAGAIN);
  cr_assert_eq (open_key (5 + BP_NR_SLOTS, &large_root), 0);
  cr_assert_eq (mapper_get_key (mapper, 5 + BP_NR_SLOTS, &mapped, NULL), 0);
  cr_assert_eq (mapped_blob_key (mapped), 5 + BP_NR_SLOTS);
}

/* Cut every pack of the store short. */
static void
cut_packs (void)
{
  char command[96];

  snprintf (command, sizeof command, "truncate -s -1 %s/packs/*.pack", dir);
  cr_assert_eq (system (command), 0);
}

Test (mapper, tells_once_why_a_damaged_pack_opens_nothing)
{
  const struct bp_root missing = { { 1, 2, 3 } };

  cr_assert_eq (open_key (5, &missing), -ENOENT);
  cr_assert_eq (damage.code, 0, "absence is no damage: %s", damage.msg);

  cut_packs ();
  bp_store_close (store);
  mapper_free (mapper);
  cr_assert_eq (bp_store_open (&store, dir, BP_STORE_READ, NULL), 0);
  cr_assert_eq (mapper_new (&mapper, store), 0);

  cr_assert_eq (open_key (6, &small_root), -EBADMSG);
  cr_assert_eq (damage.code, -EBADMSG);
  cr_assert_not_null (strstr (damage.msg, "digest mismatch"),
                      "it says: %s", damage.msg);
  cr_assert_eq (open_key (7, &large_root), -EBADMSG);
  cr_assert_eq (damage.code, 0, "told again: %s", damage.msg);
}

Test (mapper, remembers_a_failed_open_until_it_is_closed)
{
  const struct bp_root missing = { { 1, 2, 3 } };

  cr_assert_eq (open_key (7, &missing), -ENOENT);
  cr_assert_eq (look_up (7), -EINVAL);
  cr_assert_eq (open_key (7, &small_root), -EEXIST);
  cr_assert_eq (mapper_nr_keys (mapper), 1);
  mapper_close_key (mapper, 7);
  cr_assert_eq (mapper_nr_keys (mapper), 0);
  cr_assert_eq (open_key (7, &small_root), 0);
}

Test (mapper, has_room_at_both_ends_and_none_at_slot_0)
{
  cr_assert_eq (look_up (BP_NR_SLOTS), -EINVAL);
  cr_assert_eq (open_key (1, &small_root), 0);
  cr_assert_eq (open_key (BP_NR_SLOTS - 1, &small_root), 0);
  cr_assert_eq (open_key (BP_NR_SLOTS + 2, &small_root), 0);
  cr_assert_eq (look_up (2), 0);
  cr_assert_eq (mapper_nr_keys (mapper), 3);
}

Test (mapper, keeps_a_blob_for_the_read_that_its_close_overtakes)
{
  struct recording_set *recordings;
  struct mapped_blob *mapped;
  char bytes[13];

  cr_assert_eq (recording_set_new (&recordings), 0);
  cr_assert_eq (open_key (9, &small_root), 0);
  cr_assert_eq (mapper_get_key (mapper, 9, &mapped, NULL), 0);
  mapper_close_key (mapper, 9);
  cr_assert_eq (mapped_blob_read (mapped, recordings, bytes, sizeof bytes,
                                  0, false, NULL),
                0);
  cr_assert_str_eq (bytes, "a small blob");
  mapped_blob_unref (mapped);
  recording_set_free (recordings);
}

static void
expect_windows (struct mapped_blob *mapped, uint64_t offset, uint64_t len,
                bool is_stored, uint64_t first, uint64_t last)
{
  uint64_t got_first, got_last;

  cr_assert_eq (mapped_blob_windows (mapped, offset, len, is_stored,
                                     &got_first, &got_last, NULL),
                0);
  cr_assert_eq (got_first, first, "first of %d: %d, not %d", (int) offset,
                (int) got_first, (int) first);
  cr_assert_eq (got_last, last, "last of %d: %d, not %d", (int) offset,
                (int) got_last, (int) last);
}

Test (mapper, knows_the_windows_of_decoded_and_of_stored_ranges)
{
  CLEANUP_MAPPED_BLOB struct mapped_blob *mapped = NULL;
  static uint32_t frames[NR_WINDOWS];
  uint64_t at = 0, stored_size;

  cr_assert_eq (open_key (1, &large_root), 0);
  cr_assert_eq (mapper_get_key (mapper, 1, &mapped, NULL), 0);
  stored_size = bp_blob_get_info (mapped_blob_get (mapped))->stored_size;
  cr_assert_eq (bp_blob_read_frames (mapped_blob_get (mapped), 0, NR_WINDOWS,
                                     frames, NULL),
                0);

  expect_windows (mapped, 0, LARGE_SIZE, false, 0, NR_WINDOWS - 1);
  expect_windows (mapped, 131071, 2, false, 0, 1);
  expect_windows (mapped, LARGE_SIZE - 1, 1, false, NR_WINDOWS - 1,
                  NR_WINDOWS - 1);

  for (uint64_t w = 0; w < NR_WINDOWS; w++) {
    expect_windows (mapped, at, frames[w], true, w, w);
    expect_windows (mapped, at + frames[w] - 1, 1, true, w, w);
    if (w > 0)
      expect_windows (mapped, at - 1, 2, true, w - 1, w);
    at += frames[w];
  }
  cr_assert_eq (at, stored_size);
  expect_windows (mapped, 0, stored_size, true, 0, NR_WINDOWS - 1);
}
