/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Merkle trees: roots, geometry, streaming. */
#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "harness/vectors.h"
#include "lib/base/cleanup.h"
#include "lib/base/hex.h"
#include "lib/base/range.h"
#include "lib/merkle.h"

/* Vectors above this are streamed in large pieces only. */
enum {
  SMALL_VECTOR = 20 << 20
};

static void
assert_root (const struct bp_root *got, const struct bp_root *wanted,
             const char *what, uint64_t len)
{
  char got_hex[BP_ROOT_HEX_SIZE], wanted_hex[BP_ROOT_HEX_SIZE];

  cr_assert_str_eq (bp_root_format (got, got_hex),
                    bp_root_format (wanted, wanted_hex), "%s, %ju bytes",
                    what, (uintmax_t) len);
}

/* The root of CONTENT, streamed in pieces of PIECE bytes. */
static struct bp_root
streamed_root (const struct vector_content *content, size_t piece)
{
  struct bp_merkle_builder *builder;
  /* A piece starts anywhere in the pattern. */
  CLEANUP_FREE uint8_t *buf = malloc (piece + content->pattern_len);
  struct bp_root root;
  uint64_t size;

  cr_assert_not_null (buf);
  fill_repeated (buf, piece + content->pattern_len, content->pattern,
                 content->pattern_len, 0);
  cr_assert_eq (bp_merkle_builder_new (&builder, false), 0);
  for (uint64_t done = 0; done < content->len; done += piece)
    cr_assert_eq (bp_merkle_builder_add (
                    builder, buf + done % content->pattern_len,
                    MIN (content->len - done, piece)),
                  0);
  cr_assert_eq (
    bp_merkle_builder_finish (builder, &root, &size, NULL, NULL), 0);
  cr_assert_eq (size, content->len);
  bp_merkle_builder_free (builder);
  return root;
}

Test (merkle, roots_are_those_of_every_vector)
{
  struct vectors row;
  size_t nr_rows = 0;

  vectors_open (&row, "merkle.tsv");
  while (vectors_next (&row)) {
    const struct bp_root wanted = vector_root (row.columns[3]);
    CLEANUP_FREE uint8_t *bytes = NULL;
    const struct vector_content content = vector_content (&row);
    struct bp_root root;

    nr_rows++;
    if (content.len > SMALL_VECTOR) /* Streamed by the test below. */
      continue;
    bytes = vector_bytes (&content);
    cr_assert_eq (bp_merkle_root (bytes, content.len, &root), 0);
    assert_root (&root, &wanted, row.columns[1], content.len);
  }
  cr_assert_eq (nr_rows, 40);
}

Test (merkle, streaming_in_odd_pieces_gives_the_same_roots)
{
  static const size_t pieces[] = { 1, 4093, 8191, 8193, 70001, 2097157 };
  struct vectors row;

  vectors_open (&row, "merkle.tsv");
  while (vectors_next (&row)) {
    const struct bp_root wanted = vector_root (row.columns[3]);
    const struct vector_content content = vector_content (&row);

    for (size_t i = 0; i < ARRAY_LEN (pieces); i++) {
      struct bp_root root;

      if (content.len / pieces[i] > 100000 ||
          (content.len > SMALL_VECTOR && i + 1 < ARRAY_LEN (pieces)))
        continue;
      root = streamed_root (&content, pieces[i]);
      assert_root (&root, &wanted, row.columns[1], content.len);
    }
  }
}

Test (merkle, a_list_of_blobs_has_the_roots_of_each_alone)
{
  static const size_t lengths[] = {
    0,
    1,
    8191,
    8192,
    8193,
    16384,
    65536,
    131071,
    131072,
  };
  enum {
    COUNT = 37
  };
  CLEANUP_FREE uint8_t *bytes = malloc (BP_WINDOW_SIZE + COUNT);
  struct bp_window windows[COUNT];
  struct bp_root alone;

  cr_assert_not_null (bytes);
  fill_splitmix (bytes, BP_WINDOW_SIZE + COUNT, 7);
  for (size_t i = 0; i < COUNT; i++) {
    const size_t len = lengths[i * 5 % ARRAY_LEN (lengths)];

    windows[i] =
      (struct bp_window){ .size = len, .data = bytes + i, .len = len };
  }
  bp_hash_windows (windows, COUNT);
  for (size_t i = 0; i < COUNT; i++) {
    struct bp_merkle_builder *builder;

    cr_assert_eq (windows[i].status, 0);
    cr_assert_eq (bp_merkle_builder_new (&builder, false), 0);
    cr_assert_eq (
      bp_merkle_builder_add (builder, windows[i].data, windows[i].len), 0);
    cr_assert_eq (
      bp_merkle_builder_finish (builder, &alone, NULL, NULL, NULL), 0);
    bp_merkle_builder_free (builder);
    assert_root (&windows[i].computed, &alone, "window", windows[i].len);
  }
}

Test (merkle, the_compact_tree_has_the_published_sizes)
{
  static const struct {
    uint64_t size, tree;
    unsigned levels;
  } rows[] = {
    { 0, 0, 0 },
    { 8192, 0, 0 },
    { 8193, 64, 1 },
    { 65536, 256, 1 },
    { 2097152, 8192, 1 },
    { 2105344, 8288, 2 },
    { 2109440, 8320, 2 },
    { UINT64_C (1) << 40,
      (UINT64_C (32) << 27) + (32 << 19) + (32 << 11) + 256, 4 },
  };

  for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
    const unsigned levels = bp_merkle_nr_levels (rows[i].size);

    cr_assert_eq (levels, rows[i].levels, "size %ju", rows[i].size);
    cr_assert_eq (bp_merkle_level_offset (rows[i].size, levels),
                  rows[i].tree, "size %ju", rows[i].size);
    cr_assert_eq (bp_merkle_level_count (rows[i].size, levels), 1);
  }
}

Test (merkle, geometry_takes_any_size_without_wrapping)
{
  cr_assert_eq (bp_merkle_level_count (UINT64_MAX, 0), UINT64_C (1) << 51);
  cr_assert_eq (bp_merkle_nr_levels (UINT64_MAX), 7);
  cr_assert_eq (bp_nr_windows (UINT64_MAX), UINT64_C (1) << 47);
  cr_assert_eq (bp_nr_windows (0), 1);
  cr_assert_eq (bp_nr_windows (131072), 1);
  cr_assert_eq (bp_nr_windows (131073), 2);
}

Test (merkle, a_kept_tree_is_every_list_below_the_root_leaves_first)
{
  const size_t size = 2105344; /* 257 leaves: levels of 257 and 2. */
  CLEANUP_FREE uint8_t *bytes = malloc (size);
  struct bp_merkle_builder *builder;
  struct bp_root root, leaf, list_root;
  const uint8_t *tree;
  size_t tree_len;

  cr_assert_not_null (bytes);
  fill_splitmix (bytes, size, 3);
  cr_assert_eq (bp_merkle_builder_new (&builder, true), 0);
  cr_assert_eq (bp_merkle_builder_add (builder, bytes, size), 0);
  cr_assert_eq (bp_merkle_builder_finish (builder, &root, NULL, &tree,
                                          &tree_len),
                0);
  cr_assert_eq (tree_len, 8288);
  cr_assert_eq (bp_merkle_root (bytes, 8192, &leaf), 0);
  cr_assert_eq (memcmp (tree, leaf.bytes, BP_ROOT_SIZE), 0);
  /* 256 leaves alone make the root of the first 2 MiB. */
  cr_assert_eq (bp_merkle_root (bytes, 2097152, &list_root), 0);
  cr_assert_eq (memcmp (tree + 257 * BP_ROOT_SIZE, list_root.bytes,
                        BP_ROOT_SIZE),
                0);
  bp_merkle_builder_free (builder);
}

Test (merkle, a_blob_of_one_block_has_no_tree)
{
  struct bp_merkle_builder *builder;
  struct bp_root root;
  const uint8_t *tree = (const uint8_t *) "";
  size_t tree_len = 1;

  cr_assert_eq (bp_merkle_builder_new (&builder, true), 0);
  cr_assert_eq (bp_merkle_builder_add (builder, "x", 1), 0);
  cr_assert_eq (bp_merkle_builder_finish (builder, &root, NULL, &tree,
                                          &tree_len),
                0);
  cr_assert_null (tree);
  cr_assert_eq (tree_len, 0);
  bp_merkle_builder_free (builder);
}

Test (merkle, a_blob_larger_than_the_limit_is_refused)
{
  struct bp_merkle_builder *builder;

  cr_assert_eq (bp_merkle_builder_new (&builder, false), 0);
  cr_assert_eq (bp_merkle_builder_add (builder, "x", 1), 0);
  /* Refused before the bytes are looked at. */
  cr_assert_eq (bp_merkle_builder_add (builder, "x", BP_BLOB_MAX_SIZE),
                -EFBIG);
  bp_merkle_builder_free (builder);
}

Test (merkle, roots_are_parsed_from_64_lower_case_digits_alone)
{
  static const char hex[] =
    "15ec7bf0b50732b49f8228e07d24365338f9e3ab994b00af08e5a3bffe55fd8b";
  char other[BP_ROOT_HEX_SIZE + 1];
  struct bp_root root;

  cr_assert_eq (bp_root_parse (hex, &root), 0);
  cr_assert_str_eq (bp_root_format (&root, other), hex);
  other[63] = '\0';
  cr_assert_eq (bp_root_parse (other, &root), -EINVAL);
  strcpy (other, hex);
  strcat (other, "0");
  cr_assert_eq (bp_root_parse (other, &root), -EINVAL);
  strcpy (other, hex);
  other[1] = 'E';
  cr_assert_eq (bp_root_parse (other, &root), -EINVAL);
  cr_assert_eq (bp_root_parse ("", &root), -EINVAL);
}
