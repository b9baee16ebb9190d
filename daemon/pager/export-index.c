/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What lies where in an export.
 *
 * The index of an image is a blob like any other: its windows come
 * through the cache and may be evicted.  One that is verified is checked
 * once, when it is first used as part of an index, and remembers the
 * result; the same bytes always give the same result, since the root
 * stands for all of them.  A window that fails costs the reads that need
 * it, and no others.
 *
 * The windows of a blob/ROOT export need no index.
 *
 * Threads: a view belongs to one thread at a time.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>

#include "lib/base/range.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/pager/internal.h"

/* ---- Windows at hand ---- */

static struct window *
find_held (const struct index_view *view, uint64_t w)
{
  unsigned i;

  for (i = view->nr_held; i-- > 0;)
    if (view->held[i].w == w)
      return view->held[i].window;
  return NULL;
}

/* Takes over a reference.  Of too many, the one that has been held
 * longest, save window 0, is let go: a lookup needs few at a time.
 */
static void
hold (struct index_view *view, uint64_t w, struct window *window)
{
  const struct pager *pager = view->pager;
  unsigned i;

  if (view->nr_held == MAX_INDEX_WINDOWS) {
    cache_put (pager->cache, view->held[1].window);
    for (i = 2; i < view->nr_held; i++)
      view->held[i - 1] = view->held[i];
    view->nr_held--;
  }
  view->held[view->nr_held].w = w;
  view->held[view->nr_held].window = window;
  view->held[view->nr_held].sent =
    view->wants_sent ? fetcher_windows_sent (pager->fetcher) : 0;
  view->held[view->nr_held].warm = window != view->awaited;
  view->nr_held++;
}

void
index_view_done (struct index_view *view)
{
  while (view->nr_held > 0)
    cache_put (view->pager->cache, view->held[--view->nr_held].window);
}

/* A window that is kept needs no holding, unless somebody is to be told of
 * all that were needed.
 */
static struct window *
find_at_hand (struct index_view *view, uint64_t w)
{
  struct window *window =
    view->wants_sent ? NULL : kept_index_find (view->export, w);

  return window ? window : find_held (view, w);
}

/* Window W, verified, or NULL with view->missing. */
static struct window *
get_verified (struct index_view *view, uint64_t w)
{
  const struct export *export = view->export;
  struct window *window = find_at_hand (view, w);

  if (window)
    return window;
  window = cache_find (view->pager->cache, &export->info.root,
                       w * BP_WINDOW_SIZE, export->index.blob_size);
  if (window == NULL) {
    view->missing = w;
    return NULL;
  }
  hold (view, w, window);
  return window;
}

/* ---- Checking ---- */

/* bp_index_window_fn: fences may be read before they are checked. */
static const uint8_t *
get_unchecked (void *opaque, uint64_t w)
{
  const struct window *window = get_verified (opaque, w);

  return window ? window->data : NULL;
}

static int
check_now (struct index_view *view, uint64_t w, const struct window *window)
{
  const struct export *export = view->export;
  char hex[BP_ROOT_HEX_SIZE];
  uint64_t first = 0, next = 0, missing;
  struct bp_error err;
  int r;

  r = bp_index_fences_of (&export->index, get_unchecked, view, w, &first,
                          &next, &missing);
  if (r < 0)
    return r;
  r = bp_index_check_window (&export->index, w, window->data, window->len,
                             first, next, &err);
  if (r < 0) {
    METRIC_ADD (driver_errors, 1);
    log_error ("image '%s': %s", bp_root_format (&export->info.root, hex),
               err.msg);
  }
  return r;
}

int
index_check (struct index_view *view, uint64_t w, struct window *window)
{
  int r;

  switch (
    atomic_load_explicit (&window->checked, memory_order_acquire)) {
  case CHECK_PASSED: return 0;
  case CHECK_FAILED: return -EPROTO;
  default:
    r = check_now (view, w, window);
    if (r == -EAGAIN)
      return r;
    atomic_store_explicit (&window->checked,
                           r == 0 ? CHECK_PASSED : CHECK_FAILED,
                           memory_order_release);
    return r;
  }
}

/* bp_index_window_fn for lookups: checked windows only. */
static const uint8_t *
get_checked (void *opaque, uint64_t w)
{
  struct index_view *view = opaque;
  struct window *window = get_verified (view, w);
  int r;

  if (window == NULL)
    return NULL;
  r = index_check (view, w, window);
  if (r == 0)
    return window->data;
  if (r != -EAGAIN)
    view->is_bad = true;
  return NULL;
}

/* ---- Looking up ---- */

static void
lookup_in_blob (const struct export *export, uint64_t offset,
                struct span *span)
{
  const uint64_t start = round_down (offset, BP_WINDOW_SIZE);

  span->is_hole = false;
  span->offset = offset;
  span->len =
    MIN (export->info.size - start, BP_WINDOW_SIZE) - (offset - start);
  span->root = export->info.root;
  span->blob_size = export->info.size;
  span->window_offset = start;
  span->skip = offset - start;
  span->window_start = start;
}

static size_t
lookup_some_in_blob (const struct export *export, uint64_t offset,
                     struct span *spans, size_t max)
{
  size_t i;

  for (i = 0; i < max && offset < export->info.size; i++) {
    lookup_in_blob (export, offset, &spans[i]);
    offset += spans[i].len;
  }
  return i;
}

static void
set_span (struct span *span, const struct bp_extent *extent)
{
  span->offset = extent->offset;
  span->len = extent->len;
  span->is_hole = extent->is_hole;
  if (extent->is_hole)
    return;
  span->root = extent->root;
  span->blob_size = extent->blob_len;
  span->window_offset = 0; /* A segment is one window. */
  span->skip = extent->blob_offset;
  span->window_start = extent->segment_offset;
}

/* At most MAX (at most SPANS_AT_ONCE) spans of an image. */
static int
lookup_in_image (struct index_view *view, uint64_t offset,
                 struct span *spans, size_t max, size_t *ret_count)
{
  const struct export *export = view->export;
  struct bp_extent extents[SPANS_AT_ONCE];
  uint64_t missing;
  size_t count, i;
  int r;

  view->is_bad = false;
  r = bp_index_lookup_some (&export->index, get_checked, view, offset,
                            extents, max, &count, &missing);
  if (view->is_bad)
    return -EPROTO;
  if (r < 0)
    return r;
  for (i = 0; i < count; i++) {
    /* A run of zero bytes, or past the end, would be the lookup's
     * mistake.
     */
    assert (extents[i].len > 0 &&
            extents[i].len <= export->info.size - extents[i].offset);
    set_span (&spans[i], &extents[i]);
  }
  *ret_count = count;
  return 0;
}

int
export_lookup_some (struct index_view *view, uint64_t offset,
                    struct span *spans, size_t *ret_count)
{
  assert (offset < view->export->info.size);
  if (view->export->info.kind == EXPORT_IMAGE)
    return lookup_in_image (view, offset, spans, SPANS_AT_ONCE, ret_count);
  *ret_count =
    lookup_some_in_blob (view->export, offset, spans, SPANS_AT_ONCE);
  return 0;
}

int
export_lookup (struct index_view *view, uint64_t offset,
               struct span *ret_span)
{
  size_t count;

  assert (offset < view->export->info.size);
  if (view->export->info.kind == EXPORT_IMAGE)
    return lookup_in_image (view, offset, ret_span, 1, &count);
  lookup_in_blob (view->export, offset, ret_span);
  return 0;
}
