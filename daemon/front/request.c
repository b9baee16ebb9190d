/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Requests: parsing, refusing, and handing reads to the pager.
 *
 * Whatever a client sends is answered, or the connection is closed where
 * its framing is lost; only DISC ends it in order.  What is refused needs
 * no more than its header: the payload of a write is read over in the
 * shard's scratch memory, and then it is answered.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "daemon/log.h"
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

uint32_t
nbd_errno (int status)
{
  switch (status) {
  case 0: return NBD_SUCCESS;
  case -EPERM: return NBD_EPERM;
  case -EINVAL: return NBD_EINVAL;
  case -ENOMEM: return NBD_ENOMEM;
  case -EBADMSG: /* Corrupt. */
  case -EPROTO:  /* The driver sent nonsense. */
  case -ENOENT:  /* The store lacks a blob. */
  default: return NBD_EIO;
  }
}

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

/* A request of CONN; NULL, and CONN is closed, if there is no memory. */
static struct request *
take_request (struct conn *conn, const struct wire_request *wire)
{
  struct request *request = shard_take_request (conn->shard, conn);

  if (request == NULL) {
    conn_close (conn, "out of memory");
    return NULL;
  }
  memcpy (request->cookie, wire->cookie, NBD_COOKIE_SIZE);
  conn->nr_requests++;
  return request;
}

void
request_free (struct request *request)
{
  struct conn *conn = request->conn;

  if (request->has_op)
    read_op_release (&request->op);
  conn->nr_requests--;
  conn->nr_bytes -= request->len;
  shard_give_request (conn->shard, request);
}

/* Answer WIRE with an NBD error, or success, and no data. */
static void
answer (struct conn *conn, const struct wire_request *wire, uint32_t error)
{
  struct request *request = take_request (conn, wire);

  if (request == NULL)
    return;
  request->error = error;
  reply_queue (request);
}

/* The pager is done with REQUEST, which is in no list now. */
static void
read_is_done (struct request *request)
{
  struct conn *conn = request->conn;
  const int status = request->op.status;

  if (conn->resuming == request)
    conn->resuming = NULL;
  if (conn->state == CONN_CLOSED) {
    request_free (request);
    conn_bury (conn);
    return;
  }
  if (status < 0) {
    read_op_release (&request->op);
    request->has_op = false;
    request->error = nbd_errno (status);
    /* A reply that has begun cannot fail any more. */
    if (status == -ESHUTDOWN || request->sent > 0) {
      request_free (request);
      conn_close (conn, "a read failed and cannot be answered");
      return;
    }
  }
  reply_queue (request);
}

/* The loop: a read that the pager had has come back. */
static void
read_is_back (struct loop_work *work)
{
  struct request *request = container_of (work, struct request, completed);
  struct conn *conn = request->conn;

  TAILQ_REMOVE (&conn->reading, request, entry);
  if (conn->state != CONN_CLOSED)
    conn_make_dirty (conn);
  read_is_done (request);
}

/* Any thread. */
static void
read_is_complete (struct read_op *op)
{
  struct request *request = op->opaque;

  loop_post (&request->conn->shard->loop, &request->completed);
}

void
request_start_read (struct request *request, uint32_t start, uint32_t len)
{
  struct conn *conn = request->conn;

  request->op = (struct read_op){
    .export = conn->export,
    .offset = request->offset + start,
    .len = len,
    .complete = read_is_complete,
    .opaque = request,
  };
  request->completed.run = read_is_back;
  request->op_start = start;
  request->has_op = true;
  TAILQ_INSERT_TAIL (&conn->reading, request, entry);
  if (export_read (&request->op)) {
    TAILQ_REMOVE (&conn->reading, request, entry);
    read_is_done (request);
  }
}

static uint64_t
export_size (const struct conn *conn)
{
  return export_get_info (conn->export)->size;
}

static void
handle_read (struct conn *conn, const struct wire_request *wire)
{
  struct request *request;

  if (wire->flags != 0 || wire->len == 0 || wire->len > NBD_MAX_READ ||
      !range_is_within (export_size (conn), wire->offset, wire->len)) {
    answer (conn, wire, NBD_EINVAL);
    return;
  }
  request = take_request (conn, wire);
  if (request == NULL)
    return;
  request->is_read = true;
  request->offset = wire->offset;
  request->len = wire->len;
  conn->nr_bytes += wire->len;
  request_start_read (request, 0, wire->len);
}

/* Refused, but its payload comes first. */
static void
handle_write (struct conn *conn, const struct wire_request *wire)
{
  struct request *request = take_request (conn, wire);

  if (request == NULL)
    return;
  request->error = NBD_EPERM;
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
  if (wire->flags != 0 || wire->len == 0 ||
      !range_is_within (export_size (conn), wire->offset, wire->len)) {
    answer (conn, wire, NBD_EINVAL);
    return;
  }
  export_prefetch (conn->export, wire->offset, wire->len);
  answer (conn, wire, NBD_SUCCESS);
}

static void
handle (struct conn *conn, const struct wire_request *wire)
{
  switch (wire->type) {
  case NBD_CMD_READ: handle_read (conn, wire); break;
  case NBD_CMD_WRITE: handle_write (conn, wire); break;
  case NBD_CMD_DISC: conn_drain (conn); break;
  case NBD_CMD_TRIM:
  case NBD_CMD_WRITE_ZEROES: answer (conn, wire, NBD_EPERM); break;
  case NBD_CMD_CACHE: handle_cache (conn, wire); break;
  default: answer (conn, wire, NBD_EINVAL); break;
  }
}

/* May a request of LEN bytes be handled now? */
static bool
has_room (const struct conn *conn, const struct wire_request *wire)
{
  const struct front_limits *limits = conn->shard->limits;

  return conn->nr_requests < limits->max_requests &&
         (wire->type != NBD_CMD_READ || conn->nr_bytes == 0 ||
          conn->nr_bytes + wire->len <= limits->max_bytes);
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

void
requests_abandon (struct conn *conn)
{
  struct request *request;

  if (conn->refused)
    request_free (conn->refused);
  conn->refused = NULL;
  TAILQ_CONCAT (&conn->replies, &conn->parked, entry);
  while ((request = TAILQ_FIRST (&conn->replies)) != NULL) {
    TAILQ_REMOVE (&conn->replies, request, entry);
    request_free (request);
  }
  TAILQ_FOREACH (request, &conn->reading, entry)
  read_op_cancel (&request->op);
}
