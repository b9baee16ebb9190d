/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* NBD_OPT_STARTTLS: a server without TLS, one that offers it, one that
 * demands it.  These checks begin in plain text, whatever the URI says.
 */
#include <config.h>

#include <string.h>

#include <openssl/ssl.h>

#include "conform/check.h"
#include "conform/info.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/tls.h"
#include "conform/transmission.h"
#include "lib/base/range.h"

enum {
  NO_SUCH_OPTION = 0x7a5a3a1a,
};

static void
begin_plain (struct session *session, const struct target *target)
{
  session_connect (session, target);
  session_greet (session, FLAG_FIXED_NEWSTYLE);
}

/* Up to the acknowledgement of STARTTLS. */
static void
begin_starttls (struct session *session, const struct target *target)
{
  if (target->facts->tls == TLS_NONE)
    skip ("the server does not offer TLS");
  begin_plain (session, target);
  send_option (session, OPT_STARTTLS, NULL, 0);
  expect_ack (session, OPT_STARTTLS);
}

/* Only with what the URI says can a client get through TLS. */
static void
begin_tls (struct session *session, const struct target *target,
           int max_version)
{
  if (!target->uri->is_tls)
    skip ("the URI is not of the nbds form");
  begin_starttls (session, target);
  if (!channel_start_tls (&session->channel, target, max_version))
    fail ("expected a TLS handshake, got: %s",
          tls_why (session->channel.tls));
}

/* ---- Any server ---- */

static bool
may_refuse_starttls (uint32_t type)
{
  return type == REP_ERR_POLICY || type == REP_ERR_UNSUP ||
         type == REP_ERR_PLATFORM || type == REP_ERR_SHUTDOWN;
}

static void
starttls_is_answered (const struct target *target)
{
  struct session session;
  struct option_reply reply;

  begin_plain (&session, target);
  send_option (&session, OPT_STARTTLS, NULL, 0);
  recv_option_reply (&session, OPT_STARTTLS, &reply);
  if (reply.type == REP_ACK) {
    expect_u64 ("length of NBD_REP_ACK", 0, reply.len);
    return;
  }
  expect (may_refuse_starttls (reply.type),
          "expected NBD_REP_ACK, NBD_REP_ERR_POLICY or NBD_REP_ERR_UNSUP, "
          "got %s",
          reply_name (reply.type));
  expect_string ("the message of an error reply", reply.data, reply.len);
}

static void
refused_starttls_is_no_end (const struct target *target)
{
  struct session session;
  struct option_reply reply;

  if (target->facts->tls != TLS_NONE)
    skip ("the server offers TLS");
  begin_plain (&session, target);
  send_option (&session, OPT_STARTTLS, NULL, 0);
  recv_option_reply (&session, OPT_STARTTLS, &reply);
  expect_options_go_on (&session, "an NBD_OPT_STARTTLS that was refused");
}

static void
starttls_with_data_is_answered (const struct target *target)
{
  struct session session;
  struct option_reply reply;

  begin_plain (&session, target);
  send_option (&session, OPT_STARTTLS, "data", 4);
  if (!recv_option_reply_or_end (&session, OPT_STARTTLS, &reply))
    return;
  should (is_error_reply (reply.type), "expected an error, got %s",
          reply_name (reply.type));
  if (is_error_reply (reply.type) && !target->facts->needs_tls)
    expect_options_go_on (&session, "an NBD_OPT_STARTTLS with data");
}

/* ---- Without TLS ---- */

static void
notls_never_demands_it (const struct target *target)
{
  static const uint32_t options[] = { OPT_LIST, OPT_STRUCTURED_REPLY,
                                      NO_SUCH_OPTION };
  struct session session;
  struct info info;

  if (target->facts->tls != TLS_NONE)
    skip ("the server offers TLS");
  begin_plain (&session, target);
  for (size_t i = 0; i < ARRAY_LEN (options); i++) {
    struct option_reply reply;

    send_option (&session, options[i], NULL, 0);
    do
      recv_option_reply (&session, options[i], &reply);
    while (reply.type == REP_SERVER);
    expect (reply.type != REP_ERR_TLS_REQD,
            "expected no NBD_REP_ERR_TLS_REQD of a server without TLS, got "
            "it to %s",
            option_name (options[i]));
  }
  ask_info (&session, OPT_INFO, &info);
  expect (info.is_closed || info.final != REP_ERR_TLS_REQD,
          "expected no NBD_REP_ERR_TLS_REQD of a server without TLS, got it "
          "to NBD_OPT_INFO");
}

/* ---- Demanded ---- */

static void
skip_unless_forced (const struct target *target)
{
  if (target->facts->tls != TLS_FORCED)
    skip ("the server does not demand TLS before other options");
}

static void
other_options_need_tls (const struct target *target)
{
  static const uint32_t options[] = {
    OPT_LIST,
    OPT_STRUCTURED_REPLY,
    NO_SUCH_OPTION,
  };
  static const uint32_t info_options[] = { OPT_INFO, OPT_GO };
  struct session session;

  skip_unless_forced (target);
  begin_plain (&session, target);
  for (size_t i = 0; i < ARRAY_LEN (options); i++) {
    struct option_reply reply;

    send_option (&session, options[i], NULL, 0);
    recv_option_reply (&session, options[i], &reply);
    expect (reply.type == REP_ERR_TLS_REQD,
            "%s: expected NBD_REP_ERR_TLS_REQD, got %s",
            option_name (options[i]), reply_name (reply.type));
  }
  for (size_t i = 0; i < ARRAY_LEN (info_options); i++) {
    struct info info;

    ask_info (&session, info_options[i], &info);
    expect (!info.is_closed && info.final == REP_ERR_TLS_REQD,
            "%s: expected NBD_REP_ERR_TLS_REQD, got %s",
            option_name (info_options[i]),
            info.is_closed ? "the end of the connection"
                           : reply_name (info.final));
    expect_u64 ("NBD_REP_INFO before NBD_REP_ERR_TLS_REQD", 0,
                info.nr_items);
  }
}

static void
export_name_needs_tls (const struct target *target)
{
  const struct uri *uri = target->uri;
  struct session session;

  skip_unless_forced (target);
  begin_plain (&session, target);
  send_option (&session, OPT_EXPORT_NAME, uri->export, uri->export_len);
  channel_expect_end (&session.channel,
                      "the connection to be closed, for TLS is demanded");
}

static void
abort_needs_no_tls (const struct target *target)
{
  struct session session;

  skip_unless_forced (target);
  begin_plain (&session, target);
  send_option (&session, OPT_ABORT, NULL, 0);
  expect_ack (&session, OPT_ABORT);
}

/* ---- Offered or demanded ---- */

static void
failed_handshake_ends_the_session (const struct target *target)
{
  static const char noise[] = "this is no TLS handshake, nor will it be";
  struct session session;

  begin_starttls (&session, target);
  channel_send (&session.channel, noise, sizeof noise);
  channel_drain (&session.channel,
                 "the connection to be closed for a failed TLS handshake");
  expect_new_client_served (target, "a failed TLS handshake");
}

/* An option in plain text right behind STARTTLS must not be kept until TLS
 * has begun: it would be answered then, as if it had come over TLS.
 */
static void
plain_text_is_not_taken_over (const struct target *target)
{
  uint8_t packet[2 * OPTION_HEADER_SIZE];
  struct session session;
  struct option_reply reply;
  struct info info;

  if (target->facts->tls == TLS_NONE)
    skip ("the server does not offer TLS");
  begin_plain (&session, target);
  memset (packet, 0, sizeof packet);
  memcpy (packet, "IHAVEOPT\0\0\0\5", 12);
  memcpy (packet + OPTION_HEADER_SIZE, "IHAVEOPT\0\0\0\3", 12);
  channel_send (&session.channel, packet, sizeof packet);
  if (!recv_option_reply_or_end (&session, OPT_STARTTLS, &reply) ||
      reply.type != REP_ACK ||
      !channel_start_tls (&session.channel, target, 0))
    return;
  ask_info (&session, OPT_INFO, &info);
}

/* ---- Over TLS ---- */

static void
everything_goes_over_tls (const struct target *target)
{
  struct session session;

  begin_tls (&session, target, 0);
  expect_options_go_on (&session, "the TLS handshake");
  session_enter (&session);
  if (session.size > 0)
    expect_requests_go_on (&session, "NBD_OPT_GO over TLS");
}

static void
version_1_2_is_supported (const struct target *target)
{
  struct session session;

  begin_tls (&session, target, TLS1_2_VERSION);
  expect_options_go_on (&session, "the TLS handshake");
}

static void
second_starttls_is_invalid (const struct target *target)
{
  struct session session;
  struct option_reply reply;

  begin_tls (&session, target, 0);
  send_option (&session, OPT_STARTTLS, NULL, 0);
  recv_option_reply (&session, OPT_STARTTLS, &reply);
  expect (reply.type == REP_ERR_INVALID,
          "expected NBD_REP_ERR_INVALID, got %s", reply_name (reply.type));
}

static void
state_is_forgotten (const struct target *target)
{
  struct session session;
  struct option_reply reply;

  if (!target->uri->is_tls)
    skip ("the URI is not of the nbds form");
  if (target->facts->tls == TLS_FORCED)
    skip ("the server demands TLS before other options");
  begin_plain (&session, target);
  send_option (&session, OPT_STRUCTURED_REPLY, NULL, 0);
  recv_option_reply (&session, OPT_STRUCTURED_REPLY, &reply);
  if (reply.type != REP_ACK)
    skip ("structured replies are not offered without TLS");
  send_option (&session, OPT_STARTTLS, NULL, 0);
  expect_ack (&session, OPT_STARTTLS);
  if (!channel_start_tls (&session.channel, target, 0))
    fail ("expected a TLS handshake, got: %s",
          tls_why (session.channel.tls));
  session_enter (&session);
  expect (!(session.flags & EXPORT_SEND_DF),
          "expected NBD_FLAG_SEND_DF clear, for structured replies were "
          "requested before TLS, got transmission flags 0x%x",
          session.flags);
  expect_requests_go_on (&session, "NBD_OPT_STRUCTURED_REPLY before TLS");
}

static void
disc_closes_tls (const struct target *target)
{
  struct session session;
  const struct request disc = { .type = CMD_DISC };
  uint8_t wire[REQUEST_SIZE];

  begin_tls (&session, target, 0);
  session_enter (&session);
  encode_request (&disc, wire);
  channel_send (&session.channel, wire, sizeof wire);
  channel_expect_end (&session.channel,
                      "the connection to be closed after NBD_CMD_DISC");
  expect (tls_was_closed (session.channel.tls),
          "expected TLS to be closed before the connection, got the end of "
          "the connection alone");
}

/* clang-format off */
const struct check tls_checks[] = {
  { "tls/starttls-is-answered", LEVEL_MUST, "Option types",
    "`NBD_OPT_STARTTLS`: The server MUST either reply with `NBD_REP_ACK` "
    "after which point the connection is upgraded to TLS, or an error reply "
    "explicitly permitted by this document",
    starttls_is_answered },
  { "tls/a-refused-starttls-is-not-the-end", LEVEL_MUST,
    "Client-side requirements",
    "If it receives `NBD_REP_ERR_UNSUP`, `NBD_REP_ERR_POLICY` or any other "
    "error in response, it indicates that the server cannot or will not "
    "upgrade the session to TLS, and therefore the client MUST either "
    "continue the session without TLS, or terminate the session.",
    refused_starttls_is_no_end },
  { "tls/starttls-with-data-is-refused", LEVEL_SHOULD, "Option types",
    "an error reply explicitly permitted by this document (for example, "
    "`NBD_REP_ERR_INVALID` if the client included data)",
    starttls_with_data_is_answered },
  { "tls/a-server-without-tls-never-demands-it", LEVEL_MUST, "NOTLS mode",
    "The server MUST NOT respond to any option request with "
    "`NBD_REP_ERR_TLS_REQD`.",
    notls_never_demands_it },
  { "tls/demanded-for-other-options", LEVEL_MUST, "FORCEDTLS mode",
    "If the server receives any other option, including `NBD_OPT_INFO` and "
    "unsupported options, it MUST reply with `NBD_REP_ERR_TLS_REQD` if TLS "
    "has not been initiated",
    other_options_need_tls },
  { "tls/demanded-for-export-name", LEVEL_MUST, "FORCEDTLS mode",
    "If the server receives a request to enter transmission mode via "
    "`NBD_OPT_EXPORT_NAME` when TLS has not been initiated, then as this "
    "request cannot error, it MUST terminate the session.",
    export_name_needs_tls },
  { "tls/not-demanded-for-abort", LEVEL_MUST, "Server-side requirements",
    "forces the client to upgrade by erroring any NBD options other than "
    "`NBD_OPT_STARTTLS` or `NBD_OPT_ABORT` with `NBD_REP_ERR_TLS_REQD`",
    abort_needs_no_tls },
  { "tls/a-failed-handshake-ends-the-session", LEVEL_MUST,
    "FORCEDTLS mode",
    "If the handshake is unsuccessful (for instance the client's "
    "certificate does not match) the server MUST terminate the session",
    failed_handshake_ends_the_session },
  { "tls/plain-text-is-not-taken-over", LEVEL_MUST, "FORCEDTLS mode",
    "After an `NBD_REP_ACK` reply has been sent, the server MUST be "
    "prepared for a TLS handshake, and all further data MUST be sent and "
    "received over TLS.",
    plain_text_is_not_taken_over },
  { "tls/everything-goes-over-it", LEVEL_MUST, "FORCEDTLS mode",
    "all further data MUST be sent and received over TLS",
    everything_goes_over_tls },
  { "tls/version-1.2-is-supported", LEVEL_MUST, "TLS versions",
    "NBD implementations supporting TLS MUST support TLS version 1.2",
    version_1_2_is_supported },
  { "tls/a-second-starttls-is-invalid", LEVEL_MUST, "FORCEDTLS mode",
    "If the server receives `NBD_OPT_STARTTLS` when TLS has already been "
    "negotiated, it it MUST reply with `NBD_REP_ERR_INVALID`.",
    second_starttls_is_invalid },
  { "tls/earlier-state-is-forgotten", LEVEL_MUST, "Option types",
    "When this command succeeds, the server MUST NOT preserve any "
    "negotiation state (such as a request for `NBD_OPT_STRUCTURED_REPLY`, "
    "or metadata contexts from `NBD_OPT_SET_META_CONTEXT`) issued before "
    "this command.",
    state_is_forgotten },
  { "tls/disc-closes-it-first", LEVEL_MUST,
    "Terminating the transmission phase",
    "The client sends `NBD_CMD_DISC` whereupon the server MUST close down "
    "the TLS session (if one is running) and then close the TCP connection.",
    disc_closes_tls },
  { 0 },
};
/* clang-format on */
