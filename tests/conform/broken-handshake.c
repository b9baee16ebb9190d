/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The broken server's negotiation, up to INFO and metadata contexts. */
#include <config.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "conform/broken.h"
#include "conform/protocol.h"
#include "lib/base/bytes.h"

enum {
  MAX_OPTION = 64 << 10, /* Bytes of data; more is refused. */
  MAX_SKIP = 8 << 20,
};

#define EXPORT "disk"

/* What a server with TLS is known by; ours only plays it. */
static bool
demands_tls (void)
{
  return has_bug (BUG_NONE_BUT_TLS) || has_bug (BUG_TLS_STRUCTURED) ||
         has_bug (BUG_TLS_EXPORT_NAME) || has_bug (BUG_TLS_ABORT) ||
         has_bug (BUG_TLS_NOISE_TAKEN);
}

uint16_t
export_flags (const struct client *client)
{
  uint16_t flags = EXPORT_HAS_FLAGS | EXPORT_READ_ONLY | EXPORT_SEND_FLUSH |
                   EXPORT_SEND_FUA | EXPORT_CAN_MULTI_CONN |
                   EXPORT_SEND_CACHE;

  if (client->is_structured || has_bug (BUG_DF_ALWAYS))
    flags |= EXPORT_SEND_DF;
  if (has_bug (BUG_NO_HAS_FLAGS))
    flags &= (uint16_t) ~EXPORT_HAS_FLAGS;
  if (has_bug (BUG_FAST_ZERO_ALONE))
    flags |= EXPORT_SEND_FAST_ZERO;
  if (has_bug (BUG_FLUSH_CLOSES))
    flags &= (uint16_t) ~EXPORT_SEND_FLUSH;
  if (has_bug (BUG_FUA_TAKEN))
    flags &= (uint16_t) ~EXPORT_SEND_FUA;
  if (has_bug (BUG_CLIENTS_DIFFER) && client->number % 2 == 1)
    flags |= EXPORT_ROTATIONAL;
  return flags;
}

bool
is_our_export (const uint8_t *name, size_t len)
{
  return len == strlen (EXPORT) && memcmp (name, EXPORT, len) == 0;
}

void
send_greeting (struct client *client)
{
  uint8_t greeting[GREETING_SIZE];
  uint16_t flags = FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES;

  if (has_bug (BUG_NO_FIXED_NEWSTYLE))
    flags = FLAG_NO_ZEROES;
  if (has_bug (BUG_EXTRA_HANDSHAKE_FLAG))
    flags |= 1 << 5;
  if (has_bug (BUG_UNMATCHED_CLIENT_FLAG))
    flags = FLAG_FIXED_NEWSTYLE;
  put_be64 (greeting, GREETING_MAGIC + has_bug (BUG_GREETING_MAGIC));
  put_be64 (greeting + 8, OPTION_MAGIC);
  put_be16 (greeting + 16, flags);
  client_send (client, greeting, sizeof greeting);
}

void
reply_option (struct client *client, uint32_t option, uint32_t type,
              const void *data, size_t len)
{
  uint8_t header[OPTION_REPLY_SIZE];

  put_be64 (header, OPTION_REPLY_MAGIC);
  put_be32 (header + 8, option);
  put_be32 (header + 12, type);
  put_be32 (header + 16, (uint32_t) len);
  client_send (client, header, sizeof header);
  client_send (client, data, len);
}

static void
recv_client_flags (struct client *client)
{
  const uint32_t known = FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES;
  uint8_t bytes[4];

  client_recv (client, bytes, sizeof bytes);
  client->flags = get_be32 (bytes);
  if (client->flags & ~known && !has_bug (BUG_ANY_CLIENT_FLAGS))
    client_leave ();
  if (client->flags == 0 && has_bug (BUG_NO_PLAIN_NEWSTYLE))
    client_leave ();
}

/* ---- Options ---- */

static void
handle_export_name (struct client *client, const uint8_t *name, size_t len)
{
  static const uint8_t zeroes[EXPORT_NAME_ZEROES];
  uint8_t reply[EXPORT_NAME_REPLY_SIZE];
  size_t nr_zeroes = sizeof zeroes;
  const bool is_served = is_our_export (name, len) ||
                         has_bug (BUG_ANY_EXPORT_NAME) ||
                         (len > MAX_STRING &&
                          has_bug (BUG_OVERLONG_EXPORT_NAME));

  if (!is_served || (demands_tls () && !has_bug (BUG_TLS_EXPORT_NAME)))
    client_leave ();
  if (client->flags & FLAG_NO_ZEROES && !has_bug (BUG_ALWAYS_ZEROES))
    nr_zeroes = 0;
  if (nr_zeroes > 0 && has_bug (BUG_FEW_ZEROES))
    nr_zeroes -= 4;
  put_be64 (reply, client->size + (has_bug (BUG_EXPORT_NAME_SIZE) ? 512 : 0));
  put_be16 (reply + 8, export_flags (client));
  client_send (client, reply, sizeof reply);
  client_send (client, zeroes, nr_zeroes);
  if (has_bug (BUG_OPTION_DROPS_REST)) {
    uint8_t rest[4096];
    const ssize_t n = client_peek (client, rest, sizeof rest);

    client_skip (client, n > 0 ? (uint64_t) n : 0);
  }
}

static void __attribute__ ((noreturn))
handle_abort (struct client *client, size_t len)
{
  if (has_bug (BUG_ABORT_ENDS_ALL))
    kill (client->server, SIGKILL);
  if (has_bug (BUG_TLS_ABORT))
    reply_option (client, OPT_ABORT, REP_ERR_TLS_REQD, NULL, 0);
  else if (len > 0 && has_bug (BUG_ABORT_DATA_REFUSED))
    reply_option (client, OPT_ABORT, REP_ERR_INVALID, NULL, 0);
  else if (!has_bug (BUG_ABORT_WITHOUT_REPLY))
    reply_option (client, OPT_ABORT, REP_ACK, NULL, 0);
  client_leave ();
}

static void
handle_structured (struct client *client, size_t len)
{
  const uint32_t option = OPT_STRUCTURED_REPLY;

  if (client->is_structured && has_bug (BUG_STRUCTURED_TWICE_CLOSES))
    client_leave ();
  if (len > 0 && !has_bug (BUG_STRUCTURED_DATA_TAKEN)) {
    reply_option (client, option, REP_ERR_INVALID, NULL, 0);
    return;
  }
  client->is_structured = true;
  reply_option (client, option, REP_ACK, "data",
                has_bug (BUG_STRUCTURED_ACK_DATA) ? 4 : 0);
}

static uint32_t
judge_starttls (const struct client *client, size_t len)
{
  if (has_bug (BUG_STARTTLS_DEMANDS_TLS))
    return REP_ERR_TLS_REQD;
  if (len > 0)
    return has_bug (BUG_STARTTLS_DATA_TAKEN) ? REP_ACK : REP_ERR_INVALID;
  if (client->ssl)
    return has_bug (BUG_OVER_TLS_SECOND_TAKEN) ? REP_ACK : REP_ERR_INVALID;
  return demands_tls () || has_tls () ? REP_ACK : REP_ERR_UNSUP;
}

/* What waits behind the option is plain text: thrown away, unless a bug
 * wants it to be taken for what came over TLS.
 */
static void
take_plain_text (struct client *client)
{
  uint8_t header[OPTION_HEADER_SIZE];

  client->has_plain_option =
    has_bug (BUG_OVER_TLS_PLAIN_KEPT) &&
    client_peek (client, header, sizeof header) == sizeof header &&
    get_be64 (header) == OPTION_MAGIC;
  if (client->has_plain_option)
    client_recv (client, header, sizeof header);
}

static void
handle_starttls (struct client *client, size_t len)
{
  const uint32_t type = judge_starttls (client, len);
  uint8_t byte;

  reply_option (client, OPT_STARTTLS, type, NULL, 0);
  if (has_bug (BUG_STARTTLS_CLOSES))
    client_leave ();
  if (type != REP_ACK || len > 0 || client->ssl)
    return;
  if (has_tls ()) {
    take_plain_text (client);
    begin_tls (client);
    if (client->has_plain_option)
      handle_list (client, 0);
    return;
  }
  /* This is where TLS would begin; what comes now is none. */
  do
    client_recv (client, &byte, 1);
  while (has_bug (BUG_TLS_NOISE_TAKEN));
  client_leave ();
}

static void
handle_unknown (struct client *client, uint32_t option)
{
  const bool is_taken = has_bug (BUG_UNKNOWN_OPTION_ACKED);

  reply_option (client, option, is_taken ? REP_ACK : REP_ERR_UNSUP, NULL, 0);
}

static void
handle_large (struct client *client, uint32_t option, uint32_t len)
{
  client_skip (client, len);
  reply_option (client, option,
                has_bug (BUG_LARGE_OPTION_ACKED) ? REP_ACK : REP_ERR_TOO_BIG,
                NULL, 0);
}

static bool
is_known (uint32_t option)
{
  return (option >= OPT_EXPORT_NAME && option <= OPT_LIST) ||
         (option >= OPT_STARTTLS && option <= OPT_SET_META_CONTEXT);
}

static bool
needs_tls_first (uint32_t option)
{
  if (option == OPT_STRUCTURED_REPLY && has_bug (BUG_TLS_STRUCTURED))
    return false;
  return demands_tls () && option != OPT_EXPORT_NAME &&
         option != OPT_ABORT && option != OPT_STARTTLS;
}

/* Returns true if transmission begins. */
static bool
handle_option (struct client *client, uint32_t option, const uint8_t *data,
               size_t len)
{
  if (needs_tls_first (option) ||
      (option == OPT_LIST && has_bug (BUG_LIST_DEMANDS_TLS))) {
    reply_option (client, option, REP_ERR_TLS_REQD, NULL, 0);
    return false;
  }
  switch (option) {
  case OPT_EXPORT_NAME: handle_export_name (client, data, len); return true;
  case OPT_ABORT: handle_abort (client, len);
  case OPT_LIST: handle_list (client, len); return false;
  case OPT_STARTTLS: handle_starttls (client, len); return false;
  case OPT_INFO:
  case OPT_GO: return handle_info (client, option, data, len);
  case OPT_STRUCTURED_REPLY: handle_structured (client, len); return false;
  case OPT_LIST_META_CONTEXT:
  case OPT_SET_META_CONTEXT:
    handle_meta (client, option, data, len);
    return false;
  default: handle_unknown (client, option); return false;
  }
}

void
negotiate (struct client *client)
{
  static uint8_t data[MAX_OPTION + 1];
  bool is_done = false;

  recv_client_flags (client);
  while (!is_done) {
    uint8_t header[OPTION_HEADER_SIZE];
    uint32_t option, len;

    client_recv (client, header, sizeof header);
    option = get_be32 (header + 8);
    len = get_be32 (header + 12);
    if (get_be64 (header) != OPTION_MAGIC && !has_bug (BUG_ANY_OPTION_MAGIC))
      client_leave ();
    if (len > MAX_SKIP)
      client_leave ();
    if (len > MAX_OPTION)
      handle_large (client, option, len);
    else {
      if (is_known (option) || !has_bug (BUG_UNKNOWN_OPTION_NOT_SKIPPED))
        client_recv (client, data, len);
      is_done = handle_option (client, option, data, len);
    }
  }
}
