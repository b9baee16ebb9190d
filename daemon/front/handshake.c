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

/* SENT is what appending a reply returned. */
static void
check_reply (struct conn *conn, bool sent)
{
  if (!sent)
    conn_close (conn, "out of memory");
}

/* We wait for the client … */
static void
run_deadline (struct conn *conn)
{
  timer_arm_within (&conn->shard->loop, conn->shard->handshake_queue,
                    &conn->timer, conn->patience_ns);
}

/* … and now for ourselves. */
static void
stop_deadline (struct conn *conn)
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
  check_reply (conn, reply_greeting (&conn->out));
}

/* The option is answered (unless CONN is closed): wait for the next. */
static void
next_option (struct conn *conn)
{
  const uint64_t limit_ns = conn->shard->limits->handshake_ns;

  free (conn->option_data);
  conn->option_data = NULL;
  if (conn->state == CONN_CLOSED)
    return;
  conn->state = CONN_OPTION;
  stop_deadline (conn);
  conn->patience_ns = MIN (conn->patience_ns + limit_ns / 100, limit_ns);
  run_deadline (conn);
}

/* Refuse the option. */
static void
refuse (struct conn *conn, uint32_t type, const char *message)
{
  if (conn->option == NBD_OPT_EXPORT_NAME) {
    conn_close (conn, message); /* It has no other way to say so. */
    return;
  }
  log_debug ("client %d: option %u refused: %s", conn->fd, conn->option,
             message);
  check_reply (conn, reply_option_error (&conn->out, conn->option, type,
                                         message));
  next_option (conn);
}

/* How an export that could not be opened is refused.  Damage must not
 * look like absence.
 */
static uint32_t
open_error_type (int status)
{
  switch (status) {
  case -ENOENT:
  case -EINVAL: return NBD_REP_ERR_UNKNOWN; /* Not even a name. */
  case -EPERM: return NBD_REP_ERR_POLICY;
  case -ESHUTDOWN: return NBD_REP_ERR_SHUTDOWN;
  default: return NBD_REP_ERR_PLATFORM;
  }
}

/* The operator's business, if it is not the client's mistake; what is
 * corrupt has been logged by the verifier.  A client that tries again and
 * again costs a line a second.
 */
static void
log_open_failure (struct shard *shard, int status, const char *why)
{
  if (status == -ENOENT || status == -EINVAL || status == -ESHUTDOWN ||
      status == -EBADMSG || shard->loop.now_ns < shard->quiet_until_ns)
    return;
  shard->quiet_until_ns = shard->loop.now_ns + NS_PER_SEC;
  log_warn ("%s; a client is turned away", why);
}

/* WHY may hold what the driver sent. */
static void
refuse_open (struct conn *conn, int status, const char *why)
{
  char message[256];
  size_t i;

  for (i = 0; why[i] != '\0' && i < sizeof message - 1; i++)
    message[i] = (unsigned char) why[i] < ' ' || why[i] == 127 ? '?' : why[i];
  message[i] = '\0';
  log_open_failure (conn->shard, status, message);
  refuse (conn, open_error_type (status), message);
}

/* The handshake is over: serve EXPORT (taken over). */
static void
enter_transmission (struct conn *conn, struct export *export)
{
  timer_disarm (&conn->timer);
  free (conn->option_data);
  conn->option_data = NULL;
  conn->export = export;
  conn->state = CONN_TRANSMISSION;
  export_client_entered (export);
  log_debug ("client %d: serving export '%s'", conn->fd,
             export_get_info (export)->name);
}

void
handshake_opened (struct conn *conn, struct export *export, int status,
                  const char *why)
{
  const struct export_info *info;
  bool sent;

  assert (conn->state == CONN_OPENING);
  if (status < 0) {
    refuse_open (conn, status, why);
    return;
  }
  info = export_get_info (export);
  if (conn->option == NBD_OPT_EXPORT_NAME)
    sent = reply_export_name (&conn->out, info, conn->structured,
                              conn->no_zeroes);
  else
    sent = reply_info (&conn->out, conn->option, info, conn->structured,
                       conn->wants_name, conn->wants_description) &&
           reply_option (&conn->out, conn->option, NBD_REP_ACK, NULL, 0);
  check_reply (conn, sent);
  if (sent && conn->option != NBD_OPT_INFO)
    enter_transmission (conn, export);
  else {
    export_unref (export);
    next_option (conn);
  }
}

void
handshake_listed (struct conn *conn, struct out_buf *replies, int status)
{
  assert (conn->state == CONN_LISTING);
  if (status == -ERANGE)
    refuse (conn, NBD_REP_ERR_TOO_BIG, "too many exports to list");
  else if (status < 0)
    refuse (conn, open_error_type (status), "cannot list the exports");
  else {
    out_free (&conn->out);
    conn->out = *replies;
    *replies = (struct out_buf){ 0 };
    check_reply (conn, reply_option (&conn->out, NBD_OPT_LIST, NBD_REP_ACK,
                                     NULL, 0));
    next_option (conn);
  }
}

/* Ask the pager for the export; its answer ends the option. */
static void
open_export (struct conn *conn, const uint8_t *name, size_t len)
{
  if (len > NBD_MAX_STRING)
    refuse (conn, NBD_REP_ERR_TOO_BIG, "export name too long");
  else if (len > 0 && memchr (name, '\0', len) != NULL)
    refuse (conn, NBD_REP_ERR_INVALID, "export name holds a zero byte");
  else if (len >= sizeof ((struct export_info *) NULL)->name)
    refuse (conn, NBD_REP_ERR_UNKNOWN, "no such export");
  else {
    conn->state = CONN_OPENING;
    stop_deadline (conn);
    if (!attach_open (conn, name, len))
      conn_close (conn, "out of memory");
  }
}

static void
list_exports (struct conn *conn)
{
  if (conn->option_len > 0) {
    refuse (conn, NBD_REP_ERR_INVALID, "LIST takes no data");
    return;
  }
  if (!conn->policy->may_list) {
    refuse (conn, NBD_REP_ERR_POLICY, "listing is not allowed here");
    return;
  }
  conn->state = CONN_LISTING;
  stop_deadline (conn);
  if (!attach_list (conn))
    conn_close (conn, "out of memory");
}

/* INFO and GO: u32 length, name, u16 count, u16 information requests. */
static void
get_info (struct conn *conn)
{
  const uint8_t *data = conn->option_data, *requests;
  const size_t len = conn->option_len;
  size_t name_len, count, i;

  if (len < 6 || get_be32 (data) > len - 6) {
    refuse (conn, NBD_REP_ERR_INVALID, "malformed option");
    return;
  }
  name_len = get_be32 (data);
  count = get_be16 (data + 4 + name_len);
  requests = data + 4 + name_len + 2;
  if (len - 6 - name_len != 2 * count) {
    refuse (conn, NBD_REP_ERR_INVALID, "malformed option");
    return;
  }
  conn->wants_name = conn->wants_description = false;
  for (i = 0; i < count; i++) {
    conn->wants_name |= get_be16 (requests + 2 * i) == NBD_INFO_NAME;
    conn->wants_description |=
      get_be16 (requests + 2 * i) == NBD_INFO_DESCRIPTION;
  }
  open_export (conn, data + 4, name_len);
}

/* Once is enough: a client that asks again has lost its place. */
static void
use_structured_replies (struct conn *conn)
{
  if (conn->option_len > 0) {
    refuse (conn, NBD_REP_ERR_INVALID, "STRUCTURED_REPLY takes no data");
    return;
  }
  if (conn->structured) {
    refuse (conn, NBD_REP_ERR_INVALID, "replies are structured already");
    return;
  }
  conn->structured = true;
  check_reply (conn, reply_option (&conn->out, conn->option, NBD_REP_ACK,
                                   NULL, 0));
  next_option (conn);
}

/* What follows the option in plain text may be another's, put there to be
 * taken for the client's own words once TLS has begun.
 */
static void
accept_tls (struct conn *conn)
{
  if (conn->shard->tls == NULL || conn->policy->tls == TLS_OFF)
    refuse (conn, NBD_REP_ERR_POLICY, "TLS is not offered here");
  else if (conn->transport.tls)
    refuse (conn, NBD_REP_ERR_INVALID, "TLS has begun already");
  else if (conn->option_len > 0)
    refuse (conn, NBD_REP_ERR_INVALID, "STARTTLS takes no data");
  else if (conn->in_len > 0)
    conn_close (conn, "plain text behind STARTTLS");
  else {
    check_reply (conn, reply_option (&conn->out, NBD_OPT_STARTTLS,
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
  if (transport_start_tls (&conn->transport, conn->shard->tls,
                           &conn->shard->tls_pool) < 0)
    conn_close (conn, "out of memory");
  else
    log_debug ("client %d: TLS begins", conn->fd);
  next_option (conn);
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
    refuse (conn, NBD_REP_ERR_TLS_REQD, "TLS is required here");
    return;
  }
  switch (conn->option) {
  case NBD_OPT_EXPORT_NAME:
    open_export (conn, conn->option_data, conn->option_len);
    break;
  case NBD_OPT_ABORT:
    check_reply (conn, reply_option (&conn->out, NBD_OPT_ABORT, NBD_REP_ACK,
                                     NULL, 0));
    conn_drain (conn);
    break;
  case NBD_OPT_LIST: list_exports (conn); break;
  case NBD_OPT_STARTTLS: accept_tls (conn); break;
  case NBD_OPT_INFO:
  case NBD_OPT_GO: get_info (conn); break;
  case NBD_OPT_STRUCTURED_REPLY: use_structured_replies (conn); break;
  default:
    refuse (conn, NBD_REP_ERR_UNSUP, "option not supported");
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
    refuse (conn, NBD_REP_ERR_TLS_REQD, "TLS is required here");
  else
    refuse (conn, NBD_REP_ERR_TOO_BIG, "option too long");
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
