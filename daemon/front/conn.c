/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Connections: receiving, and their beginning and end.
 *
 * epoll watches for what the connection can use at the moment: input only
 * while its parser has room for more, output only while replies wait for
 * the socket.  A client that has gone shows as EPOLLHUP or EPOLLERR
 * whatever is watched; while the pager opens an export for it, also as
 * EPOLLRDHUP, since nothing is read then.  Where input and output are two
 * things, the end of the input is not the end.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "daemon/log.h"
#include "daemon/front/attach.h"
#include "daemon/front/clients.h"
#include "daemon/front/conn.h"
#include "daemon/front/handshake.h"
#include "daemon/front/policy.h"
#include "daemon/front/reply.h"
#include "daemon/front/shard.h"
#include "daemon/pager/pager.h"

void
conn_consume (struct conn *conn, size_t len)
{
  assert (len <= conn->in_len);
  conn->in_len -= len;
  if (len > 0 && conn->in_len > 0)
    memmove (conn->in, conn->in + len, conn->in_len);
}

/* Nothing is left of CONN but its struct: the shard frees it when no
 * event can name it any more.
 */
void
conn_bury (struct conn *conn)
{
  assert (conn->state == CONN_CLOSED);
  if (!TAILQ_EMPTY (&conn->reading))
    return;
  if (conn->export)
    export_unref (conn->export);
  conn->export = NULL;
  TAILQ_REMOVE (&conn->shard->conns, conn, entry);
  TAILQ_INSERT_TAIL (&conn->shard->dead, conn, entry);
}

void
conn_close (struct conn *conn, const char *why)
{
  struct shard *shard = conn->shard;

  if (conn->state == CONN_CLOSED)
    return;
  log_debug ("client %d: closed: %s", conn->fd, why);
  conn->state = CONN_CLOSED;
  loop_unwatch (&shard->loop, conn->fd);
  transport_done (&conn->transport);
  close (conn->fd);
  timer_disarm (&conn->timer);
  if (conn->is_dirty)
    TAILQ_REMOVE (&shard->dirty, conn, dirty_entry);
  conn->is_dirty = false;
  attach_abandon (conn);
  free (conn->option_data);
  conn->option_data = NULL;
  out_free (&conn->out);
  requests_abandon (conn);
  if (conn->export)
    export_client_left (conn->export);
  clients_leave (shard->clients);
  conn_bury (conn);
}

void
conn_drain (struct conn *conn)
{
  if (conn->state == CONN_CLOSED)
    return;
  if (conn->state < CONN_TRANSMISSION && conn->out.len == 0 &&
      !conn->transport.has_unsent) {
    conn_close (conn, "shutting down");
    return;
  }
  timer_disarm (&conn->timer);
  attach_abandon (conn);
  conn->state = CONN_DRAINING;
  conn_make_dirty (conn);
}

void
conn_make_dirty (struct conn *conn)
{
  if (conn->is_dirty || conn->state == CONN_CLOSED)
    return;
  conn->is_dirty = true;
  TAILQ_INSERT_TAIL (&conn->shard->dirty, conn, dirty_entry);
}

/* While there is input that epoll does not know of, EPOLLOUT wakes us: a
 * little of it each round, so that others have their turn.
 */
static uint32_t
wanted_input (const struct conn *conn)
{
  return EPOLLIN | (conn->transport.has_input ? EPOLLOUT : 0);
}

static uint32_t
wanted_events (const struct conn *conn)
{
  const uint32_t out = conn->is_blocked ? EPOLLOUT : 0;

  switch (conn->state) {
  case CONN_FLAGS:
  case CONN_OPTION:
  case CONN_OPTION_DATA:
  case CONN_OPTION_SKIP:
  case CONN_STARTTLS:
    return out | (conn->out.len > 0 ? 0 : wanted_input (conn));
  case CONN_OPENING:
  case CONN_LISTING:
    return out | (conn->policy->input_may_end ? 0 : EPOLLRDHUP);
  case CONN_TRANSMISSION:
    return out | (conn->paused ? 0 : wanted_input (conn));
  case CONN_DRAINING: return out;
  case CONN_CLOSED: break;
  }
  assert (!"closed connections have no events");
  return 0;
}

static void
update_events (struct conn *conn)
{
  const uint32_t events = wanted_events (conn);

  if (events == conn->events)
    return;
  conn->events = events;
  loop_rewatch (&conn->shard->loop, conn->fd, &conn->source, events);
}

/* LEN bytes have been read over. */
static void
skipped (struct conn *conn, size_t len)
{
  conn->skip -= len;
  if (conn->skip > 0)
    return;
  if (conn->state == CONN_OPTION_SKIP)
    handshake_option_skipped (conn);
  else if (conn->state == CONN_TRANSMISSION)
    request_payload_skipped (conn);
}

/* Handle one piece of what has been received.  Returns true if there may
 * be another.
 */
static bool
parse (struct conn *conn)
{
  size_t n;

  if (conn->state >= CONN_DRAINING)
    return false;
  if (conn->skip > 0) {
    n = MIN (conn->skip, conn->in_len);
    conn_consume (conn, n);
    skipped (conn, n);
    return n > 0;
  }
  if (conn->state == CONN_TRANSMISSION)
    return requests_parse (conn);
  return handshake_parse (conn);
}

static bool
is_drained (const struct conn *conn)
{
  return conn->state == CONN_DRAINING && conn->out.len == 0 &&
         conn->nr_requests == (conn->refused != NULL);
}

/* Everything is answered, but some of it may not be sent. */
static void
finish (struct conn *conn)
{
  conn->is_blocked = transport_end (&conn->transport) == -EAGAIN;
  if (!conn->is_blocked)
    conn_close (conn, "everything is answered");
}

void
conn_pump (struct conn *conn)
{
  /* What is sent makes room for what is parsed. */
  do
    replies_send (conn);
  while (conn->state != CONN_CLOSED && parse (conn));
  if (is_drained (conn))
    finish (conn);
  if (conn->state != CONN_CLOSED)
    update_events (conn);
}

/* Whoever has keys or certificates wrong wants to be told, and a scanner
 * not to fill the log.
 */
static void
receiving_failed (struct conn *conn)
{
  const char *why = transport_why (&conn->transport);
  struct shard *shard = conn->shard;

  if (why && !transport_is_established (&conn->transport) &&
      shard->loop.now_ns >= shard->tls_quiet_until_ns) {
    shard->tls_quiet_until_ns = shard->loop.now_ns + NS_PER_SEC;
    log_info ("client %d: TLS handshake failed: %s", conn->fd, why);
  }
  conn_close (conn, why ? why : "receiving failed");
}

static void
input_ended (struct conn *conn)
{
  if (conn->policy->input_may_end)
    conn_drain (conn);
  else
    conn_close (conn, "the client has gone");
}

/* Receive once: into the buffer, or to be thrown away. */
static void
receive (struct conn *conn)
{
  struct shard *shard = conn->shard;
  ssize_t n;

  if (conn->skip > 0)
    n = transport_recv (&conn->transport, shard->scratch,
                        MIN (conn->skip, sizeof shard->scratch));
  else
    n = transport_recv (&conn->transport, conn->in + conn->in_len,
                        sizeof conn->in - conn->in_len);
  if (n > 0 && conn->skip > 0)
    skipped (conn, (size_t) n);
  else if (n > 0)
    conn->in_len += (size_t) n;
  else if (n == 0)
    input_ended (conn);
  else if (errno != EAGAIN && errno != EINTR)
    receiving_failed (conn);
  if (conn->transport.has_unsent)
    conn->is_blocked = true; /* TLS has answered by itself. */
}

/* The socket has room.  Returns false if that is of no use any more. */
static bool
unblock (struct conn *conn)
{
  const int r = transport_flush (&conn->transport);

  conn->is_blocked = r == -EAGAIN;
  if (r == 0 || r == -EAGAIN)
    return true;
  conn_close (conn, "sending failed");
  return false;
}

static void
conn_is_ready (struct event_source *source, uint32_t events)
{
  struct conn *conn = container_of (source, struct conn, source);

  if (conn->state == CONN_CLOSED)
    return; /* By an event before this one. */
  if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) {
    conn_close (conn, "the client has gone");
    return;
  }
  if ((events & EPOLLOUT) && !unblock (conn))
    return;
  if ((events & EPOLLIN) ||
      (conn->transport.has_input && (conn->events & EPOLLIN)))
    receive (conn);
  conn_pump (conn);
}

static void
time_is_up (struct timer *timer)
{
  struct conn *conn = container_of (timer, struct conn, timer);

  if (conn->state < CONN_TRANSMISSION)
    conn_close (conn, "the handshake took too long");
  else
    replies_stalled (conn);
}

int
conn_new (struct shard *shard, int fd, const struct client_policy *policy)
{
  struct conn *conn = calloc (1, sizeof *conn);
  int r;

  if (conn == NULL) {
    close (fd);
    return -ENOMEM;
  }
  conn->source.ready = conn_is_ready;
  conn->shard = shard;
  conn->policy = policy;
  conn->fd = fd;
  conn->transport.fd = fd;
  conn->events = EPOLLIN;
  conn->timer.fire = time_is_up;
  TAILQ_INIT (&conn->reading);
  TAILQ_INIT (&conn->replies);
  TAILQ_INIT (&conn->parked);
  TAILQ_INIT (&conn->large);
  conn->window = shard->limits->max_resume;
  r = loop_watch (&shard->loop, fd, &conn->source, conn->events);
  if (r < 0) {
    close (fd);
    free (conn);
    return r;
  }
  TAILQ_INSERT_TAIL (&shard->conns, conn, entry);
  handshake_start (conn);
  conn_make_dirty (conn);
  return 0;
}
