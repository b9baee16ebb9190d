/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Merkle trees: windows verified by the path to them or by their digest,
 * alone and in lists; blocks verified by the list of leaves.
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

/* A window of a blob, and room for the nodes on its path. */
struct subject {
  struct bp_window window;
  const uint8_t *nodes[BP_MERKLE_MAX_LEVELS];
};

/* The window at OFFSET, with its nodes from the fixture's tree. */
static void
set_subject (struct subject *subject, const struct fixture *f,
             uint64_t offset)
{
  struct bp_merkle_node path[BP_MERKLE_MAX_LEVELS];
  const unsigned nr = bp_merkle_path (f->size, offset, path);

  cr_assert_eq (nr, bp_merkle_nr_levels (f->size));
  for (unsigned i = 0; i < nr; i++)
    subject->nodes[i] = f->tree +
                        bp_merkle_level_offset (f->size, path[i].level) +
                        path[i].first * BP_ROOT_SIZE;
  subject->window = (struct bp_window){
    .size = f->size,
    .offset = offset,
    .data = f->bytes + offset,
    .len = window_len (f, offset),
    .root = &f->root,
    .nodes = subject->nodes,
  };
}

/* Verify the window at OFFSET by its path. */
static int
verify_window (const struct fixture *f, uint64_t offset)
{
  struct subject subject;

  set_subject (&subject, f, offset);
  bp_verify_windows (&subject.window, 1);
  return subject.window.status;
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

    for (uint64_t w = 0; w < bp_nr_windows (f.size); w++)
      cr_assert_eq (verify_window (&f, w * BP_WINDOW_SIZE), 0,
                    "size %zu, window %ju", f.size, (uintmax_t) w);
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

/* The window at OFFSET of a large blob, by its DIGEST. */
static int
verify_by_digest (const struct fixture *f, uint64_t offset,
                  const struct bp_root *digest)
{
  struct bp_window window = {
    .size = f->size,
    .offset = offset,
    .data = f->bytes + offset,
    .len = window_len (f, offset),
    .digest = digest,
  };

  bp_verify_windows (&window, 1);
  return window.status;
}

Test (merkle_verify, a_window_verifies_by_the_digest_that_its_leaves_gave)
{
  for (size_t i = 0; i < ARRAY_LEN (sizes); i++) {
    struct fixture f = blob_of (sizes[i]);
    CLEANUP_FREE struct bp_root *digests =
      calloc (bp_nr_windows (f.size) + BP_NODE_WINDOWS, sizeof *digests);

    if (f.size > BP_WINDOW_SIZE)
      digests_by_nodes (&f, digests);
    for (uint64_t w = 0; f.size > BP_WINDOW_SIZE && w < bp_nr_windows (f.size);
         w++) {
      const uint64_t offset = w * BP_WINDOW_SIZE;

      cr_assert_eq (verify_by_digest (&f, offset, &digests[w]), 0,
                    "size %zu, window %ju", f.size, (uintmax_t) w);
      flip_bit (f.bytes + offset, 3);
      cr_assert_eq (verify_by_digest (&f, offset, &digests[w]), -EBADMSG,
                    "size %zu, window %ju", f.size, (uintmax_t) w);
    }
    blob_done (&f);
  }
}

Test (merkle_verify, a_flipped_bit_fails_its_window_alone)
{
  struct fixture f = blob_of (2105344);
  const uint64_t bad = 37 * BP_BLOCK_SIZE;

  flip_bit (f.bytes + bad + 5, 3);
  for (uint64_t w = 0; w < bp_nr_windows (f.size); w++)
    cr_assert_eq (verify_window (&f, w * BP_WINDOW_SIZE),
                  w == bad / BP_WINDOW_SIZE ? -EBADMSG : 0, "window %ju",
                  (uintmax_t) w);
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

    flip_bit (list, 7);
    cr_assert_eq (verify_window (&f, 0), -EBADMSG, "level %u", level);
    flip_bit (list, 7);
    cr_assert_eq (verify_window (&f, 0), 0);
  }
  blob_done (&f);
}

/* Other bytes, with leaves that are theirs, and nodes above that are theirs
 * up to any level: what stands above gives them away.
 */
Test (merkle_verify, a_forged_window_is_corrupt_however_much_is_forged)
{
  struct fixture f = blob_of (4194305), forged = blob_of (4194306);
  const unsigned nr_levels = bp_merkle_nr_levels (f.size);
  struct subject subject, other;

  forged.size = f.size; /* The last byte is in another window. */
  set_subject (&subject, &f, 0);
  set_subject (&other, &forged, 0);
  subject.window.data = other.window.data;
  for (unsigned level = 0; level <= nr_levels; level++) {
    bp_verify_windows (&subject.window, 1);
    cr_assert_eq (subject.window.status, -EBADMSG,
                  "forged up to level %u of %u", level, nr_levels);
    if (level < nr_levels)
      subject.nodes[level] = other.nodes[level];
  }
  subject.window.root = &forged.root;
  bp_verify_windows (&subject.window, 1);
  cr_assert_eq (subject.window.status, 0);
  blob_done (&f);
  blob_done (&forged);
}

Test (merkle_verify, a_window_does_not_verify_at_another_windows_place)
{
  struct fixture f = blob_of (524288);

  memmove (f.bytes, f.bytes + BP_WINDOW_SIZE, BP_WINDOW_SIZE);
  cr_assert_eq (verify_window (&f, 0), -EBADMSG);
  blob_done (&f);
}

Test (merkle_verify, what_is_no_window_is_the_callers_mistake)
{
  struct fixture f = blob_of (262145);
  static const struct {
    uint64_t offset;
    size_t len;
  } bad[] = {
    { 8192, BP_WINDOW_SIZE },
    { 0, BP_WINDOW_SIZE - 1 },
    { 0, BP_WINDOW_SIZE + 1 },
    { 0, BP_BLOCK_SIZE },
    { 262144, 2 },
    { 262144, 0 },
    { 393216, 1 },
    { UINT64_MAX - 131071, 131072 },
  };

  for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
    struct subject subjects[3];
    struct bp_window windows[3];

    /* Between two that are. */
    for (int j = 0; j < 3; j++)
      set_subject (&subjects[j], &f, 0);
    subjects[1].window.offset = bad[i].offset;
    subjects[1].window.len = bad[i].len;
    for (int j = 0; j < 3; j++)
      windows[j] = subjects[j].window;
    bp_verify_windows (windows, 3);
    cr_assert_eq (windows[0].status, 0);
    cr_assert_eq (windows[1].status, -EINVAL, "row %zu", i);
    cr_assert_eq (windows[2].status, 0);
  }
  blob_done (&f);
}

/* ---- Lists ---- */

enum {
  NR_BLOBS = 9,
  NR_SUBJECTS = 100, /* Several groups, the last not full. */
};

/* A list of windows of many blobs, of every kind, in random order. */
struct crowd {
  struct fixture blobs[NR_BLOBS];
  struct bp_root *digests[NR_BLOBS]; /* Of all windows of a large blob. */
  struct subject subjects[NR_SUBJECTS];
  struct bp_window windows[NR_SUBJECTS];
};

static void
crowd_init (struct crowd *crowd)
{
  static const size_t blob_sizes[NR_BLOBS] = {
    0,
    1,
    8192,
    8193,
    65536,
    131072,
    131073,
    2105344,
    4194305,
  };
  uint64_t random = 1;

  for (size_t i = 0; i < NR_BLOBS; i++) {
    struct fixture *f = &crowd->blobs[i];

    *f = blob_of (blob_sizes[i]);
    crowd->digests[i] = calloc (bp_nr_windows (f->size) + BP_NODE_WINDOWS,
                                sizeof *crowd->digests[i]);
    cr_assert_not_null (crowd->digests[i]);
    if (f->size > BP_WINDOW_SIZE)
      digests_by_nodes (f, crowd->digests[i]);
  }
  for (size_t i = 0; i < NR_SUBJECTS; i++) {
    const size_t which = splitmix64 (&random) % NR_BLOBS;
    const struct fixture *f = &crowd->blobs[which];
    const uint64_t w = splitmix64 (&random) % bp_nr_windows (f->size);

    set_subject (&crowd->subjects[i], f, w * BP_WINDOW_SIZE);
    crowd->windows[i] = crowd->subjects[i].window;
    if (splitmix64 (&random) % 2) {
      crowd->windows[i].nodes = NULL;
      crowd->windows[i].digest = &crowd->digests[which][w];
    }
  }
}

static void
crowd_done (struct crowd *crowd)
{
  for (size_t i = 0; i < NR_BLOBS; i++) {
    blob_done (&crowd->blobs[i]);
    free (crowd->digests[i]);
  }
}

Test (merkle_verify, a_list_verifies_as_each_of_its_windows_alone)
{
  static struct crowd crowd;

  crowd_init (&crowd);
  for (size_t count = 0; count <= NR_SUBJECTS; count++) {
    for (size_t i = 0; i < count; i++)
      crowd.windows[i].status = 1;
    bp_verify_windows (crowd.windows, count);
    for (size_t i = 0; i < count; i++)
      cr_assert_eq (crowd.windows[i].status, 0, "window %zu of %zu", i,
                    count);
  }
  crowd_done (&crowd);
}

Test (merkle_verify, one_corrupt_window_of_a_list_fails_alone)
{
  static struct crowd crowd;

  crowd_init (&crowd);
  for (size_t bad = 0; bad < NR_SUBJECTS; bad++) {
    const struct bp_window right = crowd.windows[bad];
    CLEANUP_FREE uint8_t *copy = malloc (right.len + 1);

    cr_assert_not_null (copy);
    memcpy (copy, right.data, right.len);
    flip_bit (copy + right.len / 2, bad % 8);
    crowd.windows[bad].data = copy;
    bp_verify_windows (crowd.windows, NR_SUBJECTS);
    for (size_t i = 0; i < NR_SUBJECTS; i++)
      cr_assert_eq (crowd.windows[i].status,
                    i == bad && right.len > 0 ? -EBADMSG : 0,
                    "window %zu, with number %zu corrupt", i, bad);
    crowd.windows[bad] = right;
  }
  crowd_done (&crowd);
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
      verify_window (&f, offset), "window %ju", (uintmax_t) w);
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
