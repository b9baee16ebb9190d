/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Window memory: whole pages out of one mapping.
 *
 * The mapping is cut into chunks of 128 KiB, the size of the largest
 * window.  A chunk has a mask of its 32 pages that are free, and stands
 * in the list of its longest free run:
 *
 *   chunk   ████░░░░██░░░░░░░░░░████████████   longest run 10
 *   lists   [1] [2] … [10] ─▶ chunk ─▶ chunk … [32] ─▶ untouched chunks
 *
 * An allocation is a run of pages inside one chunk, taken from the
 * shortest list that can serve it, so that windows of a few pages fill
 * the gaps between others and whole chunks stay whole.
 *
 * The mapping is larger than what may be used, because runs leave gaps;
 * memory that was used and is free again is given back to the system
 * when what is resident would pass the limit of an allocation.
 *
 * Threads: the caller locks.
 */
#ifndef BP_ARENA_H
#define BP_ARENA_H

#include <stddef.h>
#include <stdint.h>

enum {
  ARENA_PAGE = 4096, /* Bytes. */
  ARENA_CHUNK_PAGES = 32,
};

struct arena;

/* Map room for at least BYTES.  Returns 0 or -ENOMEM. */
int arena_new (struct arena **ret_arena, uint64_t bytes);
void arena_free (struct arena *arena);

/* A run of NR_PAGES pages (1 … 32), or NULL if no chunk has one, or if
 * more than MAX_RESIDENT pages would be in use.  Its bytes are whatever
 * they were.
 */
uint8_t *arena_alloc (struct arena *arena, unsigned nr_pages,
                      uint64_t max_resident);
void arena_release (struct arena *arena, uint8_t *run, unsigned nr_pages);

/* Pages handed out, and pages that the system keeps memory for. */
uint64_t arena_used_pages (const struct arena *arena);
uint64_t arena_resident_pages (const struct arena *arena);

/* Bytes of the arena's own tables. */
uint64_t arena_table_bytes (const struct arena *arena);

#endif /* BP_ARENA_H */
