/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* BLOCK_STATUS.
 *
 * The pager makes one map with all the contexts that the client has set; a
 * chunk for each of them is the answer.  Its extents cover less than was
 * asked for if there are too many: the client asks again from where they
 * end.
 */
#include <config.h>

#include <stdlib.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "daemon/front/block-status.h"
#include "daemon/front/conn.h"
#include "daemon/front/meta-context.h"
#include "daemon/front/reply.h"
#include "daemon/front/request.h"
#include "daemon/front/shard.h"

enum {
  EXTENT_SIZE = 8
};

bool
block_status_start (struct request *request, uint64_t offset, uint32_t len,
                    bool wants_one)
{
  struct conn *conn = request->conn;
  struct export_map *map = calloc (1, sizeof *map);
  enum map_kind kind;

  if (map == NULL)
    return false;
  for (kind = 0; kind < NR_MAP_KINDS; kind++)
    map->wanted[kind] = conn->contexts & CONTEXT (kind);
  map->max = wants_one ? 1 : conn->shard->limits->max_extents;
  request->map = map;
  conn->nr_maps++;
  request_start_map (request, offset, len);
  return true;
}

static bool
add_context (struct request *request, enum map_kind kind, uint16_t flags)
{
  const struct map_extent *extents = request->map->extents[kind];
  const uint32_t count = request->map->count[kind];
  const size_t len = 4 + (size_t) count * EXTENT_SIZE;
  CLEANUP_FREE uint8_t *payload = malloc (len);
  uint32_t i;

  if (payload == NULL)
    return false;
  put_be32 (payload, context_id (kind));
  for (i = 0; i < count; i++) {
    uint8_t *extent = payload + 4 + (size_t) i * EXTENT_SIZE;

    put_be32 (extent, extents[i].len);
    put_be32 (extent + 4, context_flags (kind, extents[i].state));
  }
  return reply_add_chunk (request, NBD_REPLY_TYPE_BLOCK_STATUS, flags,
                          payload, len);
}

bool
block_status_answer (struct request *request)
{
  unsigned left = request->conn->contexts;
  enum map_kind kind;

  for (kind = 0; kind < NR_MAP_KINDS; kind++) {
    if (!(left & CONTEXT (kind)))
      continue;
    left &= ~CONTEXT (kind);
    if (!add_context (request, kind, left == 0 ? NBD_REPLY_FLAG_DONE : 0))
      return false;
  }
  read_op_release (&request->op);
  request->has_op = false;
  return true;
}
