/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Hashing and verifying windows: the one place where a digest is compared.
 *
 *   blob of one window:  blocks ─▶ leaves ─▶ root          = ROOT
 *   window of more:      blocks ─▶ leaves ─▶ digest        = DIGEST
 *   … with the path:     blocks ─▶ leaves   = part of node 0
 *                        node i ─▶ digest   = part of node i + 1, … = ROOT
 *
 * Windows are taken in groups.  The hashes of a group that need nothing but
 * what came from outside, leaves and nodes, make one list for bp_sha256_list
 * together with those of the group before that needed its leaves: so few
 * lanes are ever idle.  Nothing is compared before all of a window has been
 * hashed, and nothing counts before it has been compared from the root down.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lib/base/range.h"
#include "lib/merkle-node.h"
#include "lib/merkle.h"

enum {
  GROUP_WINDOWS = 16,
  /* Of a group: leaves, nodes, and what the group before still needs. */
  LIST_JOBS = GROUP_WINDOWS * (BP_WINDOW_BLOCKS + BP_MERKLE_MAX_LEVELS + 1),
};

/* Of one window. */
struct hashes {
  uint8_t leaves[BP_WINDOW_BLOCKS][BP_ROOT_SIZE];
  uint8_t nodes[BP_MERKLE_MAX_LEVELS][BP_ROOT_SIZE];
};

struct group {
  struct bp_window *windows;
  size_t nr;
  struct hashes hashes[GROUP_WINDOWS];
};

struct list {
  size_t nr;
  struct bp_sha256_job jobs[LIST_JOBS];
};

static bool
is_whole_blob (const struct bp_window *window)
{
  return window->size <= BP_WINDOW_SIZE;
}

/* Whether it is verified by the nodes on its path. */
static bool
has_path (const struct bp_window *window)
{
  return !is_whole_blob (window) && window->nodes != NULL;
}

static size_t
nr_leaves (const struct bp_window *window)
{
  return (size_t) bp_merkle_level_count (window->len, 0);
}

/* ---- Hashing ---- */

static void
add_job (struct list *list, const struct bp_sha256_job *job)
{
  assert (list->nr < LIST_JOBS);
  list->jobs[list->nr++] = *job;
}

static void
add_blocks (struct list *list, const struct bp_window *window,
            struct hashes *hashes)
{
  list->nr += bp_leaf_jobs (window->offset, window->data, window->len,
                            &list->jobs[list->nr], hashes->leaves,
                            MIN (BP_WINDOW_BLOCKS, LIST_JOBS - list->nr));
}

static void
add_path (struct list *list, const struct bp_window *window,
          struct hashes *hashes)
{
  struct bp_merkle_node path[BP_MERKLE_MAX_LEVELS];
  const unsigned nr = bp_merkle_path (window->size, window->offset, path);

  for (unsigned i = 0; i < nr; i++) {
    const struct bp_sha256_job job =
      bp_inner_job (path[i].level, path[i].first, window->nodes[i],
                    path[i].count, hashes->nodes[i]);

    add_job (list, &job);
  }
}

/* What can be hashed of GROUP at once. */
static void
add_group (struct list *list, struct group *group)
{
  for (size_t i = 0; i < group->nr; i++) {
    struct bp_window *window = &group->windows[i];

    window->status =
      bp_is_window (window->size, window->offset, window->len) ? 0 : -EINVAL;
    if (window->status < 0)
      continue;
    add_blocks (list, window, &group->hashes[i]);
    if (has_path (window))
      add_path (list, window, &group->hashes[i]);
  }
}

/* What can be hashed when the leaves of GROUP are known. */
static void
add_rest (struct list *list, struct group *group)
{
  for (size_t i = 0; i < group->nr; i++) {
    struct bp_window *window = &group->windows[i];
    const uint8_t *leaves = group->hashes[i].leaves[0];
    uint8_t *computed = window->computed.bytes;
    struct bp_sha256_job job;

    if (window->status < 0 || has_path (window))
      continue;
    if (!is_whole_blob (window))
      job = bp_window_digest_job (leaves, nr_leaves (window), computed);
    else if (nr_leaves (window) > 1)
      job = bp_inner_job (0, 0, leaves, (uint32_t) nr_leaves (window),
                          computed);
    else {
      memcpy (computed, leaves, BP_ROOT_SIZE);
      continue;
    }
    add_job (list, &job);
  }
}

/* ---- Comparing ---- */

size_t
bp_digests_mismatch (const uint8_t (*digests)[BP_ROOT_SIZE],
                     const uint8_t *wanted, size_t count)
{
  size_t i;

  for (i = 0; i < count; i++)
    if (memcmp (digests[i], wanted + i * BP_ROOT_SIZE, BP_ROOT_SIZE) != 0)
      break;
  return i;
}

static bool
are_equal (const uint8_t (*digests)[BP_ROOT_SIZE], const uint8_t *wanted,
           size_t count)
{
  return bp_digests_mismatch (digests, wanted, count) == count;
}

/* The nodes by their parents, the topmost by the root, the leaves by node 0.
 */
static bool
path_is_verified (const struct bp_window *window,
                  const struct hashes *hashes)
{
  struct bp_merkle_node path[BP_MERKLE_MAX_LEVELS];
  unsigned level = bp_merkle_path (window->size, window->offset, path);
  const uint8_t *wanted = window->root->bytes;

  while (level > 0) {
    uint64_t index;

    level--;
    if (!are_equal (&hashes->nodes[level], wanted, 1))
      return false;
    index = level > 0 ? path[level - 1].first / BP_NODE_DIGESTS
                      : window->offset / BP_BLOCK_SIZE;
    wanted =
      window->nodes[level] + (index - path[level].first) * BP_ROOT_SIZE;
  }
  return are_equal (hashes->leaves, wanted, nr_leaves (window));
}

static bool
is_verified (const struct bp_window *window, const struct hashes *hashes)
{
  const struct bp_root *wanted =
    is_whole_blob (window) ? window->root : window->digest;

  if (has_path (window))
    return path_is_verified (window, hashes);
  return are_equal (&window->computed.bytes, wanted->bytes, 1);
}

static void
compare_group (const struct group *group)
{
  for (size_t i = 0; i < group->nr; i++) {
    struct bp_window *window = &group->windows[i];

    if (window->status == 0 && !is_verified (window, &group->hashes[i]))
      window->status = -EBADMSG;
  }
}

/* ---- Lists of windows ---- */

static void
hash_windows (struct bp_window *windows, size_t count, bool compare)
{
  struct group groups[2];
  struct group *group = &groups[0], *before = NULL;
  struct list list;

  while (count > 0 || before) {
    list.nr = 0;
    if (before)
      add_rest (&list, before);
    group->windows = windows;
    group->nr = MIN (count, GROUP_WINDOWS);
    add_group (&list, group);
    bp_sha256_list (list.jobs, list.nr);
    if (before && compare)
      compare_group (before);
    windows += group->nr;
    count -= group->nr;
    before = group->nr > 0 ? group : NULL;
    group = group == &groups[0] ? &groups[1] : &groups[0];
  }
}

void
bp_hash_windows (struct bp_window *windows, size_t count)
{
  hash_windows (windows, count, false);
}

void
bp_verify_windows (struct bp_window *windows, size_t count)
{
  hash_windows (windows, count, true);
}

unsigned
bp_window_digests (const uint8_t *leaves, uint32_t count,
                   struct bp_root digests[BP_NODE_WINDOWS])
{
  struct bp_sha256_job jobs[BP_NODE_WINDOWS];
  unsigned nr = 0;

  assert (count <= BP_NODE_DIGESTS);
  for (uint32_t i = 0; i < count; i += BP_WINDOW_BLOCKS) {
    jobs[nr] = bp_window_digest_job (leaves + i * (size_t) BP_ROOT_SIZE,
                                     MIN (count - i, BP_WINDOW_BLOCKS),
                                     digests[nr].bytes);
    nr++;
  }
  bp_sha256_list (jobs, nr);
  return nr;
}
