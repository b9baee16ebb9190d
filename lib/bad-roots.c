/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A hash table of roots, keyed by their first bytes. */
#include <config.h>

#include <stdlib.h>

#include "lib/bad-roots.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"

enum {
  FIRST_ROOTS = 64
};

void
bad_roots_done (struct bad_roots *bad)
{
  free (bad->roots);
  free (bad->slots);
}

/* The slot of ROOT among NR_SLOTS (a power of 2). */
static size_t
slot_of (const struct bad_roots *bad, const uint32_t *slots, size_t nr_slots,
         const struct bp_root *root)
{
  size_t i = get_le64 (root->bytes) & (nr_slots - 1);

  while (slots[i] != 0 && !bp_root_equal (&bad->roots[slots[i] - 1].root, root))
    i = (i + 1) & (nr_slots - 1);
  return i;
}

struct bad_root *
bad_roots_find (const struct bad_roots *bad, const struct bp_root *root)
{
  uint32_t number;

  if (bad->count == 0)
    return NULL;
  number = bad->slots[slot_of (bad, bad->slots, 2 * bad->max, root)];
  return number ? &bad->roots[number - 1] : NULL;
}

static int
grow (struct bad_roots *bad)
{
  const size_t max = bad->max ? 2 * bad->max : FIRST_ROOTS;
  CLEANUP_FREE uint32_t *slots = calloc (2 * max, sizeof *slots);
  struct bad_root *roots = reallocarray (bad->roots, max, sizeof *roots);

  if (roots)
    bad->roots = roots;
  if (roots == NULL || slots == NULL)
    return -1;
  for (size_t i = 0; i < bad->count; i++)
    slots[slot_of (bad, slots, 2 * max, &roots[i].root)] = (uint32_t) i + 1;
  free (bad->slots);
  bad->slots = steal_ptr (&slots);
  bad->max = max;
  return 0;
}

struct bad_root *
bad_roots_add (struct bad_roots *bad, const struct bp_root *root, int code,
               uint64_t offset)
{
  struct bad_root *row;

  if (bad->count == bad->max && grow (bad) < 0)
    return NULL;
  row = &bad->roots[bad->count];
  *row = (struct bad_root){ .root = *root, .code = code, .offset = offset };
  bad->count++;
  bad->slots[slot_of (bad, bad->slots, 2 * bad->max, root)] =
    (uint32_t) bad->count;
  return row;
}
