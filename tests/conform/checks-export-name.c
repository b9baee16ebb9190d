/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* NBD_OPT_EXPORT_NAME, the older way into transmission.
 *
 *   S: u64 size, u16 flags [124 zeroes]
 *
 * How long the answer was, shows by the reply to the next request: what is
 * missing or too much shifts its magic number.
 */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "conform/check.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/bytes.h"

#define REFUSED "the server refuses NBD_OPT_EXPORT_NAME, as it may"

static void
begin_with_flags (struct session *session, const struct target *target,
                  uint32_t flags)
{
  skip_if_tls_is_missing (target);
  session_connect (session, target);
  session_greet (session, flags);
  session_secure (session);
}

/* Receive the answer, which has LEN zeroes.  Returns false if the server
 * closes the connection instead, as it may for reasons of its own.
 */
static bool
recv_answer (struct session *session, size_t len)
{
  uint8_t bytes[EXPORT_NAME_REPLY_SIZE + EXPORT_NAME_ZEROES];

  if (!channel_recv_or_end (&session->channel, bytes,
                            EXPORT_NAME_REPLY_SIZE + len,
                            "the reply to NBD_OPT_EXPORT_NAME"))
    return false;
  session->size = get_be64 (bytes);
  session->flags = get_be16 (bytes + 8);
  for (size_t i = 0; i < len; i++)
    expect_u64 ("the reserved bytes", 0, bytes[EXPORT_NAME_REPLY_SIZE + i]);
  return true;
}

static void
send_own_name (struct session *session)
{
  const struct uri *uri = session->target->uri;

  expect_export (session->target);
  send_option (session, OPT_EXPORT_NAME, uri->export, uri->export_len);
}

static void
zeroes_are_sent (const struct target *target)
{
  struct session session;

  begin_with_flags (&session, target, FLAG_FIXED_NEWSTYLE);
  send_own_name (&session);
  if (!recv_answer (&session, EXPORT_NAME_ZEROES))
    skip (REFUSED);
  expect_requests_go_on (&session, "NBD_OPT_EXPORT_NAME");
}

static void
zeroes_are_not_sent (const struct target *target)
{
  struct session session;

  skip_if_tls_is_missing (target);
  session_connect (&session, target);
  session_read_greeting (&session);
  if (!(session.handshake_flags & FLAG_NO_ZEROES))
    skip ("the server does not advertise NBD_FLAG_NO_ZEROES");
  channel_close (&session.channel);
  begin_with_flags (&session, target, FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
  send_own_name (&session);
  if (!recv_answer (&session, 0))
    skip (REFUSED);
  expect_requests_go_on (&session, "NBD_OPT_EXPORT_NAME");
}

static void
same_as_go (const struct target *target)
{
  const struct facts *facts = target->facts;
  struct session session;

  expect_export (target);
  if (facts->has_no_go)
    skip ("the server has no NBD_OPT_GO");
  begin_with_flags (&session, target, FLAG_FIXED_NEWSTYLE);
  send_own_name (&session);
  if (!recv_answer (&session, EXPORT_NAME_ZEROES))
    skip (REFUSED);
  expect_u64 ("size, by NBD_OPT_GO and by NBD_OPT_EXPORT_NAME", facts->size,
              session.size);
  expect_u64 ("flags, by NBD_OPT_GO and by NBD_OPT_EXPORT_NAME",
              facts->flags, session.flags);
}

static void
unknown_name_ends_the_session (const struct target *target)
{
  struct session session;

  expect_export (target);
  if (target->facts->serves_any_name)
    skip ("the server has an export of every name");
  begin_with_flags (&session, target, FLAG_FIXED_NEWSTYLE);
  send_option (&session, OPT_EXPORT_NAME, NO_SUCH_EXPORT,
               strlen (NO_SUCH_EXPORT));
  channel_expect_end (&session.channel,
                      "the connection to be closed for an unknown export");
}

static void
overlong_name_ends_the_session (const struct target *target)
{
  uint8_t *name = take_memory (MAX_STRING + 1);
  struct session session;

  memset (name, 'x', MAX_STRING + 1);
  begin_with_flags (&session, target, FLAG_FIXED_NEWSTYLE);
  send_option (&session, OPT_EXPORT_NAME, name, MAX_STRING + 1);
  channel_expect_end (&session.channel,
                      "the connection to be closed for a name that is too "
                      "long");
  expect_new_client_served (target, "a name that is too long");
}

static void
client_of_plain_newstyle (const struct target *target)
{
  struct session session;

  if (target->uri->is_tls)
    skip ("TLS needs fixed newstyle");
  begin_with_flags (&session, target, 0);
  send_own_name (&session);
  if (recv_answer (&session, EXPORT_NAME_ZEROES))
    expect_requests_go_on (&session, "NBD_OPT_EXPORT_NAME");
  else
    should (false, "expected a reply to NBD_OPT_EXPORT_NAME, got the end of "
                   "the connection");
}

/* clang-format off */
const struct check export_name_checks[] = {
  { "export-name/124-zeroes-follow", LEVEL_MUST, "Newstyle negotiation",
    "S: 64 bits, size of the export in bytes (unsigned) S: 16 bits, "
    "transmission flags S: 124 bytes, zeroes (reserved) (unless "
    "`NBD_FLAG_C_NO_ZEROES` was negotiated by the client)",
    zeroes_are_sent },
  { "export-name/no-zeroes-follow-if-so-negotiated", LEVEL_MUST,
    "Client flags",
    "If set, the server MUST NOT send the 124 bytes of zeroes when the "
    "client ends negotiation with `NBD_OPT_EXPORT_NAME`.",
    zeroes_are_not_sent },
  { "export-name/it-says-the-same-as-go", LEVEL_MUST, "Option reply types",
    "`NBD_INFO_EXPORT` (0) [...] Describes the same information that is "
    "sent in response to the older `NBD_OPT_EXPORT_NAME`",
    same_as_go },
  { "export-name/an-unknown-name-ends-the-session", LEVEL_MUST,
    "Option types",
    "If the chosen export does not exist or requirements for the chosen "
    "export are not met [...], the server MUST terminate the session.",
    unknown_name_ends_the_session },
  { "export-name/an-overlong-name-ends-the-session", LEVEL_MUST,
    "Conventions",
    "that string [...] SHOULD be no longer than 256 bytes and MUST be no "
    "longer than 4096 bytes. This applies to export names",
    overlong_name_ends_the_session },
  { "export-name/it-serves-clients-of-plain-newstyle", LEVEL_SHOULD,
    "Maximum interoperability",
    "Clients or servers that desire interoperability with older "
    "implementations SHOULD implement the `NBD_OPT_EXPORT_NAME` message",
    client_of_plain_newstyle },
  { 0 },
};
/* clang-format on */
