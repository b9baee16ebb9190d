/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Runs of pages in chunks, by masks.
 *
 * Bit i of a mask is page i of the chunk.  "Free" pages belong to nobody;
 * "dirty" pages have been handed out since they were last given back, so
 * the system keeps memory for them: resident = popcount of all dirty
 * masks, and used pages are always dirty.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/base/range.h"
#include "daemon/pager/arena.h"

#define NO_CHUNK UINT32_MAX

struct chunk {
  uint32_t free;
  uint32_t dirty;
  uint32_t prev; /* In the list of its longest run; chunk numbers. */
  uint32_t next;
};

struct arena {
  uint8_t *base;
  uint64_t map_bytes;
  uint32_t nr_chunks;
  uint32_t trim_hand; /* Where the next trim starts to look. */
  uint64_t used_pages;
  uint64_t resident_pages;
  uint64_t nonempty;                     /* Bit n: lists[n] holds a chunk. */
  uint32_t lists[ARENA_CHUNK_PAGES + 1]; /* By longest free run. */
  struct chunk chunks[];
};

/* The longest run of ones.  Each step shortens every run by one. */
static unsigned
longest_run (uint32_t mask)
{
  unsigned n = 0;

  while (mask) {
    mask &= mask >> 1;
    n++;
  }
  return n;
}

/* The ones from which N pages on are all free; N >= 1. */
static uint32_t
run_starts (uint32_t mask, unsigned n)
{
  unsigned have = 1;

  while (have < n) {
    const unsigned step = MIN (have, n - have);

    mask &= mask >> step;
    have += step;
  }
  return mask;
}

static uint32_t
run_mask (unsigned first, unsigned n)
{
  return (uint32_t) (((UINT64_C (1) << n) - 1) << first);
}

static void
list_remove (struct arena *arena, uint32_t c)
{
  struct chunk *chunk = &arena->chunks[c];
  const unsigned list = longest_run (chunk->free);

  if (chunk->prev != NO_CHUNK)
    arena->chunks[chunk->prev].next = chunk->next;
  else
    arena->lists[list] = chunk->next;
  if (chunk->next != NO_CHUNK)
    arena->chunks[chunk->next].prev = chunk->prev;
  if (arena->lists[list] == NO_CHUNK)
    arena->nonempty &= ~(UINT64_C (1) << list);
}

static void
list_add (struct arena *arena, uint32_t c)
{
  struct chunk *chunk = &arena->chunks[c];
  const unsigned list = longest_run (chunk->free);

  chunk->prev = NO_CHUNK;
  chunk->next = arena->lists[list];
  if (chunk->next != NO_CHUNK)
    arena->chunks[chunk->next].prev = c;
  arena->lists[list] = c;
  arena->nonempty |= UINT64_C (1) << list;
}

int
arena_new (struct arena **ret_arena, uint64_t bytes)
{
  const uint64_t chunk_bytes = (uint64_t) ARENA_CHUNK_PAGES * ARENA_PAGE;
  const uint64_t nr_chunks = div_round_up (bytes, chunk_bytes);
  struct arena *arena;
  size_t i;

  if (nr_chunks >= NO_CHUNK)
    return -ENOMEM;
  arena = calloc (1, sizeof *arena + nr_chunks * sizeof arena->chunks[0]);
  if (arena == NULL)
    return -ENOMEM;
  arena->nr_chunks = (uint32_t) nr_chunks;
  arena->map_bytes = nr_chunks * chunk_bytes;
  arena->base = mmap (NULL, arena->map_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena->base == MAP_FAILED) {
    free (arena);
    return -ENOMEM;
  }
  /* A huge page would make pages resident that nobody counted.  Kernels
   * without huge pages refuse the advice, and need none.
   */
  (void) madvise (arena->base, arena->map_bytes, MADV_NOHUGEPAGE);

  for (i = 0; i < ARRAY_LEN (arena->lists); i++)
    arena->lists[i] = NO_CHUNK;
  for (i = nr_chunks; i-- > 0;) {
    arena->chunks[i].free = UINT32_MAX;
    list_add (arena, (uint32_t) i);
  }
  *ret_arena = arena;
  return 0;
}

void
arena_free (struct arena *arena)
{
  if (arena == NULL)
    return;
  munmap (arena->base, arena->map_bytes);
  free (arena);
}

/* Give the free pages of one chunk back, run by run. */
static void
trim_chunk (struct arena *arena, uint32_t c)
{
  struct chunk *chunk = &arena->chunks[c];
  uint32_t idle = chunk->free & chunk->dirty;

  while (idle) {
    const unsigned first = (unsigned) __builtin_ctz (idle);
    const uint32_t above = ~(idle >> first);
    const unsigned n = above ? MIN ((unsigned) __builtin_ctz (above),
                                    ARENA_CHUNK_PAGES - first)
                             : ARENA_CHUNK_PAGES - first;
    uint8_t *run =
      arena->base + ((uint64_t) c * ARENA_CHUNK_PAGES + first) * ARENA_PAGE;

    /* Fails only for memory that is not ours. */
    if (madvise (run, (size_t) n * ARENA_PAGE, MADV_DONTNEED) != 0)
      return;
    chunk->dirty &= ~run_mask (first, n);
    idle &= ~run_mask (first, n);
    arena->resident_pages -= n;
  }
}

/* Give free pages back to the system until at most MAX_RESIDENT are
 * resident, or none that is free is.
 */
static void
arena_trim (struct arena *arena, uint64_t max_resident)
{
  uint32_t looked;

  for (looked = 0; looked < arena->nr_chunks; looked++) {
    if (arena->resident_pages <= max_resident ||
        arena->resident_pages == arena->used_pages)
      return;
    trim_chunk (arena, arena->trim_hand);
    arena->trim_hand = (arena->trim_hand + 1) % arena->nr_chunks;
  }
}

uint8_t *
arena_alloc (struct arena *arena, unsigned nr_pages, uint64_t max_resident)
{
  struct chunk *chunk;
  uint64_t lists;
  uint32_t c, starts, run, fresh;
  unsigned first;

  assert (nr_pages >= 1 && nr_pages <= ARENA_CHUNK_PAGES);
  if (arena->used_pages + nr_pages > max_resident)
    return NULL;
  lists = arena->nonempty >> nr_pages;
  if (lists == 0)
    return NULL;
  c = arena->lists[nr_pages + (unsigned) __builtin_ctzll (lists)];
  chunk = &arena->chunks[c];
  starts = run_starts (chunk->free, nr_pages);
  first = (unsigned) __builtin_ctz (starts);
  run = run_mask (first, nr_pages);

  list_remove (arena, c);
  chunk->free &= ~run;
  list_add (arena, c);
  fresh = (uint32_t) __builtin_popcount (run & ~chunk->dirty);
  chunk->dirty |= run;
  arena->used_pages += nr_pages;
  arena->resident_pages += fresh;
  if (arena->resident_pages > max_resident)
    arena_trim (arena, max_resident);
  return arena->base + ((uint64_t) c * ARENA_CHUNK_PAGES + first) * ARENA_PAGE;
}

void
arena_release (struct arena *arena, uint8_t *run, unsigned nr_pages)
{
  const uint64_t page = (uint64_t) (run - arena->base) / ARENA_PAGE;
  const uint32_t c = (uint32_t) (page / ARENA_CHUNK_PAGES);
  const uint32_t mask =
    run_mask ((unsigned) (page % ARENA_CHUNK_PAGES), nr_pages);

  assert (c < arena->nr_chunks);
  assert ((arena->chunks[c].free & mask) == 0);
  list_remove (arena, c);
  arena->chunks[c].free |= mask;
  list_add (arena, c);
  arena->used_pages -= nr_pages;
}

uint64_t
arena_used_pages (const struct arena *arena)
{
  return arena->used_pages;
}

uint64_t
arena_resident_pages (const struct arena *arena)
{
  return arena->resident_pages;
}

uint64_t
arena_table_bytes (const struct arena *arena)
{
  return sizeof *arena + arena->nr_chunks * sizeof arena->chunks[0];
}
