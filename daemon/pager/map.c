/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Maps: what lies where in an export, and what of it is in memory.
 *
 *   segments    ▒▒▒▒▒│▒▒▒│▒▒▒▒▒▒│     gap     │▒▒▒▒│▒▒▒▒▒│
 *   allocation  ├──── data ─────┼─── hole ────┼── data ──┤
 *   residency   ├─ verified ┼ absent ┼── verified ──┼────┤ on its way
 *
 * A map is a read that is nobody's (admitted, cancelled and completed as
 * one) and ends with its plan.  What one costs is bounded, since it runs
 * in the event loop of its client: a range that would take more is
 * answered in part, and the client asks for the rest.
 */
#include <config.h>

#include <assert.h>
#include <stdlib.h>

#include "lib/base/range.h"
#include "daemon/pager/read.h"

/* Most bytes that a map holds while it waits. */
#define MAP_CHARGE (MAX_INDEX_WINDOWS * (uint64_t) BP_WINDOW_SIZE)

/* The work of one map, and what it is measured in: going on to the next
 * segment of a window, and looking for a window in the cache.  All of it
 * takes a tenth of a millisecond.
 */
enum {
  WORK_LIMIT = 4096,
  WORK_SPAN = 1,
  WORK_PEEK = 2,
};

/* One kind of map. */
struct map_list {
  struct map_extent *extents; /* In room; NULL: not wanted. */
  uint32_t count;
  bool is_full; /* What follows has no room. */
};

/* A map under way.  The engine's, until the read is claimed. */
struct map_work {
  struct export_map *map; /* Touched by whoever has claimed the read. */
  uint32_t max;           /* Extents of each list. */
  uint32_t left;          /* Of WORK_LIMIT. */
  size_t bytes;           /* Of all this. */
  struct map_list lists[NR_MAP_KINDS];
  struct map_extent room[];
};

/* The next LEN bytes of LIST are in STATE. */
static void
list_add (struct map_list *list, uint32_t max, uint32_t len, uint32_t state)
{
  if (list->extents == NULL || list->is_full)
    return;
  if (list->count > 0 && list->extents[list->count - 1].state == state)
    list->extents[list->count - 1].len += len;
  else if (list->count == max)
    list->is_full = true;
  else
    list->extents[list->count++] =
      (struct map_extent){ .len = len, .state = state };
}

static bool
has_room (const struct map_list *list)
{
  return list->extents && !list->is_full;
}

/* Where the bytes of SPAN are. */
static uint32_t
find_residency (struct cache *cache, const struct span *span)
{
  if (span->is_hole)
    return MAP_VERIFIED;
  switch (cache_peek (cache, &span->root, span->window_offset,
                      span->blob_size)) {
  case WINDOW_VERIFIED: return MAP_VERIFIED;
  case WINDOW_FETCHING: return MAP_ON_ITS_WAY;
  case WINDOW_ABSENT:
  case WINDOW_FAILED:
  case WINDOW_GONE: break;
  }
  return MAP_ABSENT;
}

static void
add_span (struct read *read, const struct span *span)
{
  struct map_work *work = read->map;
  struct map_list *residency = &work->lists[MAP_RESIDENCY];
  const uint32_t len = (uint32_t) MIN (span->len, read->end - read->pos);
  uint32_t cost = WORK_SPAN;

  list_add (&work->lists[MAP_ALLOCATION], work->max, len,
            span->is_hole ? MAP_HOLE : MAP_DATA);
  if (has_room (residency)) {
    cost += span->is_hole ? 0 : WORK_PEEK;
    list_add (residency, work->max, len,
              find_residency (read->pager->cache, span));
  }
  work->left -= MIN (work->left, cost);
  read->pos += len;
}

static bool
goes_on (const struct read *read)
{
  const struct map_work *work = read->map;

  return read->pos < read->end && work->left > 0 &&
         (has_room (&work->lists[MAP_ALLOCATION]) ||
          has_room (&work->lists[MAP_RESIDENCY]));
}

int
map_plan (struct read *read)
{
  struct span spans[SPANS_AT_ONCE];
  size_t count, i;
  int r;

  while (goes_on (read)) {
    r = export_lookup_some (&read->view, read->pos, spans, &count);
    if (r < 0)
      return r;
    for (i = 0; i < count && goes_on (read); i++)
      add_span (read, &spans[i]);
  }
  return 0;
}

void
map_set_result (const struct map_work *work)
{
  struct export_map *map = work->map;
  unsigned i;

  for (i = 0; i < NR_MAP_KINDS; i++) {
    map->extents[i] = work->lists[i].extents;
    map->count[i] = work->lists[i].count;
  }
}

static struct map_work *
map_work_new (struct pager *pager, struct export_map *map)
{
  const size_t nr_lists =
    (size_t) map->wanted[MAP_ALLOCATION] + map->wanted[MAP_RESIDENCY];
  const size_t bytes = sizeof (struct map_work) +
                       nr_lists * map->max * sizeof (struct map_extent);
  struct map_work *work = malloc (bytes);
  struct map_extent *room;
  unsigned i;

  if (work == NULL)
    return NULL;
  *work = (struct map_work){
    .map = map, .max = map->max, .left = WORK_LIMIT, .bytes = bytes
  };
  room = work->room;
  for (i = 0; i < NR_MAP_KINDS; i++) {
    if (!map->wanted[i])
      continue;
    work->lists[i].extents = room;
    room += map->max;
  }
  cache_charge (pager->cache, bytes);
  return work;
}

void
map_work_free (struct pager *pager, struct map_work *work)
{
  if (work == NULL)
    return;
  cache_uncharge (pager->cache, work->bytes);
  free (work);
}

bool
export_map (struct read_op *op, struct export_map *map)
{
  struct pager *pager = op->export->pager;
  struct map_work *work;
  struct read *read = NULL;

  assert (map->max > 0);
  assert (map->wanted[MAP_ALLOCATION] || map->wanted[MAP_RESIDENCY]);
  work = map_work_new (pager, map);
  if (work)
    read = read_new (pager, op, true);
  if (read) {
    read->map = work;
    read->entry.charge = MAP_CHARGE;
  }
  else
    map_work_free (pager, work);
  return read_start (op, read);
}
