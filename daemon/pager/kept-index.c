/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The index windows that an export keeps.
 *
 * Every read of an image looks into its index; if each took a reference to
 * the same few windows, all cores would pass their counts around.  So the
 * export holds a reference of its own to those that its clients' reads
 * have used, for as long as anybody refers to the export, and a read that
 * has the export looks into them without more:
 *
 *   kept   [0] ─▶ window 0   [1] ─▶ window 33   [2] -   …   W % KEPT
 *
 * A place once taken is not given to another window, so that what a reader
 * has found there stays.  All exports together keep a small share of the
 * budget; what finds no room is found in the hash.
 *
 * Reads of a watched export do not look here: the windows they need are
 * told to the observer, each with a reference of its own.
 */
#include <config.h>

#include <assert.h>
#include <string.h>

#include "daemon/pager/internal.h"

enum {
  KEPT_SHARE = 16, /* A sixteenth of the budget. */
};

static bool
take_share (struct pager *pager, uint64_t bytes)
{
  const uint64_t most = pager->cache->budget / KEPT_SHARE;

  /* What is full is only looked at. */
  if (atomic_load_explicit (&pager->kept_bytes, memory_order_relaxed) +
        bytes >
      most)
    return false;
  if (atomic_fetch_add_explicit (&pager->kept_bytes, bytes,
                                 memory_order_relaxed) +
        bytes <=
      most)
    return true;
  atomic_fetch_sub_explicit (&pager->kept_bytes, bytes,
                             memory_order_relaxed);
  return false;
}

static void
give_share (struct pager *pager, uint64_t bytes)
{
  atomic_fetch_sub_explicit (&pager->kept_bytes, bytes,
                             memory_order_relaxed);
}

void
kept_index_add (struct export *export, struct window *window)
{
  struct window *_Atomic *place = kept_index_place (export, window->offset);
  struct window *other = NULL;

  if (atomic_load_explicit (place, memory_order_relaxed) ||
      atomic_load_explicit (&window->checked, memory_order_relaxed) !=
        CHECK_PASSED ||
      !take_share (export->pager, window_memory (window)))
    return;
  window_ref (window);
  /* The release pairs with the acquire in kept_index_find. */
  if (atomic_compare_exchange_strong_explicit (place, &other, window,
                                               memory_order_release,
                                               memory_order_relaxed))
    return;
  cache_put (export->pager->cache, window);
  give_share (export->pager, window_memory (window));
}

void
kept_index_take_all (struct export *export, struct kept_index *ret_taken)
{
  unsigned i;

  for (i = 0; i < KEPT_INDEX_WINDOWS; i++)
    ret_taken->windows[i] =
      atomic_exchange_explicit (&export->kept.windows[i], NULL,
                                memory_order_relaxed);
}

void
kept_index_drop (struct pager *pager, struct kept_index *taken)
{
  unsigned i;

  for (i = 0; i < KEPT_INDEX_WINDOWS; i++) {
    struct window *window = taken->windows[i];

    if (window == NULL)
      continue;
    window_touch (window); /* It was, all the time. */
    give_share (pager, window_memory (window));
    cache_put (pager->cache, window);
  }
  cache_serve_line (pager->cache);
}
