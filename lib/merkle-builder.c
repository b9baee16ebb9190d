/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The streaming builder of Merkle trees.
 *
 *   level 0   [ leaf leaf leaf … ]  the node that is being filled
 *   level 1   [ digest … ]
 *   …
 *
 * A level's node is hashed into the next level when it is full, so a
 * level that holds exactly one digest has never been flushed, and that
 * digest is the root if the level is the top one of the final size.
 * Memory is one node a level, and the lists themselves if the tree is
 * kept.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/merkle-node.h"
#include "lib/merkle.h"

enum {
  BATCH_BLOCKS = 32
}; /* Blocks hashed as one list. */

/* Digests of one level. */
struct level {
  uint8_t node[BP_BLOCK_SIZE]; /* The digests not hashed yet. */
  uint32_t fill;               /* Digests in node, below 256. */
  uint64_t count;              /* Digests ever added. */
  uint8_t *list;               /* All of them, if the tree is kept. */
  size_t capacity;             /* Bytes allocated at list. */
};

struct bp_merkle_builder {
  bool keep_tree;
  uint64_t size;                /* Bytes added. */
  uint32_t block_fill;          /* Bytes in block. */
  uint8_t block[BP_BLOCK_SIZE]; /* The block that is not complete. */
  struct level levels[BP_MERKLE_MAX_LEVELS + 1];
  uint8_t *tree; /* After finish; NULL if none. */
};

int
bp_merkle_builder_new (struct bp_merkle_builder **ret_builder, bool keep_tree)
{
  struct bp_merkle_builder *builder = calloc (1, sizeof *builder);

  if (builder == NULL)
    return -ENOMEM;
  builder->keep_tree = keep_tree;
  *ret_builder = builder;
  return 0;
}

void
bp_merkle_builder_free (struct bp_merkle_builder *builder)
{
  if (builder == NULL)
    return;
  for (size_t i = 0; i < ARRAY_LEN (builder->levels); i++)
    free (builder->levels[i].list);
  free (builder->tree);
  free (builder);
}

static int
keep_digest (struct level *level, const uint8_t *digest)
{
  const size_t used = (size_t) level->count * BP_ROOT_SIZE;

  if (used == level->capacity) {
    const size_t capacity = MAX (2 * level->capacity, BP_BLOCK_SIZE);
    uint8_t *list = realloc (level->list, capacity);

    if (list == NULL)
      return -ENOMEM;
    level->list = list;
    level->capacity = capacity;
  }
  memcpy (level->list + used, digest, BP_ROOT_SIZE);
  return 0;
}

/* Hash what level number L's node holds. */
static void
hash_node (struct bp_merkle_builder *builder, unsigned l, uint8_t *digest)
{
  struct level *level = &builder->levels[l];
  const struct bp_sha256_job job = bp_inner_job (
    l, level->count - level->fill, level->node, level->fill, digest);

  bp_sha256_list (&job, 1);
  level->fill = 0;
}

/* Add a digest to level L, and what it completes to the levels above. */
static int
add_digest (struct bp_merkle_builder *builder, unsigned l,
            const uint8_t *digest)
{
  struct level *level = &builder->levels[l];
  uint8_t above[BP_ROOT_SIZE];

  assert (l < ARRAY_LEN (builder->levels));
  if (builder->keep_tree && keep_digest (level, digest) < 0)
    return -ENOMEM;
  memcpy (level->node + level->fill * BP_ROOT_SIZE, digest, BP_ROOT_SIZE);
  level->fill++;
  level->count++;
  if (level->fill < BP_NODE_DIGESTS)
    return 0;
  hash_node (builder, l, above);
  return add_digest (builder, l + 1, above);
}

/* Hash LEN bytes at OFFSET of the blob, at most BATCH_BLOCKS blocks; only
 * the last may be short.
 */
static int
add_blocks (struct bp_merkle_builder *builder, uint64_t offset,
            const uint8_t *data, size_t len)
{
  struct bp_sha256_job jobs[BATCH_BLOCKS];
  uint8_t digests[BATCH_BLOCKS][BP_ROOT_SIZE];
  const size_t count =
    bp_leaf_jobs (offset, data, len, jobs, digests, BATCH_BLOCKS);

  bp_sha256_list (jobs, count);
  for (size_t i = 0; i < count; i++) {
    const int r = add_digest (builder, 0, digests[i]);

    if (r < 0)
      return r;
  }
  return 0;
}

/* Put up to LEN bytes into the incomplete block, and hash it if that
 * completes it.  Returns how many were taken, or -ENOMEM.
 */
static ssize_t
fill_block (struct bp_merkle_builder *builder, const uint8_t *data,
            size_t len)
{
  const size_t n = MIN (len, BP_BLOCK_SIZE - builder->block_fill);

  memcpy (builder->block + builder->block_fill, data, n);
  builder->block_fill += (uint32_t) n;
  builder->size += n;
  if (builder->block_fill == BP_BLOCK_SIZE) {
    builder->block_fill = 0;
    if (add_blocks (builder, builder->size - BP_BLOCK_SIZE, builder->block,
                    BP_BLOCK_SIZE) < 0)
      return -ENOMEM;
  }
  return (ssize_t) n;
}

int
bp_merkle_builder_add (struct bp_merkle_builder *builder, const void *data,
                       size_t len)
{
  const uint8_t *p = data;

  if (len > BP_BLOB_MAX_SIZE - builder->size)
    return -EFBIG;
  while (len > 0) {
    ssize_t n;

    if (builder->block_fill > 0 || len < BP_BLOCK_SIZE) {
      n = fill_block (builder, p, len);
    }
    else {
      n = (ssize_t) MIN (round_down (len, BP_BLOCK_SIZE),
                         BATCH_BLOCKS * BP_BLOCK_SIZE);
      if (add_blocks (builder, builder->size, p, (size_t) n) < 0)
        return -ENOMEM;
      builder->size += (uint64_t) n;
    }
    if (n < 0)
      return (int) n;
    p += n;
    len -= (size_t) n;
  }
  return 0;
}

/* Hash the last block, and every level's last node but the root's. */
static int
close_levels (struct bp_merkle_builder *builder)
{
  const unsigned nr_levels = bp_merkle_nr_levels (builder->size);
  uint8_t digest[BP_ROOT_SIZE];
  int r = 0;

  if (builder->block_fill > 0 || builder->size == 0)
    r = add_blocks (builder, builder->size - builder->block_fill,
                    builder->block, builder->block_fill);
  for (unsigned l = 0; r == 0 && l < nr_levels; l++)
    if (builder->levels[l].fill > 0) {
      hash_node (builder, l, digest);
      r = add_digest (builder, l + 1, digest);
    }
  return r;
}

/* All lists below the root, one after another. */
static int
join_lists (struct bp_merkle_builder *builder, size_t *ret_len)
{
  const unsigned nr_levels = bp_merkle_nr_levels (builder->size);
  const size_t len =
    (size_t) bp_merkle_level_offset (builder->size, nr_levels);
  uint8_t *p;

  *ret_len = len;
  if (len == 0)
    return 0;
  p = builder->tree = malloc (len);
  if (p == NULL)
    return -ENOMEM;
  for (unsigned l = 0; l < nr_levels; l++) {
    const struct level *level = &builder->levels[l];
    const size_t n = (size_t) level->count * BP_ROOT_SIZE;

    memcpy (p, level->list, n);
    p += n;
  }
  assert (p == builder->tree + len);
  return 0;
}

int
bp_merkle_builder_finish (struct bp_merkle_builder *builder,
                          struct bp_root *ret_root, uint64_t *ret_size,
                          const uint8_t **ret_tree, size_t *ret_tree_len)
{
  const struct level *top;
  size_t tree_len = 0;
  int r;

  r = close_levels (builder);
  if (r == 0 && builder->keep_tree)
    r = join_lists (builder, &tree_len);
  if (r < 0)
    return r;

  top = &builder->levels[bp_merkle_nr_levels (builder->size)];
  assert (top->count == 1);
  memcpy (ret_root->bytes, top->node, BP_ROOT_SIZE);
  if (ret_size)
    *ret_size = builder->size;
  if (ret_tree)
    *ret_tree = builder->tree;
  if (ret_tree_len)
    *ret_tree_len = tree_len;
  return 0;
}
