/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Replies: simple ones, sent many at a time, straight from the cache.
 *
 *   replies ─▶ [header pieces…][header][header pieces…] ─▶ one sendmsg
 *                    ▲
 *                    sent: a reply is resumed where the socket stopped
 *
 * A reply holds its windows until its last byte is sent, so a client that
 * asks and does not read would keep them from all others.  When a client
 * took less than max_resume bytes in stall_ns, its replies are parked:
 * their reads are released, and started again when the socket has room.
 * An image does not change, so what was sent and what follows fit.  Of a
 * reply that has begun only the next max_resume bytes are asked for at a
 * time; should they fail, the connection is closed.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "daemon/front/conn.h"
#include "daemon/front/reply.h"
#include "daemon/front/request.h"
#include "daemon/front/shard.h"

/* What holes are sent from.  Never written, so one page of memory. */
static uint8_t zeros[128 << 10];

/* Gathered for one sendmsg: more than a socket takes at once. */
enum {
  MAX_SEND_BYTES = 1 << 20
};

/* Bytes of the whole reply. */
static uint64_t
reply_size (const struct request *request)
{
  return NBD_SIMPLE_REPLY_SIZE +
         (request->is_read && request->error == 0 ? request->len : 0);
}

/* Where in the reply that ends which can be sent now. */
static uint64_t
reply_end (const struct request *request)
{
  if (!request->has_op)
    return NBD_SIMPLE_REPLY_SIZE;
  return NBD_SIMPLE_REPLY_SIZE + (uint64_t) request->op_start +
         request->op.len;
}

void
reply_queue (struct request *request)
{
  struct conn *conn = request->conn;

  put_be32 (request->header, NBD_SIMPLE_REPLY_MAGIC);
  put_be32 (request->header + 4, request->error);
  memcpy (request->header + 8, request->cookie, NBD_COOKIE_SIZE);
  if (request->error != 0 && request->is_read)
    METRIC_ADD (client_errors, 1);
  if (request->sent > 0)
    TAILQ_INSERT_HEAD (&conn->replies, request, entry);
  else
    TAILQ_INSERT_TAIL (&conn->replies, request, entry);
}

/* A growing iovec. */
struct gather {
  struct iovec *iov;
  size_t count; /* At most SHARD_MAX_IOV. */
  size_t bytes;
};

static bool
is_full (const struct gather *gather)
{
  return gather->count == SHARD_MAX_IOV || gather->bytes >= MAX_SEND_BYTES;
}

static void
gather_bytes (struct gather *gather, const void *data, size_t len)
{
  gather->iov[gather->count++] =
    (struct iovec){ .iov_base = (void *) data, .iov_len = len };
  gather->bytes += len;
}

/* A piece of an answer, from SKIP on. */
static void
gather_piece (struct gather *gather, const struct read_piece *piece,
              size_t skip)
{
  size_t len = piece->len - skip, n;

  if (piece->data) {
    gather_bytes (gather, piece->data + skip, len);
    return;
  }
  while (len > 0 && !is_full (gather)) {
    n = MIN (len, sizeof zeros);
    gather_bytes (gather, zeros, n);
    len -= n;
  }
}

/* What is left to send of REQUEST.  Returns true if the reply after it
 * may follow: all of this one is gathered.
 */
static bool
gather_reply (struct gather *gather, const struct request *request)
{
  uint64_t skip = request->sent;
  size_t i;

  if (skip < sizeof request->header) {
    gather_bytes (gather, request->header + skip,
                  sizeof request->header - skip);
    skip = sizeof request->header;
  }
  if (!request->has_op)
    return true;
  skip -= sizeof request->header + request->op_start;
  for (i = 0; i < request->op.nr_pieces; i++) {
    const struct read_piece *piece = &request->op.pieces[i];

    if (skip >= piece->len) {
      skip -= piece->len;
      continue;
    }
    if (is_full (gather))
      return false;
    gather_piece (gather, piece, (size_t) skip);
    skip = 0;
  }
  return reply_end (request) == reply_size (request);
}

static void
gather_replies (struct conn *conn, struct gather *gather)
{
  const struct request *request;

  TAILQ_FOREACH (request, &conn->replies, entry)
  {
    if (is_full (gather) || !gather_reply (gather, request))
      return;
  }
}

static void
let_go (struct request *request)
{
  read_op_release (&request->op);
  request->has_op = false;
}

/* REQUEST is begun and has nothing to send just now: get its next part. */
static void
resume (struct request *request)
{
  struct conn *conn = request->conn;
  const uint64_t header = NBD_SIMPLE_REPLY_SIZE;
  const uint32_t start =
    (uint32_t) (request->sent > header ? request->sent - header : 0);

  assert (conn->resuming == NULL);
  conn->resuming = request;
  request_start_read (
    request, start,
    (uint32_t) MIN (request->len - start, conn->shard->limits->max_resume));
}

/* LEN bytes are on the wire: free what is answered. */
static void
account (struct conn *conn, size_t len)
{
  uint64_t reads = 0, bytes = 0, n;
  struct request *request;

  conn->sent_since += len;
  while (len > 0) {
    request = TAILQ_FIRST (&conn->replies);
    n = MIN (len, reply_end (request) - request->sent);
    request->sent += n;
    len -= n;
    if (request->sent < reply_end (request))
      break;
    TAILQ_REMOVE (&conn->replies, request, entry);
    if (request->sent < reply_size (request)) {
      assert (len == 0);
      let_go (request);
      resume (request);
      break;
    }
    reads += request->has_op;
    bytes += request->has_op ? request->len : 0;
    request_free (request);
  }
  METRIC_ADD (client_reads, reads);
  METRIC_ADD (client_bytes, bytes);
}

/* Start parked reads again: at once the one whose reply has begun, or else
 * as many as max_resume allows (at least one) when nothing else is under
 * way.
 */
static void
unpark (struct conn *conn)
{
  const size_t max_bytes = conn->shard->limits->max_resume;
  struct request *request = TAILQ_FIRST (&conn->parked);
  uint64_t bytes = 0;

  if (request && request->sent > 0) {
    TAILQ_REMOVE (&conn->parked, request, entry);
    resume (request);
    return;
  }
  if (!TAILQ_EMPTY (&conn->replies) || !TAILQ_EMPTY (&conn->reading))
    return;
  while ((request = TAILQ_FIRST (&conn->parked)) != NULL &&
         bytes < max_bytes) {
    bytes += request->len;
    TAILQ_REMOVE (&conn->parked, request, entry);
    request_start_read (request, 0, request->len);
  }
}

/* Let the windows of all replies go. */
static void
park (struct conn *conn)
{
  struct request *request, *next;

  for (request = TAILQ_FIRST (&conn->replies); request; request = next) {
    next = TAILQ_NEXT (request, entry);
    if (!request->has_op)
      continue;
    let_go (request);
    TAILQ_REMOVE (&conn->replies, request, entry);
    if (request->sent > 0)
      TAILQ_INSERT_HEAD (&conn->parked, request, entry);
    else
      TAILQ_INSERT_TAIL (&conn->parked, request, entry);
  }
}

void
replies_stalled (struct conn *conn)
{
  if (conn->sent_since < conn->shard->limits->max_resume)
    park (conn);
  conn_make_dirty (conn); /* Watches what is left for another while. */
}

/* Send LEN bytes at IOV.  Returns what the socket took; 0: nothing now, or
 * the client has gone and CONN is closed.
 */
static size_t
send_some (struct conn *conn, struct iovec *iov, size_t count, size_t len)
{
  ssize_t n;

  do
    n = transport_sendmsg (&conn->transport, iov, count);
  while (n == -1 && errno == EINTR);
  if (n == -1 && errno != EAGAIN) {
    conn_close (conn, "sending failed");
    return 0;
  }
  if (n == -1)
    n = 0;
  conn->is_blocked = (size_t) n < len;
  return (size_t) n;
}

static void
send_handshake (struct conn *conn)
{
  struct out_buf *out = &conn->out;
  struct iovec iov = { out->data + out->sent, out->len - out->sent };

  out->sent += send_some (conn, &iov, 1, iov.iov_len);
  if (out->len > 0 && out->sent == out->len)
    out_free (out);
}

/* While the socket is full and windows are held, time passes. */
static void
update_stall_timer (struct conn *conn)
{
  if (!conn->is_blocked || TAILQ_EMPTY (&conn->replies))
    timer_disarm (&conn->timer);
  else if (conn->timer.queue == NULL) {
    conn->sent_since = 0;
    timer_arm (&conn->shard->loop, conn->shard->stall_queue, &conn->timer);
  }
}

static bool
can_send (const struct conn *conn)
{
  return conn->state != CONN_CLOSED && !conn->is_blocked;
}

/* Send one batch.  Returns false if there was nothing to send. */
static bool
send_batch (struct conn *conn)
{
  struct gather gather = { .iov = conn->shard->iov };

  unpark (conn);
  if (conn->resuming || TAILQ_EMPTY (&conn->replies))
    return false;
  gather_replies (conn, &gather);
  account (conn, send_some (conn, gather.iov, gather.count, gather.bytes));
  return true;
}

void
replies_send (struct conn *conn)
{
  if (can_send (conn) && conn->out.len > 0)
    send_handshake (conn);
  while (can_send (conn) && conn->out.len == 0 && send_batch (conn)) {
  }
  if (conn->state == CONN_TRANSMISSION || conn->state == CONN_DRAINING)
    update_stall_timer (conn);
}
