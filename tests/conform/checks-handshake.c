/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The greeting, the client's flags, and the frame of options. */
#include <config.h>

#include <string.h>

#include "conform/check.h"
#include "conform/info.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

enum {
  NO_SUCH_OPTION = 0x7a5a3a1a,
  SMALL_DATA = 1000,    /* Bytes of data of an unknown option. */
  LARGE_DATA = 1 << 20, /* Likewise; may be taken for an attack. */
  MANY_OPTIONS = 16,
  ROUNDS = 8,
};

static const uint8_t zeroes[LARGE_DATA];

static void
greeting_is_newstyle (const struct target *target)
{
  struct session session;

  session_connect (&session, target);
  session_read_greeting (&session);
}

static void
fixed_newstyle_is_set (const struct target *target)
{
  struct session session;

  session_connect (&session, target);
  session_read_greeting (&session);
  expect (session.handshake_flags & FLAG_FIXED_NEWSTYLE,
          "expected NBD_FLAG_FIXED_NEWSTYLE, got handshake flags 0x%x",
          session.handshake_flags);
}

static void
no_other_handshake_flags (const struct target *target)
{
  const uint16_t known = FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES;
  struct session session;

  session_connect (&session, target);
  session_read_greeting (&session);
  expect ((session.handshake_flags & ~known) == 0,
          "expected no flags but 0x%x, got handshake flags 0x%x", known,
          session.handshake_flags);
}

/* FLAGS on top of those that are right. */
static void
expect_flags_dropped (const struct target *target, uint32_t flags)
{
  struct session session;

  session_connect (&session, target);
  session_greet (&session, FLAG_FIXED_NEWSTYLE | flags);
  send_option (&session, OPT_LIST, NULL, 0);
  channel_expect_end (&session.channel,
                      "the connection to be closed for client flags");
}

static void
unknown_client_flag_is_dropped (const struct target *target)
{
  expect_flags_dropped (target, 1 << 2);
  expect_flags_dropped (target, 1 << 15);
  expect_flags_dropped (target, UINT32_C (1) << 31);
}

static void
unmatched_client_flag_is_dropped (const struct target *target)
{
  struct session session;

  session_connect (&session, target);
  session_read_greeting (&session);
  if (session.handshake_flags & FLAG_NO_ZEROES)
    skip ("the server advertises NBD_FLAG_NO_ZEROES");
  channel_close (&session.channel);
  expect_flags_dropped (target, FLAG_NO_ZEROES);
}

static void
expect_unsupported (struct session *session, uint32_t option, size_t len)
{
  struct option_reply reply;

  send_option (session, option, zeroes, len);
  recv_option_reply (session, option, &reply);
  expect (reply.type == REP_ERR_UNSUP,
          "expected NBD_REP_ERR_UNSUP to option 0x%x, got %s", option,
          reply_name (reply.type));
  expect_string ("the message of an error reply", reply.data, reply.len);
}

static void
unknown_option_is_unsupported (const struct target *target)
{
  struct session *session = session_begin (target);

  expect_unsupported (session, NO_SUCH_OPTION, 0);
  expect_unsupported (session, 0, 0);
  expect_unsupported (session, OPT_PEEK_EXPORT, 0);
  expect_unsupported (session, UINT32_MAX, 0);
  expect_options_go_on (session, "unknown options");
}

static void
unknown_option_is_skipped_whole (const struct target *target)
{
  struct session *session = session_begin (target);

  expect_unsupported (session, NO_SUCH_OPTION, 1);
  expect_unsupported (session, NO_SUCH_OPTION, SMALL_DATA);
  expect_options_go_on (session, "an unknown option with data");
}

/* Data that looks like an option of its own. */
static void
option_data_is_not_parsed (const struct target *target)
{
  struct session *session = session_begin (target);
  uint8_t inner[2 * OPTION_HEADER_SIZE] = { 0 };
  struct option_reply reply;

  for (unsigned i = 0; i < 2; i++) {
    put_be64 (inner + i * OPTION_HEADER_SIZE, OPTION_MAGIC);
    put_be32 (inner + i * OPTION_HEADER_SIZE + 8, OPT_ABORT);
  }
  send_option (session, NO_SUCH_OPTION, inner, sizeof inner);
  recv_option_reply (session, NO_SUCH_OPTION, &reply);
  expect_options_go_on (session, "an option in an option's data");
}

static void
large_option_is_refused_or_dropped (const struct target *target)
{
  struct session *session = session_begin (target);
  struct option_reply reply;

  send_option (session, NO_SUCH_OPTION, zeroes, LARGE_DATA);
  if (recv_option_reply_or_end (session, NO_SUCH_OPTION, &reply)) {
    expect (is_error_reply (reply.type), "expected an error, got %s",
            reply_name (reply.type));
    expect_options_go_on (session, "a large option");
  }
  expect_new_client_served (target, "a large option");
}

static void
wrong_option_magic_is_no_option (const struct target *target)
{
  struct session *session = session_begin (target);
  struct option_reply reply;

  send_option_header (session, OPTION_MAGIC ^ 1, OPT_ABORT, 0);
  if (recv_option_reply_or_end (session, OPT_ABORT, &reply))
    expect (is_error_reply (reply.type),
            "expected an error or the end of the connection, got %s",
            reply_name (reply.type));
}

static void
several_options_are_answered (const struct target *target)
{
  struct session *session = session_begin (target);

  for (unsigned i = 0; i < MANY_OPTIONS; i++)
    expect_unsupported (session, NO_SUCH_OPTION + i, i);
  session_enter (session);
}

/* ---- ABORT ---- */

static void
abort_is_acknowledged (const struct target *target)
{
  struct session *session = session_begin (target);

  send_option (session, OPT_ABORT, NULL, 0);
  expect_ack (session, OPT_ABORT);
}

static void
abort_with_data_is_acknowledged (const struct target *target)
{
  struct session *session = session_begin (target);
  struct option_reply reply;

  send_option (session, OPT_ABORT, zeroes, 4);
  if (!recv_option_reply_or_end (session, OPT_ABORT, &reply))
    should (false, "expected NBD_REP_ACK, got the end of the connection");
  else
    should (reply.type == REP_ACK, "expected NBD_REP_ACK, got %s",
            reply_name (reply.type));
}

/* Several times, for it takes a moment until the server notices. */
static void
abort_without_waiting_is_harmless (const struct target *target)
{
  for (unsigned i = 0; i < ROUNDS; i++) {
    struct session *session = session_begin (target);

    send_option (session, OPT_ABORT, NULL, 0);
    channel_close (&session->channel);
    expect_new_client_served (target, "an ABORT that did not wait");
  }
}

/* ---- Pieces ---- */

static void
handshake_by_single_bytes (const struct target *target)
{
  const struct uri *uri = target->uri;
  struct option_data *data = take_memory (sizeof *data);
  struct session session;
  struct info info;

  skip_if_tls_is_missing (target);
  if (uri->is_tls)
    skip ("TLS has its own packets");
  session_connect (&session, target);
  session_read_greeting (&session);
  put_u32 (data, FLAG_FIXED_NEWSTYLE);
  put_u32 (data, (uint32_t) (OPTION_MAGIC >> 32));
  put_u32 (data, (uint32_t) OPTION_MAGIC);
  put_u32 (data, OPT_INFO);
  put_u32 (data, (uint32_t) uri->export_len + 6);
  put_u32 (data, (uint32_t) uri->export_len);
  put_bytes (data, uri->export, uri->export_len);
  put_u16 (data, 0);
  channel_send_slowly (&session.channel, data->bytes, data->len);
  recv_info (&session, OPT_INFO, &info);
  expect (!info.is_closed, "expected a reply to NBD_OPT_INFO, got the end "
                           "of the connection");
}

static void
flags_and_option_in_one_packet (const struct target *target)
{
  struct session session;
  uint8_t packet[4 + OPTION_HEADER_SIZE];
  struct option_reply reply;

  session_connect (&session, target);
  session_read_greeting (&session);
  put_be32 (packet, FLAG_FIXED_NEWSTYLE);
  put_be64 (packet + 4, OPTION_MAGIC);
  put_be32 (packet + 12, NO_SUCH_OPTION);
  put_be32 (packet + 16, 0);
  channel_send (&session.channel, packet, sizeof packet);
  recv_option_reply (&session, NO_SUCH_OPTION, &reply);
}

/* Leave at every point of the handshake. */
static void
leave_early (const struct target *target)
{
  struct session session;

  session_connect (&session, target);
  channel_close (&session.channel);
  session_connect (&session, target);
  session_read_greeting (&session);
  channel_send (&session.channel, zeroes, 2);
  channel_close (&session.channel);
  session_connect (&session, target);
  session_greet (&session, FLAG_FIXED_NEWSTYLE);
  channel_send (&session.channel, "IHAVEOPT", 8);
  channel_close (&session.channel);
  session_connect (&session, target);
  session_greet (&session, FLAG_FIXED_NEWSTYLE);
  send_option_header (&session, OPTION_MAGIC, OPT_GO, SMALL_DATA);
  channel_send (&session.channel, zeroes, SMALL_DATA / 2);
  channel_close (&session.channel);
}

static void
lost_clients_are_harmless (const struct target *target)
{
  skip_if_tls_is_missing (target);
  for (unsigned i = 0; i < ROUNDS; i++) {
    leave_early (target);
    expect_new_client_served (target, "clients that went away");
  }
}

static void
silent_client_blocks_nobody (const struct target *target)
{
  struct session silent, half;

  skip_if_tls_is_missing (target);
  skip_if_one_client (target);
  session_connect (&silent, target);
  session_connect (&half, target);
  session_greet (&half, FLAG_FIXED_NEWSTYLE);
  send_option_header (&half, OPTION_MAGIC, OPT_INFO, SMALL_DATA);
  expect_new_client_served (target, "clients that say nothing");
}

/* clang-format off */
const struct check handshake_checks[] = {
  { "handshake/the-greeting-is-newstyle", LEVEL_MUST,
    "Newstyle negotiation",
    "S: 64 bits, `0x4e42444d41474943` (ASCII '`NBDMAGIC`') (as in the old "
    "style handshake) S: 64 bits, `0x49484156454F5054` (ASCII '`IHAVEOPT`')",
    greeting_is_newstyle },
  { "handshake/fixed-newstyle-is-set", LEVEL_MUST, "Handshake flags",
    "bit 0, `NBD_FLAG_FIXED_NEWSTYLE`; MUST be set by servers that support "
    "the fixed newstyle protocol",
    fixed_newstyle_is_set },
  { "handshake/no-other-handshake-flags", LEVEL_MUST, "Handshake flags",
    "The server MUST NOT set any other flags",
    no_other_handshake_flags },
  { "handshake/an-unknown-client-flag-drops-the-connection", LEVEL_MUST,
    "Client flags",
    "the server MUST drop the TCP connection if the client sets an unknown "
    "flag",
    unknown_client_flag_is_dropped },
  { "handshake/an-unmatched-client-flag-drops-the-connection", LEVEL_MUST,
    "Client flags",
    "the server MUST drop the TCP connection if the client sets [...] a "
    "flag that does not match something advertised by the server",
    unmatched_client_flag_is_dropped },
  { "handshake/an-unknown-option-is-unsupported", LEVEL_MUST, "Baseline",
    "Servers that receive messages which they do not implement MUST reply "
    "to them with `NBD_REP_ERR_UNSUP`",
    unknown_option_is_unsupported },
  { "handshake/an-unknown-option-is-skipped-whole", LEVEL_MUST, "Baseline",
    "and MUST NOT fail to parse the next message received",
    unknown_option_is_skipped_whole },
  { "handshake/the-data-of-an-option-is-not-parsed", LEVEL_MUST,
    "Newstyle negotiation",
    "The presence of the option length in every option allows the server "
    "to skip any options presented by the client that it does not "
    "understand.",
    option_data_is_not_parsed },
  { "handshake/a-large-option-is-refused-or-dropped", LEVEL_MUST,
    "Termination of the session during option haggling",
    "it MUST [...] simply error inbound options until the client gets the "
    "hint that it is unwelcome, except that if a server believes a client's "
    "behaviour constitutes a denial of service, it MAY initiate a hard "
    "disconnect",
    large_option_is_refused_or_dropped },
  { "handshake/a-wrong-magic-is-no-option", LEVEL_MUST,
    "Newstyle negotiation",
    "C: 64 bits, `0x49484156454F5054` (ASCII '`IHAVEOPT`') (note same "
    "newstyle handshake's magic number)",
    wrong_option_magic_is_no_option },
  { "handshake/several-options-are-answered", LEVEL_MUST,
    "Fixed newstyle negotiation",
    "The server will reply to any option apart from `NBD_OPT_EXPORT_NAME` "
    "with reply packets",
    several_options_are_answered },
  { "handshake/abort-is-acknowledged", LEVEL_MUST, "Option types",
    "`NBD_OPT_ABORT`: The client desires to abort the negotiation and "
    "terminate the session. The server MUST reply with `NBD_REP_ACK`.",
    abort_is_acknowledged },
  { "handshake/abort-with-data-is-acknowledged", LEVEL_SHOULD,
    "Option types",
    "`NBD_OPT_ABORT`: a server SHOULD ignore any data sent by the client "
    "rather than rejecting the request as invalid",
    abort_with_data_is_acknowledged },
  { "handshake/abort-without-waiting-is-harmless", LEVEL_SHOULD,
    "Option types",
    "the server SHOULD gracefully handle the client sending an "
    "`NBD_OPT_ABORT` and closing the connection without waiting for a reply",
    abort_without_waiting_is_harmless },
  { "handshake/it-may-arrive-byte-by-byte", LEVEL_ROBUST,
    "Newstyle negotiation",
    "C: any data needed for the chosen option, of length as specified above.",
    handshake_by_single_bytes },
  { "handshake/flags-and-option-may-share-a-packet", LEVEL_ROBUST,
    "Newstyle negotiation",
    "What follows is a repeating group of options.",
    flags_and_option_in_one_packet },
  { "handshake/lost-clients-are-harmless", LEVEL_ROBUST,
    "Termination of the session during option haggling",
    "The client or the server can disconnect the TCP session without "
    "activity at the NBD protocol level.",
    lost_clients_are_harmless },
  { "handshake/silent-clients-block-nobody", LEVEL_ROBUST,
    "Termination of the session during option haggling",
    "A party MUST NOT initiate a hard disconnect save where set out in this "
    "section.",
    silent_client_blocks_nobody },
  { 0 },
};
/* clang-format on */
