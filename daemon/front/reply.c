/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Replies, sent many at a time, straight from the cache.
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
 *
 * Until then others would wait for what it holds, so a client may have no
 * more under way than it has shown to read:
 *
 *   window:   max_resume ── what it takes is added ──▶ max_bytes
 *                 ▲                                       │
 *                 └──────────── it has stalled ───────────┘
 *
 * What does not fit is parked before it is asked for.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "daemon/front/conn.h"
#include "daemon/front/reply-layout.h"
#include "daemon/front/reply.h"
#include "daemon/front/request.h"
#include "daemon/front/shard.h"

/* What REQUEST holds of the cache. */
static uint32_t
ready_bytes (const struct request *request)
{
  return request->has_op ? request->op.len : 0;
}

void
reply_queue (struct request *request)
{
  struct conn *conn = request->conn;

  if (!request->is_read && request->form != REPLY_ENCODED)
    request->form = conn->structured && request->error != 0 ? REPLY_CHUNKS
                                                            : REPLY_SIMPLE;
  if (request->sent > 0)
    TAILQ_INSERT_HEAD (&conn->replies, request, entry);
  else {
    if (request->large)
      request->is_last = large_read_part_is_last (request);
    request->size = reply_size (request);
    TAILQ_INSERT_TAIL (&conn->replies, request, entry);
  }
  conn->nr_ready += ready_bytes (request);
}

static void
unqueue (struct request *request)
{
  struct conn *conn = request->conn;

  TAILQ_REMOVE (&conn->replies, request, entry);
  conn->nr_ready -= ready_bytes (request);
}

bool
reply_add_chunk (struct request *request, uint16_t type, uint16_t flags,
                 const void *data, size_t len)
{
  struct out_buf *out = &request->encoded;
  uint8_t header[NBD_CHUNK_HEADER_SIZE];

  assert (!request->is_read && request->error == 0);
  request->form = REPLY_ENCODED;
  put_be32 (header, NBD_STRUCTURED_REPLY_MAGIC);
  put_be16 (header + 4, flags);
  put_be16 (header + 6, type);
  memcpy (header + 8, request->cookie, NBD_COOKIE_SIZE);
  put_be32 (header + 16, (uint32_t) len);
  if (!out_append (out, header, sizeof header))
    return false;
  if (!out_append (out, data, len)) {
    out->len -= sizeof header;
    return false;
  }
  request->conn->nr_bytes += sizeof header + len;
  return true;
}

static void
gather_replies (struct conn *conn, struct gather *gather)
{
  const struct request *request;

  TAILQ_FOREACH (request, &conn->replies, entry)
  {
    if (gather_is_full (gather) || !gather_reply (gather, request))
      return;
  }
}

static void
let_go (struct request *request)
{
  read_op_release (&request->op);
  request->has_op = false;
}

/* REQUEST is begun and has nothing to send just now: get its next part, or
 * all of it again where parts cannot be read alone.
 */
static void
resume (struct request *request)
{
  struct conn *conn = request->conn;
  const uint64_t header = reply_header_size (request);
  uint32_t start = 0, len = request->len;

  assert (conn->resuming == NULL);
  conn->resuming = request;
  if (reply_is_stream (request)) {
    if (request->sent > header)
      start = (uint32_t) (request->sent - header);
    len = (uint32_t) MIN (len - start, conn->shard->limits->max_resume);
  }
  request_start_read (request, start, len);
}

/* REQUEST is answered. */
static void
count (const struct request *request)
{
  const struct large_read *large = request->large;
  const bool has_failed = large ? large->has_failed : request->error != 0;

  if (!request->is_read)
    return;
  METRIC_ADD (client_bytes, request->error == 0 ? request->len : 0);
  if (request->is_last && has_failed)
    METRIC_ADD (client_errors, 1);
  else if (request->is_last)
    METRIC_ADD (client_reads, 1);
}

/* The client has taken the answer to REQUEST. */
static void
widen_window (const struct request *request)
{
  struct conn *conn = request->conn;

  conn->window =
    MIN (conn->window + request->len, conn->shard->limits->max_bytes);
}

/* LEN bytes are on the wire: free what is answered. */
static void
account (struct conn *conn, size_t len)
{
  struct request *request;
  uint64_t n;

  conn->sent_since += len;
  while (len > 0) {
    request = TAILQ_FIRST (&conn->replies);
    n = MIN (len, reply_end (request) - request->sent);
    request->sent += n;
    len -= n;
    if (request->sent < reply_end (request))
      break;
    unqueue (request);
    if (request->sent < request->size) {
      assert (len == 0);
      let_go (request);
      resume (request);
      break;
    }
    count (request);
    widen_window (request);
    request_free (request);
  }
}

/* Start parked reads: at once the one whose reply has begun, or else what
 * fits.  One that failed does not get another chance, since a large read
 * has ended with it.
 */
static void
unpark (struct conn *conn)
{
  struct request *request = TAILQ_FIRST (&conn->parked);

  if (conn->resuming)
    return;
  if (request && request->sent > 0) {
    TAILQ_REMOVE (&conn->parked, request, entry);
    resume (request);
    return;
  }
  while ((request = TAILQ_FIRST (&conn->parked)) != NULL &&
         request_fits (request)) {
    TAILQ_REMOVE (&conn->parked, request, entry);
    if (request->error != 0)
      reply_queue (request);
    else
      request_start_read (request, 0, request->len);
  }
}

static void
park (struct request *request)
{
  struct conn *conn = request->conn;

  unqueue (request);
  if (request->has_op)
    let_go (request);
  if (request->sent > 0)
    TAILQ_INSERT_HEAD (&conn->parked, request, entry);
  else {
    if (request->large)
      large_read_part_parked (request);
    TAILQ_INSERT_TAIL (&conn->parked, request, entry);
  }
}

/* Let the windows of all replies go.  The parts of a large read go
 * together, whether they hold any or not: another will be the last.
 */
static void
park_all (struct conn *conn)
{
  struct request *request, *next;

  for (request = TAILQ_FIRST (&conn->replies); request; request = next) {
    next = TAILQ_NEXT (request, entry);
    if (request->has_op || (request->large && request->sent == 0))
      park (request);
  }
}

void
replies_stalled (struct conn *conn)
{
  if (conn->sent_since < conn->shard->limits->max_resume) {
    conn->window = conn->shard->limits->max_resume;
    park_all (conn);
  }
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
  conn->is_blocked = (size_t) n < len || conn->transport.has_unsent;
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
  struct gather gather = { .space = &conn->shard->gather };

  unpark (conn);
  if (TAILQ_EMPTY (&conn->parked) && conn->resuming == NULL)
    large_reads_advance (conn);
  if (conn->resuming || TAILQ_EMPTY (&conn->replies))
    return false;
  gather_replies (conn, &gather);
  account (conn, send_some (conn, gather.space->iov, gather.count,
                            gather.bytes));
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
