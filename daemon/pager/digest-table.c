/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The table of window digests. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pager/digest-table.h"
#include "daemon/pager/root-hash.h"

enum {
  NR_SETS = 2048,  /* So 8192 windows: 1 GiB of large blobs. */
  SET_ENTRIES = 4, /* The youngest first. */
};

/* Not in use: OFFSET is no window's. */
#define NO_OFFSET UINT64_MAX

struct digest_entry {
  struct bp_root root;
  struct bp_root digest;
  uint64_t offset; /* Of the window, bytes. */
};

int
digest_table_init (struct digest_table *table)
{
  table->seed = root_hash_seed ();
  table->entries =
    calloc (NR_SETS * SET_ENTRIES, sizeof table->entries[0]);
  if (table->entries == NULL)
    return -ENOMEM;
  for (size_t i = 0; i < NR_SETS * SET_ENTRIES; i++)
    table->entries[i].offset = NO_OFFSET;
  return 0;
}

void
digest_table_done (struct digest_table *table)
{
  free (table->entries);
}

uint64_t
digest_table_bytes (void)
{
  return NR_SETS * SET_ENTRIES * sizeof (struct digest_entry);
}

static struct digest_entry *
set_of (const struct digest_table *table, const struct bp_root *root,
        uint64_t offset)
{
  const uint64_t hash = root_hash (table->seed, root) +
                        offset / BP_WINDOW_SIZE;

  return &table->entries[hash % NR_SETS * SET_ENTRIES];
}

/* The place of the entry in its SET, or SET_ENTRIES. */
static unsigned
place_in (const struct digest_entry *set, const struct bp_root *root,
          uint64_t offset)
{
  unsigned i;

  for (i = 0; i < SET_ENTRIES; i++)
    if (set[i].offset == offset && bp_root_equal (&set[i].root, root))
      break;
  return i;
}

bool
digest_table_find (const struct digest_table *table,
                   const struct bp_root *root, uint64_t offset,
                   struct bp_root *ret_digest)
{
  const struct digest_entry *set = set_of (table, root, offset);
  const unsigned i = place_in (set, root, offset);

  if (i == SET_ENTRIES)
    return false;
  *ret_digest = set[i].digest;
  return true;
}

void
digest_table_add (struct digest_table *table, const struct bp_root *root,
                  uint64_t offset, const struct bp_root *digest)
{
  struct digest_entry *set = set_of (table, root, offset);
  unsigned i = place_in (set, root, offset);

  if (i == SET_ENTRIES)
    i--; /* The oldest goes. */
  memmove (&set[1], &set[0], i * sizeof set[0]);
  set[0] = (struct digest_entry){ .root = *root,
                                  .digest = *digest,
                                  .offset = offset };
}
