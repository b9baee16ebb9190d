/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The steps of an ordinary client. */
#include <config.h>

#include <inttypes.h>

#include "conform/check.h"
#include "conform/data.h"
#include "conform/info.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/tls.h"
#include "conform/transmission.h"
#include "lib/base/bytes.h"

void
session_connect (struct session *session, const struct target *target)
{
  *session = (struct session){
    .target = target,
    .next_cookie = UINT64_C (0x636f6e666f726d00),
  };
  channel_open (&session->channel, target);
}

void
session_read_greeting (struct session *session)
{
  uint8_t greeting[GREETING_SIZE];

  channel_recv (&session->channel, greeting, sizeof greeting,
                "the greeting");
  session->handshake_flags = get_be16 (greeting + 16);
  trace ("<- greeting, handshake flags 0x%x", session->handshake_flags);
  if (get_be64 (greeting) != GREETING_MAGIC)
    fail ("expected the magic number NBDMAGIC, got 0x%016" PRIx64,
          get_be64 (greeting));
  if (get_be64 (greeting + 8) != OPTION_MAGIC)
    fail ("expected the magic number IHAVEOPT, got 0x%016" PRIx64,
          get_be64 (greeting + 8));
}

void
session_greet (struct session *session, uint32_t flags)
{
  uint8_t bytes[4];

  session_read_greeting (session);
  put_be32 (bytes, flags);
  trace ("-> client flags 0x%x", flags);
  channel_send (&session->channel, bytes, sizeof bytes);
}

void
session_secure (struct session *session)
{
  const struct target *target = session->target;

  skip_if_tls_is_missing (target);
  if (!target->uri->is_tls)
    return;
  send_option (session, OPT_STARTTLS, NULL, 0);
  expect_ack (session, OPT_STARTTLS);
  if (!channel_start_tls (&session->channel, target, 0))
    fail ("%s", tls_why (session->channel.tls));
}

/* The flags of an ordinary client. */
static uint32_t
usual_flags (const struct session *session)
{
  return FLAG_FIXED_NEWSTYLE |
         (session->handshake_flags & FLAG_NO_ZEROES);
}

struct session *
session_begin (const struct target *target)
{
  struct session *session = take_memory (sizeof *session);
  uint8_t bytes[4];

  session_connect (session, target);
  session_read_greeting (session);
  put_be32 (bytes, usual_flags (session));
  channel_send (&session->channel, bytes, sizeof bytes);
  session_secure (session);
  return session;
}

void
session_structure (struct session *session)
{
  if (!session->target->facts->has_structured)
    skip ("structured replies are not offered");
  send_option (session, OPT_STRUCTURED_REPLY, NULL, 0);
  expect_ack (session, OPT_STRUCTURED_REPLY);
  session->is_structured = true;
}

struct session *
session_begin_structured (const struct target *target)
{
  struct session *session = session_begin (target);

  session_structure (session);
  return session;
}

static void
enter_by_name (struct session *session)
{
  const struct uri *uri = session->target->uri;
  uint8_t bytes[EXPORT_NAME_REPLY_SIZE + EXPORT_NAME_ZEROES];
  const bool no_zeroes = session->handshake_flags & FLAG_NO_ZEROES;

  send_option (session, OPT_EXPORT_NAME, uri->export, uri->export_len);
  channel_recv (&session->channel, bytes,
                no_zeroes ? EXPORT_NAME_REPLY_SIZE : sizeof bytes,
                "the reply to NBD_OPT_EXPORT_NAME");
  session->size = get_be64 (bytes);
  session->flags = get_be16 (bytes + 8);
}

void
session_enter (struct session *session)
{
  const struct facts *facts = session->target->facts;
  struct info info;

  expect_export (session->target);
  if (facts->has_no_go)
    enter_by_name (session);
  else {
    ask_info (session, OPT_GO, &info);
    expect_info_ack (&info, OPT_GO);
    session->size = info.size;
    session->flags = info.flags;
  }
}

struct session *
session_open (const struct target *target)
{
  struct session *session = session_begin (target);

  session_enter (session);
  return session;
}

struct session *
session_open_structured (const struct target *target)
{
  struct session *session = session_begin_structured (target);

  session_enter (session);
  return session;
}

void
expect_new_client_served (const struct target *target, const char *after)
{
  struct session *session;

  trace ("-- a new client, after %s", after);
  session = session_open (target);
  if (session->size > 0)
    expect_read_succeeds (session, span_at (target, 0, 512));
  channel_close (&session->channel);
}
