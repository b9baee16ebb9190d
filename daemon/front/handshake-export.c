/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Options that name an export: INFO, GO and EXPORT_NAME.
 *
 *   decoded ─▶ the pager opens the export ─▶ handshake_opened ─▶ answered
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
#include "daemon/front/nbd-protocol.h"
#include "daemon/front/option-reply.h"
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

void
handshake_opened (struct conn *conn, struct export *export, int status,
                  const char *why)
{
  assert (conn->state == CONN_OPENING);
  if (status < 0)
    refuse_open (conn, status, why);
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
