/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The plan of a read: pieces, and the windows they come from.
 *
 *   range    ├──────────────────────────────────────────┤
 *   segments ▒▒▒▒▒▒▒▒▒▒▒▒▒▒│     gap     │▒▒▒▒▒▒│▒▒▒▒▒▒▒▒▒▒▒▒
 *   parts    │  slot 0     │   (zeros)   │slot 1│  slot 2 │
 *
 * Planning stops where an index window is not at hand, and goes on from
 * there when it has come.  A window is found in whatever state it is in;
 * nothing is asked for until the whole plan is made, so that it can be
 * asked for at once.
 */
#include <config.h>

#include <errno.h>

#include "lib/base/range.h"
#include "daemon/pager/read.h"

static int
add_part (struct read *read, uint32_t slot, uint32_t skip, uint32_t len)
{
  int r;

  if (read->nr_parts == read->max_parts) {
    r = read_grow_parts (read);
    if (r < 0)
      return r;
  }
  read->parts[read->nr_parts] =
    (struct read_part){ .slot = slot, .skip = skip };
  read->pieces[read->nr_parts] =
    (struct read_piece){ .data = NULL, .len = len };
  read->nr_parts++;
  return 0;
}

static int
add_hole (struct read *read, uint32_t len)
{
  if (read->nr_parts > 0 && read->parts[read->nr_parts - 1].slot == NO_SLOT) {
    read->pieces[read->nr_parts - 1].len += len;
    return 0;
  }
  return add_part (read, NO_SLOT, 0, len);
}

/* Remember which bytes are missed, from the first to the last, and
 * whether the reader has come to a marker.
 */
static void
note_window (struct read *read, const struct span *span,
             struct window *window, bool warm, uint32_t len)
{
  if (atomic_load_explicit (&window->marker, memory_order_relaxed)) {
    atomic_store_explicit (&window->marker, 0, memory_order_relaxed);
    read->marked = span->offset;
  }
  if (warm)
    return;
  if (read->around_from >= read->around_to) {
    read->around_from = span->offset;
    read->around_window = span->window_start;
  }
  read->around_to = span->offset + len;
}

static int
add_window (struct read *read, const struct span *span, uint32_t len)
{
  struct pager *pager = read->pager;
  struct read_slot *slot;
  struct window *window;
  int r;

  if (read->nr_slots == read->max_slots) {
    r = read_grow_slots (read);
    if (r < 0)
      return r;
  }
  window = cache_get (pager->cache, &span->root, span->window_offset,
                      span->blob_size);
  if (window == NULL)
    return -ENOMEM;
  slot = &read->slots[read->nr_slots++];
  slot->waiter.window = window;
  slot->read = read;
  slot->status = 0;
  slot->warm = window_get_state (window) == WINDOW_VERIFIED;
  slot->sent =
    read->is_watched ? fetcher_windows_sent (pager->fetcher) : 0;
  note_window (read, span, window, slot->warm, len);
  return add_part (read, read->nr_slots - 1, (uint32_t) span->skip, len);
}

int
read_plan (struct read *read)
{
  struct span span;
  uint32_t len;
  int r;

  while (read->pos < read->end) {
    r = export_lookup (&read->view, read->pos, &span);
    if (r < 0)
      return r;
    len = (uint32_t) MIN (span.len, read->end - read->pos);
    r = span.is_hole ? add_hole (read, len) : add_window (read, &span, len);
    if (r < 0)
      return r;
    read->pos += len;
  }
  return 0;
}
