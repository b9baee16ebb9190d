/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The life of a request: made, lent to the pager, back, and let go.
 *
 * The pager may be done at once, or later in a thread of its own, which
 * posts the request to the loop.  What it brings is queued; what failed
 * without hope of an answer closes the connection.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/block-status.h"
#include "daemon/front/conn.h"
#include "daemon/front/reply.h"
#include "daemon/front/request.h"
#include "daemon/front/shard.h"

/* ---- Structs ---- */

struct request *
request_new (struct conn *conn, const uint8_t *cookie)
{
  struct request *request = shard_take_request (conn->shard, conn);

  if (request == NULL) {
    conn_close (conn, "out of memory");
    return NULL;
  }
  memcpy (request->cookie, cookie, NBD_COOKIE_SIZE);
  request->is_last = true;
  request->bad_offset = NO_OFFSET;
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
  conn->nr_bytes -= request->len + request->encoded.len;
  out_free (&request->encoded);
  if (request->large)
    large_read_part_gone (request);
  if (request->map) {
    conn->nr_maps--;
    free (request->map);
  }
  shard_give_request (conn->shard, request);
}

/* ---- What the pager brings ---- */

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

/* For the client's user.  Corruption must look like nothing else. */
static const char *
failure_message (int status)
{
  switch (status) {
  case -EBADMSG: return "corrupt: its digest does not match";
  case -ENOENT: return "the store lacks a blob";
  case -EPROTO: return "the driver sent malformed data";
  case -ENOMEM: return "out of memory";
  default: return "the store cannot be read";
  }
}

/* REQUEST is answered with an error; chunks tell what precedes it. */
static void
fail (struct request *request)
{
  const int status = request->op.status;

  request->error = nbd_errno (status);
  request->message = failure_message (status);
  request->bad_offset = request->op.bad_offset;
  if (request->form == REPLY_CHUNKS && request->op.nr_pieces > 0)
    return;
  read_op_release (&request->op);
  request->has_op = false;
}

/* The answer to REQUEST, whose reply has begun, is not what it was. */
static bool
has_changed (const struct request *request)
{
  const struct read_op *op = &request->op;

  return nbd_errno (op->status) != request->error ||
         (op->status < 0 && op->bad_offset != request->bad_offset);
}

/* The pager is done with REQUEST, which is in no list now. */
static void
read_is_done (struct request *request)
{
  struct conn *conn = request->conn;
  const int status = request->op.status;

  if (request->is_read)
    conn->nr_asked -= request->op.len;
  if (conn->resuming == request)
    conn->resuming = NULL;
  if (conn->state == CONN_CLOSED) {
    request_free (request);
    conn_bury (conn);
    return;
  }
  if (status == -ESHUTDOWN || (request->sent > 0 && has_changed (request))) {
    request_free (request);
    conn_close (conn, "a read failed and cannot be answered");
    return;
  }
  if (status < 0)
    fail (request);
  else if (request->map && !block_status_answer (request)) {
    request_free (request);
    conn_close (conn, "out of memory");
    return;
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

bool
request_fits (const struct request *request)
{
  const struct conn *conn = request->conn;
  const uint64_t nr_under_way = conn->nr_asked + conn->nr_ready;

  return nr_under_way == 0 || nr_under_way + request->len <= conn->window;
}

/* REQUEST is about to be lent to the pager. */
static void
set_up_op (struct request *request, uint64_t offset, uint32_t len)
{
  struct conn *conn = request->conn;

  request->op = (struct read_op){
    .export = conn->export,
    .offset = offset,
    .len = len,
    .complete = read_is_complete,
    .opaque = request,
  };
  request->completed.run = read_is_back;
  request->has_op = true;
  TAILQ_INSERT_TAIL (&conn->reading, request, entry);
}

/* The pager is done with REQUEST at once. */
static void
read_is_done_already (struct request *request)
{
  TAILQ_REMOVE (&request->conn->reading, request, entry);
  read_is_done (request);
}

void
request_start_read (struct request *request, uint32_t start, uint32_t len)
{
  set_up_op (request, request->offset + start, len);
  request->op_start = start;
  request->conn->nr_asked += len;
  if (export_read (&request->op))
    read_is_done_already (request);
}

void
request_start_map (struct request *request, uint64_t offset, uint32_t len)
{
  set_up_op (request, offset, len);
  if (export_map (&request->op, request->map))
    read_is_done_already (request);
}

/* ---- The end ---- */

void
requests_abandon (struct conn *conn)
{
  struct request *request;

  if (conn->refused)
    request_free (conn->refused);
  conn->refused = NULL;
  large_reads_abandon (conn);
  TAILQ_CONCAT (&conn->replies, &conn->parked, entry);
  while ((request = TAILQ_FIRST (&conn->replies)) != NULL) {
    TAILQ_REMOVE (&conn->replies, request, entry);
    request_free (request);
  }
  TAILQ_FOREACH (request, &conn->reading, entry)
  read_op_cancel (&request->op);
}
