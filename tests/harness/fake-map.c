/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Maps of the fake pager's exports. */
#include <config.h>

#include <stdlib.h>

#include "lib/base/range.h"
#include "harness/check.h"
#include "harness/fake-map.h"
#include "harness/fake-pager.h"

uint32_t
fake_map_state (enum map_kind kind, uint64_t offset)
{
  const uint64_t piece = offset / FAKE_PIECE_BYTES;
  const bool is_hole = piece % FAKE_HOLE_EVERY == FAKE_HOLE_EVERY - 1;

  if (kind == MAP_ALLOCATION)
    return is_hole ? MAP_HOLE : MAP_DATA;
  return is_hole ? MAP_VERIFIED : piece % 3;
}

uint64_t
fake_map_next (uint64_t offset)
{
  return round_down (offset, FAKE_PIECE_BYTES) + FAKE_PIECE_BYTES;
}

static void
fill_kind (const struct read_op *op, struct export_map *map,
           enum map_kind kind, struct map_extent *extents)
{
  uint64_t offset = op->offset;
  const uint64_t end = offset + op->len;
  uint32_t n = 0, state, len;

  for (; offset < end; offset += len) {
    state = fake_map_state (kind, offset);
    len = (uint32_t) (MIN (fake_map_next (offset), end) - offset);
    if (n > 0 && extents[n - 1].state == state)
      extents[n - 1].len += len;
    else if (n == map->max)
      break;
    else
      extents[n++] = (struct map_extent){ len, state };
  }
  map->extents[kind] = extents;
  map->count[kind] = n;
}

void
fake_fill_map (struct read_op *op, struct export_map *map)
{
  struct map_extent *room =
    calloc (NR_MAP_KINDS * map->max, sizeof *room);
  enum map_kind kind;

  CHECK (room != NULL);
  op->touches = (struct read_touch *) room;
  for (kind = 0; kind < NR_MAP_KINDS; kind++)
    if (map->wanted[kind])
      fill_kind (op, map, kind, room + kind * map->max);
}
