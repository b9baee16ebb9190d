/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Roots of bytes in memory.
 *
 * A blob of one window has at most sixteen leaves and one node above
 * them, so its root needs no allocation.  Lists are hashed a group at a
 * time: first the leaves of the whole group as one list of nodes, then
 * the nodes above, so that an implementation of bp_sha256_list that
 * interleaves blocks finds enough of them.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>

#include "lib/base/range.h"
#include "lib/merkle-node.h"
#include "lib/merkle.h"

enum {
  GROUP_BLOBS = 8
};

/* Leaves of a group, and the nodes that make them. */
struct group {
  size_t nr_nodes;
  struct bp_sha256_job nodes[GROUP_BLOBS * BP_WINDOW_BLOCKS];
  uint8_t leaves[GROUP_BLOBS][BP_WINDOW_BLOCKS * BP_ROOT_SIZE];
};

static uint32_t
nr_leaves (const struct bp_merkle_job *job)
{
  return (uint32_t) bp_merkle_level_count (job->len, 0);
}

/* The leaf of a blob of one block is its root. */
static void
add_leaves (struct group *group, const struct bp_merkle_job *job,
            uint8_t *leaves)
{
  const uint32_t count = nr_leaves (job);

  assert (job->len <= BP_WINDOW_SIZE);
  for (uint32_t i = 0; i < count; i++) {
    const size_t offset = (size_t) i * BP_BLOCK_SIZE;

    group->nodes[group->nr_nodes++] = bp_leaf_job (
      offset, (const uint8_t *) job->data + offset,
      (uint32_t) MIN (job->len - offset, BP_BLOCK_SIZE),
      count == 1 ? job->root->bytes : leaves + i * BP_ROOT_SIZE);
  }
}

static void
hash_group (const struct bp_merkle_job *jobs, size_t count)
{
  struct group group;

  group.nr_nodes = 0;
  for (size_t i = 0; i < count; i++)
    add_leaves (&group, &jobs[i], group.leaves[i]);
  bp_sha256_list (group.nodes, group.nr_nodes);

  group.nr_nodes = 0;
  for (size_t i = 0; i < count; i++)
    if (nr_leaves (&jobs[i]) > 1)
      group.nodes[group.nr_nodes++] =
        bp_inner_job (0, 0, group.leaves[i], nr_leaves (&jobs[i]),
                      jobs[i].root->bytes);
  if (group.nr_nodes > 0)
    bp_sha256_list (group.nodes, group.nr_nodes);
}

void
bp_merkle_roots (const struct bp_merkle_job *jobs, size_t count)
{
  for (size_t i = 0; i < count; i += GROUP_BLOBS)
    hash_group (jobs + i, MIN (count - i, GROUP_BLOBS));
}

/* A blob of more than one window. */
static int
root_of_large (const void *data, size_t len, struct bp_root *ret_root)
{
  struct bp_merkle_builder *builder;
  int r;

  r = bp_merkle_builder_new (&builder, false);
  if (r < 0)
    return r;
  r = bp_merkle_builder_add (builder, data, len);
  if (r == 0)
    r = bp_merkle_builder_finish (builder, ret_root, NULL, NULL, NULL);
  bp_merkle_builder_free (builder);
  return r;
}

int
bp_merkle_root (const void *data, size_t len, struct bp_root *ret_root)
{
  const struct bp_merkle_job job = {
    .data = data,
    .len = len,
    .root = ret_root,
  };

  if (len > BP_WINDOW_SIZE)
    return root_of_large (data, len, ret_root);
  bp_merkle_roots (&job, 1);
  return 0;
}
