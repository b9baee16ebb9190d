/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Read-around and read-ahead.
 *
 * Everything here is a hint: where an index window is not at hand, the
 * table is busy, or memory is short, less is fetched.
 */
#include <config.h>

#include "lib/base/range.h"
#include "daemon/pager/internal.h"
#include "daemon/pager/read-ahead.h"

void
read_ahead_init (struct read_ahead *ahead)
{
  pthread_mutex_init (&ahead->lock, NULL);
}

void
read_ahead_done (struct read_ahead *ahead)
{
  pthread_mutex_destroy (&ahead->lock);
}

/* Want what overlaps FROM … TO.  The first window wanted is marked if
 * MARK.  Returns where what was looked at ends.
 */
static uint64_t
want_range (struct index_view *view, struct fetch_batch *batch,
            uint64_t from, uint64_t to, bool mark)
{
  struct cache *cache = view->pager->cache;
  struct window *window;
  struct span span;

  while (from < to && export_lookup (view, from, &span) == 0) {
    from += span.len;
    if (span.is_hole)
      continue;
    window =
      cache_get (cache, &span.root, span.window_offset, span.blob_size);
    if (window == NULL)
      break;
    cache_want_ahead (cache, window, batch);
    if (mark)
      atomic_store_explicit (&window->marker, 1, memory_order_relaxed);
    mark = false;
    cache_put (cache, window);
  }
  return from;
}

/* Where the next segment at or behind OFFSET starts, as far as is known. */
static uint64_t
skip_hole (struct index_view *view, uint64_t offset)
{
  struct span span;

  if (offset < view->export->info.size &&
      export_lookup (view, offset, &span) == 0 && span.is_hole)
    return offset + span.len;
  return offset;
}

/* ---- Streams; called with the table's lock held ---- */

static struct read_stream *
find_stream (struct read_ahead *ahead, uint64_t next)
{
  unsigned i;

  for (i = 0; i < READ_STREAMS; i++)
    if (ahead->streams[i].next == next && next != 0)
      return &ahead->streams[i];
  return NULL;
}

/* The stream in whose last stretch OFFSET lies. */
static struct read_stream *
find_stretch (struct read_ahead *ahead, uint64_t offset)
{
  unsigned i;

  for (i = 0; i < READ_STREAMS; i++) {
    struct read_stream *stream = &ahead->streams[i];

    if (stream->size > 0 && offset >= stream->start && offset < stream->next)
      return stream;
  }
  return NULL;
}

static struct read_stream *
oldest_stream (struct read_ahead *ahead)
{
  struct read_stream *oldest = &ahead->streams[0];
  unsigned i;

  for (i = 1; i < READ_STREAMS; i++)
    if (ahead->streams[i].used < oldest->used)
      oldest = &ahead->streams[i];
  return oldest;
}

/* Fetch the next stretch of STREAM, from FROM on. */
static void
run_ahead (struct index_view *view, struct fetch_batch *batch,
           struct read_stream *stream, uint64_t from)
{
  const uint64_t size = view->export->info.size;
  const uint64_t share = view->pager->cache->budget / READ_AHEAD_SHARE;
  uint64_t to;

  stream->size = stream->size == 0 ? READ_AHEAD_MIN : 2 * stream->size;
  stream->size = MIN (stream->size, MIN (share, READ_AHEAD_MAX));
  if (from >= size)
    return;
  to = from + MIN (stream->size, size - from);
  stream->start = from;
  stream->next = skip_hole (view, want_range (view, batch, from, to, true));
}

void
read_ahead_missed (struct index_view *view, struct fetch_batch *batch,
                   uint64_t window_start, uint64_t from, uint64_t to)
{
  struct read_ahead *ahead = &view->export->ahead;
  const uint64_t size = view->export->info.size;
  const uint64_t piece_start = round_down (from, READ_AROUND);
  const uint64_t piece_end = MIN (round_up (to, READ_AROUND), size);
  struct read_stream *stream;
  uint64_t reached;

  want_range (view, batch, piece_start, from, false);
  reached = skip_hole (view, want_range (view, batch, to, piece_end, false));

  if (pthread_mutex_trylock (&ahead->lock) != 0)
    return;
  stream = find_stream (ahead, window_start);
  if (stream)
    run_ahead (view, batch, stream, reached);
  else {
    stream = oldest_stream (ahead);
    *stream = (struct read_stream){ .next = reached };
  }
  stream->used = ++ahead->uses;
  pthread_mutex_unlock (&ahead->lock);
}

void
read_ahead_marked (struct index_view *view, struct fetch_batch *batch,
                   uint64_t offset)
{
  struct read_ahead *ahead = &view->export->ahead;
  struct read_stream *stream;

  if (pthread_mutex_trylock (&ahead->lock) != 0)
    return;
  stream = find_stretch (ahead, offset);
  if (stream) {
    run_ahead (view, batch, stream, stream->next);
    stream->used = ++ahead->uses;
  }
  pthread_mutex_unlock (&ahead->lock);
}
