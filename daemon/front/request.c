/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Requests: parsing, and what becomes of each.
 *
 * Whatever a client sends is answered, or the connection is closed where
 * its framing is lost; only DISC ends it in order.  What is refused needs
 * no more than its header: the payload of a write is read over in the
 * shard's scratch memory, and then it is answered.
 */
#include <config.h>

#include <assert.h>
#include <stddef.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "daemon/front/block-status.h"
#include "daemon/front/conn.h"
#include "daemon/front/reply.h"
#include "daemon/front/request.h"
#include "daemon/front/shard.h"

/* A request as it is on the wire, in host values. */
struct wire_request {
  uint16_t flags;
  uint16_t type;
  const uint8_t *cookie; /* Borrowed: NBD_COOKIE_SIZE bytes. */
  uint64_t offset;
  uint32_t len;
};

/* Returns false if MAGIC is wrong. */
static bool
decode (const uint8_t *wire, struct wire_request *ret_request)
{
  *ret_request = (struct wire_request){
    .flags = get_be16 (wire + 4),
    .type = get_be16 (wire + 6),
    .cookie = wire + 8,
    .offset = get_be64 (wire + 16),
    .len = get_be32 (wire + 24),
  };
  return get_be32 (wire) == NBD_REQUEST_MAGIC;
}

static enum reply_form
read_form (const struct conn *conn, const struct wire_request *wire)
{
  if (!conn->structured)
    return REPLY_SIMPLE;
  return wire->flags & NBD_CMD_FLAG_DF ? REPLY_WHOLE : REPLY_CHUNKS;
}

/* Refuse WIRE with an NBD error, and say why. */
static void
refuse (struct conn *conn, const struct wire_request *wire, uint32_t error,
        const char *message)
{
  struct request *request = request_new (conn, wire->cookie);

  if (request == NULL)
    return;
  request->error = error;
  request->message = message;
  request->is_read = wire->type == NBD_CMD_READ;
  request->form = read_form (conn, wire);
  reply_queue (request);
}

/* WIRE has been done. */
static void
acknowledge (struct conn *conn, const struct wire_request *wire)
{
  struct request *request = request_new (conn, wire->cookie);

  if (request)
    reply_queue (request);
}

static uint64_t
export_size (const struct conn *conn)
{
  return export_get_info (conn->export)->size;
}

/* Returns what is wrong with WIRE, of which FLAGS may be set, or NULL. */
static const char *
find_mistake (const struct conn *conn, const struct wire_request *wire,
              uint16_t flags)
{
  if (wire->flags & ~flags)
    return "flag not supported";
  if (wire->len == 0)
    return "nothing asked for";
  if (!range_is_within (export_size (conn), wire->offset, wire->len))
    return "beyond the end of the export";
  return NULL;
}

static void
handle_read (struct conn *conn, const struct wire_request *wire)
{
  const char *mistake =
    find_mistake (conn, wire, conn->structured ? NBD_CMD_FLAG_DF : 0);
  struct request *request;

  if (mistake == NULL && wire->len > NBD_MAX_READ)
    mistake = "more than 32 MiB asked for";
  if (mistake) {
    refuse (conn, wire, NBD_EINVAL, mistake);
    return;
  }
  if (conn->structured && !(wire->flags & NBD_CMD_FLAG_DF) &&
      wire->len > conn->shard->limits->part_bytes) {
    if (!large_read_start (conn, wire->cookie, wire->offset, wire->len))
      conn_close (conn, "out of memory");
    return;
  }
  request = request_new (conn, wire->cookie);
  if (request == NULL)
    return;
  request->is_read = true;
  request->form = read_form (conn, wire);
  request->offset = wire->offset;
  request->len = wire->len;
  conn->nr_bytes += wire->len;
  if (TAILQ_EMPTY (&conn->parked) && request_fits (request))
    request_start_read (request, 0, wire->len);
  else
    TAILQ_INSERT_TAIL (&conn->parked, request, entry);
}

static const char read_only[] = "the export is read-only";

/* Refused, but its payload comes first. */
static void
handle_write (struct conn *conn, const struct wire_request *wire)
{
  struct request *request = request_new (conn, wire->cookie);

  if (request == NULL)
    return;
  request->error = NBD_EPERM;
  request->message = read_only;
  assert (conn->refused == NULL);
  conn->refused = request;
  conn->skip = wire->len;
  if (conn->skip == 0)
    request_payload_skipped (conn);
}

void
request_payload_skipped (struct conn *conn)
{
  struct request *request = conn->refused;

  conn->refused = NULL;
  reply_queue (request);
}

static void
handle_cache (struct conn *conn, const struct wire_request *wire)
{
  const char *mistake = find_mistake (conn, wire, 0);

  if (mistake) {
    refuse (conn, wire, NBD_EINVAL, mistake);
    return;
  }
  export_prefetch (conn->export, wire->offset, wire->len);
  acknowledge (conn, wire);
}

static void
handle_block_status (struct conn *conn, const struct wire_request *wire)
{
  const char *mistake = find_mistake (conn, wire, NBD_CMD_FLAG_REQ_ONE);
  struct request *request;

  if (conn->contexts == 0)
    mistake = "no metadata context has been set";
  if (mistake) {
    refuse (conn, wire, NBD_EINVAL, mistake);
    return;
  }
  request = request_new (conn, wire->cookie);
  if (request == NULL)
    return;
  if (!block_status_start (request, wire->offset, wire->len,
                           wire->flags & NBD_CMD_FLAG_REQ_ONE)) {
    request_free (request);
    conn_close (conn, "out of memory");
  }
}

static void
handle (struct conn *conn, const struct wire_request *wire)
{
  switch (wire->type) {
  case NBD_CMD_READ: handle_read (conn, wire); break;
  case NBD_CMD_WRITE: handle_write (conn, wire); break;
  case NBD_CMD_DISC: conn_drain (conn); break;
  case NBD_CMD_TRIM:
  case NBD_CMD_WRITE_ZEROES:
    refuse (conn, wire, NBD_EPERM, read_only);
    break;
  case NBD_CMD_CACHE: handle_cache (conn, wire); break;
  case NBD_CMD_BLOCK_STATUS: handle_block_status (conn, wire); break;
  default:
    refuse (conn, wire, NBD_EINVAL, "command not supported");
    break;
  }
}

/* May a request of LEN bytes be handled now? */
static bool
has_room (const struct conn *conn, const struct wire_request *wire)
{
  const struct front_limits *limits = conn->shard->limits;
  const uint32_t len = wire->type == NBD_CMD_READ ? wire->len : 0;

  if (wire->type == NBD_CMD_BLOCK_STATUS &&
      conn->nr_maps >= limits->max_maps)
    return false;
  return conn->nr_requests < limits->max_requests &&
         (conn->nr_bytes == 0 || conn->nr_bytes + len <= limits->max_bytes);
}

bool
requests_parse (struct conn *conn)
{
  struct wire_request wire;
  size_t pos = 0;

  conn->paused = false;
  while (conn->state == CONN_TRANSMISSION && conn->skip == 0 &&
         conn->in_len - pos >= NBD_REQUEST_SIZE) {
    if (!decode (conn->in + pos, &wire)) {
      conn_close (conn, "bad request magic");
      break;
    }
    if (!has_room (conn, &wire)) {
      conn->paused = true;
      break;
    }
    pos += NBD_REQUEST_SIZE;
    handle (conn, &wire);
  }
  conn_consume (conn, pos);
  return pos > 0;
}
