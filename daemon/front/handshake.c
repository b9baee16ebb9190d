/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The negotiation's state machine.
 *
 * One option at a time: its replies have been sent before the next one is
 * looked at, so a client that asks without reading costs one answer.
 *
 * We wait for the client for front_limits.handshake_ns in all; our own
 * time does not count, and each option that is answered gives back a
 * hundredth, so that one who asks much over a slow link is not cut off,
 * and one who keeps us waiting is.  One who asks without end is, too.
 *
 * What it sends is bounded before it is used: an option's data by
 * max_option (longer data is read over and refused, up to max_skip),
 * names by the protocol's 4096 bytes; what is said of them by 255.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "daemon/log.h"
#include "daemon/front/attach.h"
#include "daemon/front/conn.h"
#include "daemon/front/handshake.h"
#include "daemon/front/nbd-protocol.h"
#include "daemon/front/option-reply.h"
#include "daemon/front/policy.h"
#include "daemon/front/shard.h"
#include "daemon/pager/pager.h"

void
handshake_check_reply (struct conn *conn, bool sent)
{
  if (!sent)
    conn_close (conn, "out of memory");
}

/* We wait for the client. */
static void
run_deadline (struct conn *conn)
{
  timer_arm_within (&conn->shard->loop, conn->shard->handshake_queue,
                    &conn->timer, conn->patience_ns);
}

void
handshake_stop_deadline (struct conn *conn)
{
  const uint64_t due_ns = conn->timer.due_ns;
  const uint64_t now_ns = conn->shard->loop.now_ns;

  if (conn->timer.queue == NULL)
    return;
  conn->patience_ns = due_ns > now_ns ? due_ns - now_ns : 0;
  timer_disarm (&conn->timer);
}

void
handshake_start (struct conn *conn)
{
  conn->state = CONN_FLAGS;
  conn->patience_ns = conn->shard->limits->handshake_ns;
  run_deadline (conn);
  handshake_check_reply (conn, reply_greeting (&conn->out));
}

void
handshake_next (struct conn *conn)
{
  const uint64_t limit_ns = conn->shard->limits->handshake_ns;

  free (conn->option_data);
  conn->option_data = NULL;
  if (conn->state == CONN_CLOSED)
    return;
  conn->state = CONN_OPTION;
  handshake_stop_deadline (conn);
  conn->patience_ns = MIN (conn->patience_ns + limit_ns / 100, limit_ns);
  run_deadline (conn);
}

void
handshake_refuse (struct conn *conn, uint32_t type, const char *message)
{
  if (conn->option == NBD_OPT_EXPORT_NAME) {
    conn_close (conn, message); /* It has no other way to say so. */
    return;
  }
  log_debug ("client %d: option %u refused: %s", conn->fd, conn->option,
             message);
  handshake_check_reply (
    conn, reply_option_error (&conn->out, conn->option, type, message));
  handshake_next (conn);
}

void
handshake_acknowledge (struct conn *conn)
{
  handshake_check_reply (conn, reply_option (&conn->out, conn->option,
                                             NBD_REP_ACK, NULL, 0));
  handshake_next (conn);
}

void
handshake_listed (struct conn *conn, struct out_buf *replies, int status)
{
  assert (conn->state == CONN_LISTING);
  if (status == -ERANGE)
    handshake_refuse (conn, NBD_REP_ERR_TOO_BIG, "too many exports to list");
  else if (status < 0)
    handshake_refuse (conn, handshake_open_error (status),
                      "cannot list the exports");
  else {
    out_free (&conn->out);
    conn->out = *replies;
    *replies = (struct out_buf){ 0 };
    handshake_acknowledge (conn);
  }
}

static void
list_exports (struct conn *conn)
{
  if (conn->option_len > 0) {
    handshake_refuse (conn, NBD_REP_ERR_INVALID, "LIST takes no data");
    return;
  }
  if (!conn->policy->may_list) {
    handshake_refuse (conn, NBD_REP_ERR_POLICY,
                      "listing is not allowed here");
    return;
  }
  conn->state = CONN_LISTING;
  handshake_stop_deadline (conn);
  if (!attach_list (conn))
    conn_close (conn, "out of memory");
}

/* Once is enough: a client that asks again has lost its place. */
static void
use_structured_replies (struct conn *conn)
{
  if (conn->option_len > 0) {
    handshake_refuse (conn, NBD_REP_ERR_INVALID,
                      "STRUCTURED_REPLY takes no data");
    return;
  }
  if (conn->structured) {
    handshake_refuse (conn, NBD_REP_ERR_INVALID,
                      "replies are structured already");
    return;
  }
  conn->structured = true;
  handshake_acknowledge (conn);
}

/* What follows the option in plain text may be another's, put there to be
 * taken for the client's own words once TLS has begun.
 */
static void
accept_tls (struct conn *conn)
{
  if (conn->shard->tls == NULL || conn->policy->tls == TLS_OFF)
    handshake_refuse (conn, NBD_REP_ERR_POLICY, "TLS is not offered here");
  else if (conn->transport.tls)
    handshake_refuse (conn, NBD_REP_ERR_INVALID, "TLS has begun already");
  else if (conn->option_len > 0)
    handshake_refuse (conn, NBD_REP_ERR_INVALID, "STARTTLS takes no data");
  else if (conn->in_len > 0)
    conn_close (conn, "plain text behind STARTTLS");
  else {
    handshake_check_reply (conn,
                           reply_option (&conn->out, NBD_OPT_STARTTLS,
                                         NBD_REP_ACK, NULL, 0));
    if (conn->state != CONN_CLOSED)
      conn->state = CONN_STARTTLS;
  }
}

/* The answer has been sent: everything from here on is TLS, and what was
 * agreed in plain text is not.  The client's own handshake takes of the
 * time that we wait for it.
 */
static void
start_tls (struct conn *conn)
{
  conn->structured = false;
  conn->selected = 0;
  if (transport_start_tls (&conn->transport, conn->shard->tls,
                           &conn->shard->tls_pool) < 0)
    conn_close (conn, "out of memory");
  else
    log_debug ("client %d: TLS begins", conn->fd);
  handshake_next (conn);
}

/* In plain text where that is not allowed, nothing is answered but what
 * leads to TLS, or away.
 */
static bool
lacks_tls (const struct conn *conn)
{
  return conn->policy->tls == TLS_REQUIRE && conn->transport.tls == NULL &&
         conn->option != NBD_OPT_STARTTLS && conn->option != NBD_OPT_ABORT;
}

/* The option is whole. */
static void
handle_option (struct conn *conn)
{
  if (lacks_tls (conn)) {
    handshake_refuse (conn, NBD_REP_ERR_TLS_REQD, "TLS is required here");
    return;
  }
  switch (conn->option) {
  case NBD_OPT_EXPORT_NAME:
    handshake_open_export (conn, conn->option_data, conn->option_len);
    break;
  case NBD_OPT_ABORT:
    handshake_check_reply (conn, reply_option (&conn->out, NBD_OPT_ABORT,
                                               NBD_REP_ACK, NULL, 0));
    conn_drain (conn);
    break;
  case NBD_OPT_LIST: list_exports (conn); break;
  case NBD_OPT_STARTTLS: accept_tls (conn); break;
  case NBD_OPT_INFO:
  case NBD_OPT_GO: handshake_get_info (conn); break;
  case NBD_OPT_LIST_META_CONTEXT:
  case NBD_OPT_SET_META_CONTEXT: handshake_query_contexts (conn); break;
  case NBD_OPT_STRUCTURED_REPLY: use_structured_replies (conn); break;
  default:
    handshake_refuse (conn, NBD_REP_ERR_UNSUP, "option not supported");
    break;
  }
}

static void
parse_flags (struct conn *conn)
{
  const uint32_t known = NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES;
  const uint32_t flags = get_be32 (conn->in);

  conn_consume (conn, NBD_CLIENT_FLAGS_SIZE);
  conn->no_zeroes = flags & NBD_FLAG_NO_ZEROES;
  conn->state = CONN_OPTION;
  if (flags & ~known)
    conn_close (conn, "unknown client flags");
}

static void
parse_option_header (struct conn *conn)
{
  const struct front_limits *limits = conn->shard->limits;
  const uint64_t magic = get_be64 (conn->in);

  conn->option = get_be32 (conn->in + 8);
  conn->option_len = get_be32 (conn->in + 12);
  conn->option_have = 0;
  conn_consume (conn, NBD_OPTION_HEADER_SIZE);
  if (conn->option == NBD_OPT_SET_META_CONTEXT)
    conn->selected = 0; /* Whatever comes of it. */
  if (magic != NBD_OPTION_MAGIC)
    conn_close (conn, "bad option magic");
  else if (++conn->nr_options > limits->max_options)
    conn_close (conn, "too many options");
  else if (conn->option_len > limits->max_skip)
    conn_close (conn, "option too long");
  else if (conn->option_len > limits->max_option) {
    conn->skip = conn->option_len;
    conn->state = CONN_OPTION_SKIP;
  }
  else {
    conn->option_data = malloc (conn->option_len + 1);
    conn->state = CONN_OPTION_DATA;
    if (conn->option_data == NULL)
      conn_close (conn, "out of memory");
  }
}

/* Returns true if the data is whole. */
static bool
gather_option_data (struct conn *conn)
{
  const size_t n =
    MIN (conn->in_len, conn->option_len - conn->option_have);

  memcpy (conn->option_data + conn->option_have, conn->in, n);
  conn->option_have += n;
  conn_consume (conn, n);
  return conn->option_have == conn->option_len;
}

void
handshake_option_skipped (struct conn *conn)
{
  if (lacks_tls (conn))
    handshake_refuse (conn, NBD_REP_ERR_TLS_REQD, "TLS is required here");
  else
    handshake_refuse (conn, NBD_REP_ERR_TOO_BIG, "option too long");
}

bool
handshake_parse (struct conn *conn)
{
  if (conn->out.len > 0)
    return false; /* Answered, but not sent yet. */
  if (conn->state == CONN_FLAGS && conn->in_len >= NBD_CLIENT_FLAGS_SIZE)
    parse_flags (conn);
  else if (conn->state == CONN_OPTION &&
           conn->in_len >= NBD_OPTION_HEADER_SIZE)
    parse_option_header (conn);
  else if (conn->state == CONN_OPTION_DATA && gather_option_data (conn))
    handle_option (conn);
  else if (conn->state == CONN_STARTTLS)
    start_tls (conn);
  else
    return false;
  return true;
}
