/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* NBD_OPT_INFO and NBD_OPT_GO: what names the client may ask for, and
 * options that are malformed.
 */
#include <config.h>

#include <string.h>

#include "conform/check.h"
#include "conform/info.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/range.h"

static bool
may_refuse_unknown_with (const struct target *target, uint32_t type)
{
  switch (type) {
  case REP_ERR_UNKNOWN:
  case REP_ERR_POLICY:
  case REP_ERR_SHUTDOWN: return true;
  case REP_ERR_TLS_REQD:
    return target->facts->tls != TLS_NONE && !target->uri->is_tls;
  default: return false;
  }
}

static void
unknown_export_is_unknown (const struct target *target)
{
  static const uint32_t options[] = { OPT_INFO, OPT_GO };
  struct session *session = begin_info (target);

  if (target->facts->serves_any_name)
    skip ("the server has an export of every name");
  for (size_t i = 0; i < ARRAY_LEN (options); i++) {
    struct info info;

    ask_info_of (session, options[i], NO_SUCH_EXPORT,
                 strlen (NO_SUCH_EXPORT), NULL, 0, &info);
    expect (!info.is_closed,
            "expected NBD_REP_ERR_UNKNOWN, got the end of the connection");
    expect (may_refuse_unknown_with (target, info.final),
            "expected NBD_REP_ERR_UNKNOWN to %s, got %s",
            option_name (options[i]), reply_name (info.final));
    should (info.nr_items == 0, "expected no NBD_REP_INFO, got %u",
            info.nr_items);
  }
  session_enter (session);
}

/* A name that should not, or must not, be sent: the server answers with
 * whatever it likes, or closes; if it answers, it goes on.
 */
static void
expect_name_is_survived (const struct target *target, const void *name,
                         size_t len, bool may_be_found, const char *what)
{
  struct session *session = begin_info (target);
  struct info info;

  ask_info_of (session, OPT_INFO, name, len, NULL, 0, &info);
  if (!info.is_closed) {
    expect (may_be_found || info.final != REP_ACK,
            "%s: expected an error, got NBD_REP_ACK", what);
    expect_options_go_on (session, what);
  }
  expect_new_client_served (target, what);
}

static void
longest_name_is_answered (const struct target *target)
{
  struct session *session = begin_info (target);
  uint8_t *name = take_memory (MAX_STRING);
  struct info info;

  memset (name, 'x', MAX_STRING);
  ask_info_of (session, OPT_INFO, name, MAX_STRING, NULL, 0, &info);
  expect (!info.is_closed, "a name of %d bytes: expected an answer, got the "
                           "end of the connection",
          MAX_STRING);
  expect_options_go_on (session, "the longest name");
}

static void
overlong_name_is_refused (const struct target *target)
{
  uint8_t *name = take_memory (MAX_STRING + 1);

  memset (name, 'x', MAX_STRING + 1);
  expect_name_is_survived (target, name, MAX_STRING + 1, false,
                           "a name of 4097 bytes");
}

static void
odd_names_are_survived (const struct target *target)
{
  static const char no_text[] = "caf\xe9\xff\xfe";

  expect_name_is_survived (target, "a\0b", 3, true, "a name with a NUL");
  expect_name_is_survived (target, no_text, sizeof no_text - 1, true,
                           "a name that is no UTF-8");
}

static void
default_export_may_be_asked_for (const struct target *target)
{
  struct session *session = begin_info (target);
  struct info info;

  ask_info_of (session, OPT_INFO, "", 0, NULL, 0, &info);
  expect (!info.is_closed,
          "the empty name: expected an answer, got the end of the "
          "connection");
  if (info.final == REP_ACK)
    expect_info_ack (&info, OPT_INFO);
  expect_options_go_on (session, "the default export");
}

/* ---- Malformed ---- */

/* LEN bytes of the ordinary INFO of the export, or more. */
static void
send_spoilt (struct session *session, uint32_t name_len, uint16_t count,
             const void *tail, size_t tail_len)
{
  const struct uri *uri = session->target->uri;
  struct option_data *data = take_memory (sizeof *data);

  put_u32 (data, name_len);
  put_bytes (data, uri->export, uri->export_len);
  put_u16 (data, count);
  put_bytes (data, tail, tail_len);
  send_option (session, OPT_INFO, data->bytes, data->len);
}

static void
name_longer_than_data_is_refused (const struct target *target)
{
  static const uint32_t beyond[] = { 1, 100, UINT32_MAX / 2 };

  for (size_t i = 0; i < ARRAY_LEN (beyond); i++) {
    struct session *session = begin_info (target);

    send_spoilt (session, (uint32_t) target->uri->export_len + beyond[i], 0,
                 NULL, 0);
    expect_refused (session, OPT_INFO, REP_ERR_INVALID,
                    "a name that is longer than the data");
  }
}

static void
name_length_that_wraps_is_refused (const struct target *target)
{
  struct session *session = begin_info (target);

  send_spoilt (session, UINT32_MAX, 0, NULL, 0);
  expect_refused (session, OPT_INFO, REP_ERR_INVALID,
                  "a name of 2^32-1 bytes");
  session = begin_info (target);
  send_spoilt (session, UINT32_MAX - 5, 0, NULL, 0);
  expect_refused (session, OPT_INFO, REP_ERR_INVALID,
                  "a name of 2^32-6 bytes");
}

static void
short_data_is_refused (const struct target *target)
{
  static const uint8_t zeroes[5];

  for (size_t len = 0; len <= sizeof zeroes; len++) {
    struct session *session = begin_info (target);

    send_option (session, OPT_INFO, zeroes, len);
    expect_refused (session, OPT_INFO, REP_ERR_INVALID,
                    "data of less than six bytes");
  }
}

static void
wrong_count_is_refused (const struct target *target)
{
  const uint32_t len = (uint32_t) target->uri->export_len;
  struct session *session = begin_info (target);

  send_spoilt (session, len, 2, "\0\3", 2);
  expect_refused (session, OPT_INFO, REP_ERR_INVALID,
                  "two requests promised, one sent");
  session = begin_info (target);
  send_spoilt (session, len, UINT16_MAX, NULL, 0);
  expect_refused (session, OPT_INFO, REP_ERR_INVALID,
                  "65535 requests promised, none sent");
}

static void
trailing_data_is_refused (const struct target *target)
{
  const uint32_t len = (uint32_t) target->uri->export_len;
  struct session *session = begin_info (target);

  send_spoilt (session, len, 0, "\0\3", 2);
  expect_refused (session, OPT_INFO, REP_ERR_INVALID,
                  "no requests promised, one sent");
  session = begin_info (target);
  send_spoilt (session, len, 1, "\0\3\0", 3);
  expect_refused (session, OPT_INFO, REP_ERR_INVALID,
                  "half a request too many");
}

static void
failed_go_is_no_end (const struct target *target)
{
  struct session *session = begin_info (target);
  struct info info;

  send_option (session, OPT_GO, "\0\0", 2);
  recv_info (session, OPT_GO, &info);
  if (info.is_closed)
    skip ("the server closes the connection, as it may");
  expect (info.final != REP_ACK, "expected an error, got NBD_REP_ACK");
  session_enter (session);
  if (session->size > 0)
    expect_requests_go_on (session, "a GO that failed and one that did not");
}

/* clang-format off */
const struct check info_syntax_checks[] = {
  { "info/an-unknown-export-is-unknown", LEVEL_MUST, "Option types",
    "`NBD_REP_ERR_UNKNOWN`: The chosen export does not exist on this "
    "server. In this case, the server SHOULD NOT send `NBD_REP_INFO` "
    "replies.",
    unknown_export_is_unknown },
  { "info/the-longest-name-is-answered", LEVEL_MUST, "Conventions",
    "that string [...] MUST be no longer than 4096 bytes",
    longest_name_is_answered },
  { "info/an-overlong-name-is-refused", LEVEL_MUST, "Conventions",
    "that string [...] MUST be no longer than 4096 bytes. This applies to "
    "export names and error messages",
    overlong_name_is_refused },
  { "info/names-that-are-no-strings-are-survived", LEVEL_ROBUST,
    "Conventions",
    "that string is a sequence of UTF-8 code points, which is not `NUL` "
    "terminated, MUST NOT contain `NUL` characters",
    odd_names_are_survived },
  { "info/the-default-export-may-be-asked-for", LEVEL_MUST, "Option types",
    "If no name is specified (i.e. a zero length string is provided), this "
    "specifies the default export (if any)",
    default_export_may_be_asked_for },
  { "info/a-name-longer-than-the-data-is-refused", LEVEL_SHOULD,
    "Option types",
    "32 bits, length of name (unsigned); MUST be no larger than the option "
    "data length - 6",
    name_longer_than_data_is_refused },
  { "info/a-name-length-that-wraps-is-refused", LEVEL_SHOULD,
    "Option types",
    "32 bits, length of name (unsigned); MUST be no larger than the option "
    "data length - 6",
    name_length_that_wraps_is_refused },
  { "info/short-data-is-refused", LEVEL_SHOULD, "Option reply types",
    "`NBD_REP_ERR_INVALID`: The option sent by the client is known by this "
    "server, but was determined by the server to be syntactically or "
    "semantically invalid.",
    short_data_is_refused },
  { "info/a-wrong-count-of-requests-is-refused", LEVEL_SHOULD,
    "Option reply types",
    "`NBD_REP_ERR_INVALID`: The option sent by the client is known by this "
    "server, but was determined by the server to be syntactically or "
    "semantically invalid.",
    wrong_count_is_refused },
  { "info/trailing-data-is-refused", LEVEL_SHOULD, "Option reply types",
    "`NBD_REP_ERR_INVALID`: The option sent by the client is known by this "
    "server, but was determined by the server to be syntactically or "
    "semantically invalid.",
    trailing_data_is_refused },
  { "info/a-go-that-failed-is-not-the-end", LEVEL_MUST,
    "Termination of the session during option haggling",
    "it MUST (save where set out above) simply error inbound options until "
    "the client gets the hint that it is unwelcome",
    failed_go_is_no_end },
  { 0 },
};
/* clang-format on */
