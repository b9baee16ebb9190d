/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The plan of a replay.  A root that only has open markers is opened all
 * the same, as everything that the profile names.
 *
 * Windows are told apart without the size of the blob, by the place of
 * their 128 KiB: that is right for blobs of any size, but for offsets
 * beyond a small one, which no replay pages in.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/range.h"
#include "daemon/profile/hash-index.h"
#include "daemon/profile/replay-plan.h"

struct root_search {
  const struct bp_root *roots;
  const struct bp_root *root;
};

static bool
is_root (const void *opaque, uint32_t number)
{
  const struct root_search *search = opaque;

  return bp_root_equal (&search->roots[number], search->root);
}

/* The number of ROOT in PLAN, where it is added if it is new.  Returns
 * false when memory has run out.
 */
static bool
number_root (struct replay_plan *plan, struct hash_index *index,
             const struct bp_root *root, uint32_t *ret_number)
{
  const struct root_search search = { plan->roots, root };
  const uint64_t hash = hash_root (index, root, 0);

  *ret_number = hash_index_find (index, hash, is_root, &search);
  if (*ret_number != HASH_INDEX_NONE)
    return true;
  *ret_number = (uint32_t) plan->nr_roots;
  if (hash_index_add (index, hash, *ret_number) < 0)
    return false;
  plan->roots[plan->nr_roots++] = *root;
  return true;
}

struct item_search {
  const struct replay_plan *plan;
  uint32_t blob;
  uint64_t window;
};

static bool
is_item (const void *opaque, uint32_t number)
{
  const struct item_search *search = opaque;
  const struct plan_item *item = &search->plan->items[number];

  return item->blob == search->blob &&
         item->offset / BP_WINDOW_SIZE == search->window;
}

/* Add the page-in at OFFSET of BLOB, if its window is new.  Returns false
 * when memory has run out.
 */
static bool
add_item (struct replay_plan *plan, struct hash_index *index, uint32_t blob,
          uint64_t offset)
{
  const struct item_search search = { plan, blob, offset / BP_WINDOW_SIZE };
  const uint64_t hash =
    hash_root (index, &plan->roots[blob], search.window);
  const uint32_t number = hash_index_find (index, hash, is_item, &search);
  struct plan_item *item = &plan->items[plan->nr_items];

  if (number != HASH_INDEX_NONE) {
    item = &plan->items[number];
    item->offset = MIN (item->offset, offset);
    return true;
  }
  *item = (struct plan_item){ .offset = offset, .blob = blob };
  return hash_index_add (index, hash, (uint32_t) plan->nr_items++) == 0;
}

int
replay_plan_make (struct replay_plan *ret_plan,
                  const struct bp_blob_message *messages, size_t count)
{
  struct replay_plan plan = { 0 };
  struct hash_index roots, items;
  uint32_t number;
  size_t i;
  int r = -ENOMEM;

  hash_index_init (&roots);
  hash_index_init (&items);
  plan.roots = malloc ((count + 1) * sizeof *plan.roots);
  plan.items = malloc ((count + 1) * sizeof *plan.items);
  if (plan.roots == NULL || plan.items == NULL)
    goto out;
  for (i = 0; i < count; i++) {
    if (!number_root (&plan, &roots, &messages[i].root, &number))
      goto out;
    if (messages[i].offset != BP_OPEN_MARKER &&
        !add_item (&plan, &items, number, messages[i].offset))
      goto out;
  }
  r = 0;
  *ret_plan = plan;
  memset (&plan, 0, sizeof plan);
out:
  hash_index_done (&roots);
  hash_index_done (&items);
  replay_plan_done (&plan);
  return r;
}

void
replay_plan_done (struct replay_plan *plan)
{
  free (plan->roots);
  free (plan->items);
  memset (plan, 0, sizeof *plan);
}
