/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Window memory: runs of whole pages, none twice, none lost. */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <criterion/criterion.h>

#include "daemon/pager/arena.h"

#define NO_LIMIT UINT64_MAX

struct run {
  uint8_t *bytes;
  unsigned nr_pages;
};

static struct arena *
arena_of_chunks (unsigned chunks)
{
  struct arena *arena = NULL;

  cr_assert_eq (arena_new (&arena, (uint64_t) chunks * ARENA_CHUNK_PAGES *
                                     ARENA_PAGE),
                0);
  return arena;
}

static uint8_t *
must_alloc (struct arena *arena, unsigned nr_pages)
{
  uint8_t *run = arena_alloc (arena, nr_pages, NO_LIMIT);

  cr_assert_not_null (run, "no run of %u pages", nr_pages);
  return run;
}

/* A pattern that tells runs apart. */
static void
fill (const struct run *run, uint8_t mark)
{
  memset (run->bytes, mark, (size_t) run->nr_pages * ARENA_PAGE);
}

static void
assert_filled (const struct run *run, uint8_t mark)
{
  size_t i;

  for (i = 0; i < (size_t) run->nr_pages * ARENA_PAGE; i++)
    cr_assert_eq (run->bytes[i], mark, "byte %zu is %u, wanted %u", i,
                  run->bytes[i], mark);
}

Test (arena, serves_exactly_its_pages)
{
  struct arena *arena = arena_of_chunks (3);
  unsigned i;

  for (i = 0; i < 3 * ARENA_CHUNK_PAGES; i++)
    must_alloc (arena, 1);
  cr_assert_null (arena_alloc (arena, 1, NO_LIMIT));
  cr_assert_eq (arena_used_pages (arena), 3 * ARENA_CHUNK_PAGES);
  arena_free (arena);
}

Test (arena, a_run_is_contiguous_and_aligned_to_pages)
{
  struct arena *arena = arena_of_chunks (2);
  unsigned n;

  for (n = 1; n <= ARENA_CHUNK_PAGES; n++) {
    struct run run = { must_alloc (arena, n), n };

    cr_assert_eq ((uintptr_t) run.bytes % ARENA_PAGE, 0);
    fill (&run, (uint8_t) n);
    assert_filled (&run, (uint8_t) n);
    arena_release (arena, run.bytes, n);
  }
  cr_assert_eq (arena_used_pages (arena), 0);
  arena_free (arena);
}

Test (arena, small_runs_fill_gaps_and_leave_chunks_whole)
{
  struct arena *arena = arena_of_chunks (2);
  uint8_t *large = must_alloc (arena, 30);
  uint8_t *small = must_alloc (arena, 2);

  /* The gap of 2 behind the 30, not the second chunk. */
  cr_assert_eq (small, large + 30 * ARENA_PAGE);
  must_alloc (arena, ARENA_CHUNK_PAGES);
  arena_free (arena);
}

Test (arena, neighbours_that_are_released_become_one_run)
{
  struct arena *arena = arena_of_chunks (1);
  uint8_t *runs[4];
  unsigned i;

  for (i = 0; i < 4; i++)
    runs[i] = must_alloc (arena, 8);
  cr_assert_null (arena_alloc (arena, 1, NO_LIMIT));
  arena_release (arena, runs[1], 8);
  arena_release (arena, runs[2], 8);
  cr_assert_null (arena_alloc (arena, 17, NO_LIMIT));
  cr_assert_eq (must_alloc (arena, 16), runs[1]);
  arena_free (arena);
}

Test (arena, uses_no_more_pages_than_it_may)
{
  struct arena *arena = arena_of_chunks (4);

  cr_assert_not_null (arena_alloc (arena, 20, 40));
  cr_assert_not_null (arena_alloc (arena, 20, 40));
  cr_assert_null (arena_alloc (arena, 1, 40));
  cr_assert_not_null (arena_alloc (arena, 1, 41));
  arena_free (arena);
}

/* Pages of the mapping that the system really keeps. */
static size_t
resident_pages (const uint8_t *base, size_t nr_pages)
{
  unsigned char *vec = calloc (1, nr_pages);
  size_t i, count = 0;

  cr_assert_eq (mincore ((void *) (uintptr_t) base, nr_pages * ARENA_PAGE,
                         vec),
                0);
  for (i = 0; i < nr_pages; i++)
    count += vec[i] & 1;
  free (vec);
  return count;
}

Test (arena, what_is_released_goes_back_to_the_system_when_it_must)
{
  enum {
    CHUNKS = 4,
    LIMIT = 48
  };
  struct arena *arena = arena_of_chunks (CHUNKS);
  struct run first = { arena_alloc (arena, 32, LIMIT), 32 };
  struct run second, third;

  fill (&first, 1);
  arena_release (arena, first.bytes, 16); /* Its first half. */
  cr_assert_eq (arena_resident_pages (arena), 32);

  /* Fits no gap, and 16 idle pages are too many beside it. */
  second = (struct run){ arena_alloc (arena, 32, LIMIT), 32 };
  cr_assert_not_null (second.bytes);
  fill (&second, 2);
  cr_assert_eq (arena_resident_pages (arena), LIMIT);
  cr_assert_eq (resident_pages (first.bytes, 32), 16);

  third = (struct run){ first.bytes + 16 * ARENA_PAGE, 16 };
  assert_filled (&third, 1);
  assert_filled (&second, 2);
  arena_free (arena);
}

Test (arena, random_runs_never_overlap_and_add_up)
{
  enum {
    RUNS = 300,
    STEPS = 20000
  };
  struct arena *arena = arena_of_chunks (64);
  struct run *runs = calloc (RUNS, sizeof runs[0]);
  uint64_t used = 0, x = 1;
  unsigned i, k;

  for (i = 0; i < STEPS; i++) {
    x = x * UINT64_C (6364136223846793005) + 1442695040888963407;
    k = (unsigned) (x >> 33) % RUNS;
    if (runs[k].bytes) {
      assert_filled (&runs[k], (uint8_t) k);
      arena_release (arena, runs[k].bytes, runs[k].nr_pages);
      used -= runs[k].nr_pages;
      runs[k].bytes = NULL;
    }
    else {
      runs[k].nr_pages = 1 + (unsigned) (x >> 20) % 8;
      runs[k].bytes = arena_alloc (arena, runs[k].nr_pages, 1500);
      if (runs[k].bytes) {
        fill (&runs[k], (uint8_t) k);
        used += runs[k].nr_pages;
      }
    }
    cr_assert_eq (arena_used_pages (arena), used);
    cr_assert_leq (arena_resident_pages (arena), 1500);
  }
  free (runs);
  arena_free (arena);
}
