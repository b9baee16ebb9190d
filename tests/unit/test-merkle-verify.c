/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Merkle trees: windows verified by the path to them, blocks verified by
 * the list of leaves.
 */
#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "harness/vectors.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/merkle.h"

/* A blob in memory with its tree. */
struct fixture {
  uint8_t *bytes;
  size_t size;
  struct bp_root root;
  struct bp_merkle_builder *builder; /* Owns tree. */
  const uint8_t *tree;
};

static struct fixture
blob_of (size_t size)
{
  struct fixture f = { .size = size };

  f.bytes = malloc (size + 1);
  cr_assert_not_null (f.bytes);
  fill_splitmix (f.bytes, size, size);
  cr_assert_eq (bp_merkle_builder_new (&f.builder, true), 0);
  cr_assert_eq (bp_merkle_builder_add (f.builder, f.bytes, size), 0);
  cr_assert_eq (
    bp_merkle_builder_finish (f.builder, &f.root, NULL, &f.tree, NULL), 0);
  return f;
}

static void
blob_done (struct fixture *f)
{
  bp_merkle_builder_free (f->builder);
  free (f->bytes);
}

static size_t
window_len (const struct fixture *f, uint64_t offset)
{
  return MIN (f->size - offset, BP_WINDOW_SIZE);
}

/* Verify the window at OFFSET with the nodes of the fixture's tree. */
static int
verify_window (const struct fixture *f, uint64_t offset,
               struct bp_error *err)
{
  struct bp_merkle_node path[BP_MERKLE_MAX_LEVELS];
  const uint8_t *nodes[BP_MERKLE_MAX_LEVELS];
  const unsigned nr = bp_merkle_path (f->size, offset, path);

  cr_assert_eq (nr, bp_merkle_nr_levels (f->size));
  for (unsigned i = 0; i < nr; i++)
    nodes[i] = f->tree + bp_merkle_level_offset (f->size, path[i].level) +
               path[i].first * BP_ROOT_SIZE;
  return bp_merkle_verify_window (&f->root, f->size, offset,
                                  f->bytes + offset, window_len (f, offset),
                                  nodes, err);
}

static void
flip_bit (uint8_t *byte, unsigned bit)
{
  *byte ^= (uint8_t) (1u << bit);
}

/* Sizes around blocks, windows, nodes and levels. */
static const size_t sizes[] = {
  0,
  1,
  8192,
  8193,
  131072,
  131073,
  132096,
  2097151,
  2097152,
  2097153,
  2105344,
  4194305,
};

Test (merkle_verify, every_window_verifies_by_its_path)
{
  for (size_t i = 0; i < ARRAY_LEN (sizes); i++) {
    struct fixture f = blob_of (sizes[i]);
    struct bp_error err = { .msg = "" };

    for (uint64_t w = 0; w < bp_nr_windows (f.size); w++)
      cr_assert_eq (verify_window (&f, w * BP_WINDOW_SIZE, &err), 0,
                    "size %zu, window %ju: %s", f.size, (uintmax_t) w,
                    err.msg);
    blob_done (&f);
  }
}

/* The digests of all windows, by way of the leaves. */
static void
digests_by_nodes (const struct fixture *f, struct bp_root *digests)
{
  const uint64_t count = bp_merkle_level_count (f->size, 0);

  for (uint64_t first = 0; first < count; first += BP_NODE_DIGESTS)
    digests += bp_window_digests (
      f->tree + first * BP_ROOT_SIZE,
      (uint32_t) MIN (count - first, BP_NODE_DIGESTS), digests);
}

Test (merkle_verify, a_window_s_digest_is_the_same_by_its_bytes_and_leaves)
{
  for (size_t i = 0; i < ARRAY_LEN (sizes); i++) {
    struct fixture f = blob_of (sizes[i]);
    CLEANUP_FREE struct bp_root *digests =
      calloc (bp_nr_windows (f.size) + BP_NODE_WINDOWS, sizeof *digests);
    struct bp_root digest;

    if (f.size > BP_WINDOW_SIZE)
      digests_by_nodes (&f, digests);
    for (uint64_t w = 0; f.size > BP_WINDOW_SIZE && w < bp_nr_windows (f.size);
         w++) {
      const uint64_t offset = w * BP_WINDOW_SIZE;

      bp_window_digest (offset, f.bytes + offset, window_len (&f, offset),
                        &digest);
      cr_assert (bp_root_equal (&digest, &digests[w]),
                 "size %zu, window %ju", f.size, (uintmax_t) w);
      flip_bit (f.bytes + offset, 3);
      bp_window_digest (offset, f.bytes + offset, window_len (&f, offset),
                        &digest);
      cr_assert_not (bp_root_equal (&digest, &digests[w]));
    }
    blob_done (&f);
  }
}

Test (merkle_verify, a_flipped_bit_fails_its_window_alone_and_says_where)
{
  struct fixture f = blob_of (2105344);
  const uint64_t bad = 37 * BP_BLOCK_SIZE;
  struct bp_error err;

  flip_bit (f.bytes + bad + 5, 3);
  for (uint64_t w = 0; w < bp_nr_windows (f.size); w++)
    cr_assert_eq (verify_window (&f, w * BP_WINDOW_SIZE, &err),
                  w == bad / BP_WINDOW_SIZE ? -EBADMSG : 0, "window %ju",
                  (uintmax_t) w);
  cr_assert_str_eq (err.msg,
                    "block 37 at offset 303104: digest mismatch");
  cr_assert_eq (err.code, -EBADMSG);
  blob_done (&f);
}

Test (merkle_verify, a_flipped_bit_in_any_node_of_the_path_is_corrupt)
{
  struct fixture f = blob_of (4194305);
  const unsigned nr_levels = bp_merkle_nr_levels (f.size);

  cr_assert_eq (nr_levels, 2);
  for (unsigned level = 0; level < nr_levels; level++) {
    uint8_t *list =
      (uint8_t *) f.tree + bp_merkle_level_offset (f.size, level);
    struct bp_error err;

    flip_bit (list, 7);
    cr_assert_eq (verify_window (&f, 0, &err), -EBADMSG, "level %u", level);
    cr_assert_not_null (strstr (err.msg, "tree level"), "%s", err.msg);
    flip_bit (list, 7);
    cr_assert_eq (verify_window (&f, 0, &err), 0);
  }
  blob_done (&f);
}

Test (merkle_verify, a_window_does_not_verify_at_another_windows_place)
{
  struct fixture f = blob_of (524288);

  memmove (f.bytes, f.bytes + BP_WINDOW_SIZE, BP_WINDOW_SIZE);
  cr_assert_eq (verify_window (&f, 0, NULL), -EBADMSG);
  blob_done (&f);
}

Test (merkle_verify, what_is_no_window_is_the_callers_mistake)
{
  struct fixture f = blob_of (262145);
  const uint8_t *nodes[BP_MERKLE_MAX_LEVELS] = { f.tree };
  static const struct {
    uint64_t offset;
    size_t len;
  } bad[] = {
    { 8192, BP_WINDOW_SIZE },
    { 0, BP_WINDOW_SIZE - 1 },
    { 0, BP_BLOCK_SIZE },
    { 262144, 2 },
    { 262144, 0 },
    { 393216, 1 },
    { UINT64_MAX - 131071, 131072 },
  };

  for (size_t i = 0; i < ARRAY_LEN (bad); i++)
    cr_assert_eq (bp_merkle_verify_window (&f.root, f.size, bad[i].offset,
                                           f.bytes, bad[i].len, nodes, NULL),
                  -EINVAL, "row %zu", i);
  blob_done (&f);
}

/* ---- Leaves ---- */

static size_t
nr_leaves (const struct fixture *f)
{
  return f->size > BP_BLOCK_SIZE ? bp_merkle_level_count (f->size, 0) : 0;
}

static int
verify_by_leaves (const struct fixture *f, uint64_t offset, size_t len,
                  uint64_t *ret_bad, struct bp_error *err)
{
  return bp_merkle_verify_leaves (
    &f->root, f->size, (const struct bp_root *) f->tree, nr_leaves (f),
    offset, f->bytes + offset, len, ret_bad, err);
}

Test (merkle_verify, the_whole_blob_verifies_by_its_leaves)
{
  for (size_t i = 0; i < ARRAY_LEN (sizes); i++) {
    struct fixture f = blob_of (sizes[i]);
    struct bp_error err = { .msg = "" };

    cr_assert_eq (verify_by_leaves (&f, 0, f.size, NULL, &err), 0,
                  "size %zu: %s", f.size, err.msg);
    blob_done (&f);
  }
}

Test (merkle_verify, leaves_say_which_block_has_the_flipped_bit)
{
  struct fixture f = blob_of (37 * BP_BLOCK_SIZE + 100);
  struct bp_error err;
  uint64_t bad = 0;

  flip_bit (f.bytes + 20 * BP_BLOCK_SIZE + 5, 3);
  cr_assert_eq (verify_by_leaves (&f, 0, f.size, &bad, &err), -EBADMSG);
  cr_assert_eq (bad, 20 * BP_BLOCK_SIZE);
  cr_assert_str_eq (err.msg,
                    "block 20 at offset 163840: digest mismatch");
  /* Its neighbours verify. */
  cr_assert_eq (
    verify_by_leaves (&f, 0, 20 * BP_BLOCK_SIZE, &bad, &err), 0);
  cr_assert_eq (verify_by_leaves (&f, 21 * BP_BLOCK_SIZE,
                                  f.size - 21 * BP_BLOCK_SIZE, &bad, &err),
                0);
  blob_done (&f);
}

Test (merkle_verify, windows_verify_by_leaves_as_by_their_path)
{
  struct fixture f = blob_of (4194305);

  flip_bit (f.bytes + 3 * BP_WINDOW_SIZE, 0);
  flip_bit (f.bytes + f.size - 1, 0);
  for (uint64_t w = 0; w < bp_nr_windows (f.size); w++) {
    const uint64_t offset = w * BP_WINDOW_SIZE;

    cr_assert_eq (
      verify_by_leaves (&f, offset, window_len (&f, offset), NULL, NULL),
      verify_window (&f, offset, NULL), "window %ju", (uintmax_t) w);
  }
  blob_done (&f);
}

Test (merkle_verify, a_tail_with_one_byte_more_or_less_is_corrupt)
{
  struct fixture f = blob_of (8192 * 3 + 100);

  f.bytes[f.size] = 0;
  for (int d = -1; d <= 1; d++) {
    struct fixture other = f;

    other.size = f.size + (size_t) d;
    cr_assert_eq (verify_by_leaves (&other, 24576, 100 + (size_t) d, NULL,
                                    NULL),
                  d == 0 ? 0 : -EBADMSG, "%+d", d);
  }
  blob_done (&f);
}

Test (merkle_verify, leaves_that_do_not_rebuild_the_root_are_malformed)
{
  struct fixture f = blob_of (2105344);
  const struct bp_root *leaves = (const struct bp_root *) f.tree;
  const size_t count = nr_leaves (&f);

  for (size_t wrong = 0; wrong <= count + 1; wrong++) {
    if (wrong != 0 && wrong < count - 1)
      continue;
    cr_assert_eq (bp_merkle_verify_leaves (&f.root, f.size, leaves, wrong,
                                           0, f.bytes, 8192, NULL, NULL),
                  wrong == count ? 0 : -EPROTO, "%zu leaves", wrong);
  }
  /* Even if the leaf of the block asked for is the right one. */
  flip_bit ((uint8_t *) f.tree + 256 * BP_ROOT_SIZE, 1);
  cr_assert_eq (verify_by_leaves (&f, 0, 8192, NULL, NULL), -EPROTO);
  blob_done (&f);
}

Test (merkle_verify, leaves_and_size_must_agree_on_small_blobs)
{
  struct fixture small = blob_of (100), empty = blob_of (0);
  const struct bp_root two[2] = { small.root, small.root };
  uint8_t zeros[BP_BLOCK_SIZE] = { 0 };

  /* One leaf, written out, is the root. */
  cr_assert_eq (bp_merkle_verify_leaves (&small.root, 100, two, 1, 0,
                                         small.bytes, 100, NULL, NULL),
                0);
  /* A leaf too many. */
  cr_assert_eq (bp_merkle_verify_leaves (&small.root, 100, two, 2, 0,
                                         small.bytes, 100, NULL, NULL),
                -EPROTO);
  /* Leaves missing. */
  cr_assert_eq (bp_merkle_verify_leaves (&small.root, 8193, NULL, 0, 0,
                                         small.bytes, 0, NULL, NULL),
                -EPROTO);
  /* Not empty, said to be empty; and the other way round. */
  cr_assert_eq (bp_merkle_verify_leaves (&small.root, 0, NULL, 0, 0, zeros,
                                         0, NULL, NULL),
                -EBADMSG);
  cr_assert_eq (bp_merkle_verify_leaves (&empty.root, 100, NULL, 0, 0,
                                         zeros, 100, NULL, NULL),
                -EBADMSG);
  blob_done (&small);
  blob_done (&empty);
}

Test (merkle_verify, leaves_take_whole_blocks_inside_the_blob)
{
  struct fixture f = blob_of (3 * BP_BLOCK_SIZE + 1);
  static const struct {
    uint64_t offset;
    size_t len;
  } bad[] = {
    { 1, 8192 },
    { 0, 8191 },
    { 0, 24578 },
    { 24576, 8192 },
    { 24576, 2 },
    { UINT64_MAX - 8191, 8192 },
    { 32768, 0 },
  };

  for (size_t i = 0; i < ARRAY_LEN (bad); i++)
    cr_assert_eq (bp_merkle_verify_leaves (
                    &f.root, f.size, (const struct bp_root *) f.tree, 4,
                    bad[i].offset, f.bytes, bad[i].len, NULL, NULL),
                  -EINVAL, "row %zu", i);
  blob_done (&f);
}
