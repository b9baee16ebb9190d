/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Options that name an export: INFO, GO, EXPORT_NAME, and those about
 * metadata contexts.
 *
 *   decoded ─▶ the pager opens the export ─▶ handshake_opened ─▶ answered
 *
 * Contexts that are set are kept with the name of their export, byte by
 * byte as the client wrote it: they hold if the client attaches by the
 * same.  The next SET replaces them even if it fails; nothing else but
 * STARTTLS does.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/clock.h"
#include "daemon/log.h"
#include "daemon/front/attach.h"
#include "daemon/front/conn.h"
#include "daemon/front/handshake.h"
#include "daemon/front/meta-context.h"
#include "daemon/front/nbd-protocol.h"
#include "daemon/front/option-reply.h"
#include "daemon/front/policy.h"
#include "daemon/front/shard.h"
#include "daemon/pager/pager.h"

uint32_t
handshake_open_error (int status)
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
  handshake_refuse (conn, handshake_open_error (status), message);
}

/* The export that the option names; what OPTION_DATA looks like has been
 * checked.
 */
static const uint8_t *
named_export (const struct conn *conn, size_t *ret_len)
{
  if (conn->option == NBD_OPT_EXPORT_NAME) {
    *ret_len = conn->option_len;
    return conn->option_data;
  }
  *ret_len = get_be32 (conn->option_data);
  return conn->option_data + 4;
}

/* The contexts that the client has set hold if they are this export's. */
static unsigned
contexts_that_hold (const struct conn *conn)
{
  size_t len;
  const uint8_t *name = named_export (conn, &len);

  if (len != conn->selected_name_len ||
      memcmp (name, conn->selected_name, len) != 0)
    return 0;
  return conn->selected;
}

/* The handshake is over: serve EXPORT (taken over). */
static void
enter_transmission (struct conn *conn, struct export *export)
{
  timer_disarm (&conn->timer);
  conn->contexts = contexts_that_hold (conn);
  free (conn->option_data);
  conn->option_data = NULL;
  conn->export = export;
  conn->state = CONN_TRANSMISSION;
  export_client_entered (export);
  log_debug ("client %d: serving export '%s'", conn->fd,
             export_get_info (export)->name);
}

/* INFO, GO or EXPORT_NAME. */
static void
tell_export (struct conn *conn, struct export *export)
{
  const struct export_info *info = export_get_info (export);
  bool sent;

  if (conn->option == NBD_OPT_EXPORT_NAME)
    sent = reply_export_name (&conn->out, info, conn->structured,
                              conn->no_zeroes);
  else
    sent = reply_info (&conn->out, conn->option, info, conn->structured,
                       conn->wants_name, conn->wants_description) &&
           reply_option (&conn->out, conn->option, NBD_REP_ACK, NULL, 0);
  handshake_check_reply (conn, sent);
  if (sent && conn->option != NBD_OPT_INFO)
    enter_transmission (conn, export);
  else {
    export_unref (export);
    handshake_next (conn);
  }
}

/* LIST_META_CONTEXT or SET_META_CONTEXT, of an export that is there. */
static void
tell_contexts (struct conn *conn)
{
  const bool is_set = conn->option == NBD_OPT_SET_META_CONTEXT;
  const uint8_t *name;
  enum map_kind kind;
  bool sent = true;

  if (is_set) {
    name = named_export (conn, &conn->selected_name_len);
    memcpy (conn->selected_name, name, conn->selected_name_len);
    conn->selected = conn->queried;
  }
  for (kind = 0; kind < NR_MAP_KINDS; kind++) {
    if (conn->queried & CONTEXT (kind))
      sent =
        sent && reply_context (&conn->out, conn->option, kind, is_set);
  }
  handshake_check_reply (conn, sent && reply_option (&conn->out, conn->option,
                                                     NBD_REP_ACK, NULL, 0));
  handshake_next (conn);
}

void
handshake_opened (struct conn *conn, struct export *export, int status,
                  const char *why)
{
  assert (conn->state == CONN_OPENING);
  if (status < 0)
    refuse_open (conn, status, why);
  else if (conn->option == NBD_OPT_LIST_META_CONTEXT ||
           conn->option == NBD_OPT_SET_META_CONTEXT) {
    export_unref (export);
    tell_contexts (conn);
  }
  else
    tell_export (conn, export);
}

void
handshake_open_export (struct conn *conn, const uint8_t *name, size_t len)
{
  if (len > NBD_MAX_STRING)
    handshake_refuse (conn, NBD_REP_ERR_TOO_BIG, "export name too long");
  else if (len > 0 && memchr (name, '\0', len) != NULL)
    handshake_refuse (conn, NBD_REP_ERR_INVALID,
                      "export name holds a zero byte");
  else if (len >= HANDSHAKE_MAX_NAME)
    handshake_refuse (conn, NBD_REP_ERR_UNKNOWN, "no such export");
  else {
    conn->state = CONN_OPENING;
    handshake_stop_deadline (conn);
    if (!attach_open (conn, name, len))
      conn_close (conn, "out of memory");
  }
}

void
handshake_get_info (struct conn *conn)
{
  const uint8_t *data = conn->option_data, *requests;
  const size_t len = conn->option_len;
  size_t name_len, count, i;

  if (len < 6 || get_be32 (data) > len - 6) {
    handshake_refuse (conn, NBD_REP_ERR_INVALID, "malformed option");
    return;
  }
  name_len = get_be32 (data);
  count = get_be16 (data + 4 + name_len);
  requests = data + 4 + name_len + 2;
  if (len - 6 - name_len != 2 * count) {
    handshake_refuse (conn, NBD_REP_ERR_INVALID, "malformed option");
    return;
  }
  conn->wants_name = conn->wants_description = false;
  for (i = 0; i < count; i++) {
    conn->wants_name |= get_be16 (requests + 2 * i) == NBD_INFO_NAME;
    conn->wants_description |=
      get_be16 (requests + 2 * i) == NBD_INFO_DESCRIPTION;
  }
  handshake_open_export (conn, data + 4, name_len);
}

void
handshake_query_contexts (struct conn *conn)
{
  const bool lists = conn->option == NBD_OPT_LIST_META_CONTEXT;
  struct context_query query;
  int r;

  if (!conn->structured) {
    handshake_refuse (conn, NBD_REP_ERR_INVALID,
                      "contexts need structured replies");
    return;
  }
  r = context_query_decode (conn->option_data, conn->option_len, lists,
                            &query);
  if (r == -ERANGE)
    handshake_refuse (conn, NBD_REP_ERR_TOO_BIG, "too much is queried");
  else if (r < 0)
    handshake_refuse (conn, NBD_REP_ERR_INVALID, "malformed option");
  else {
    conn->queried = query.contexts;
    if (!conn->policy->may_see_residency)
      conn->queried &= ~CONTEXT (MAP_RESIDENCY);
    handshake_open_export (conn, query.export_name, query.export_name_len);
  }
}
