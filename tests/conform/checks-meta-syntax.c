/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* LIST_META_CONTEXT and SET_META_CONTEXT at the wrong time, or malformed.
 *
 * Each malformed option is sent as both.
 */
#include <config.h>

#include <string.h>

#include "conform/check.h"
#include "conform/contexts.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "lib/base/range.h"

static const uint32_t both_options[] = { OPT_LIST_META_CONTEXT,
                                         OPT_SET_META_CONTEXT };

/* Send DATA as both options, which must be refused as invalid; unlike
 * other malformed options, without closing the connection.  Contexts may
 * come before the error.
 */
static void
expect_invalid (const struct target *target, const struct option_data *data,
                const char *what)
{
  for (size_t i = 0; i < ARRAY_LEN (both_options); i++) {
    struct session *session = session_begin (target);
    struct contexts *contexts = take_memory (sizeof *contexts);

    session_structure (session);
    send_option (session, both_options[i], data->bytes, data->len);
    recv_contexts (session, both_options[i], contexts);
    expect (!contexts->is_closed,
            "%s, %s: expected NBD_REP_ERR_INVALID, got the end of the "
            "connection",
            option_name (both_options[i]), what);
    if (contexts->final == REP_ERR_UNSUP)
      skip ("metadata contexts are not offered");
    expect (contexts->final == REP_ERR_INVALID,
            "%s, %s: expected NBD_REP_ERR_INVALID, got %s",
            option_name (both_options[i]), what,
            reply_name (contexts->final));
    expect_options_go_on (session, what);
  }
}

/* The export's name and the beginning of one query. */
static struct option_data *
begin_data (const struct target *target, uint32_t count)
{
  struct option_data *data = take_memory (sizeof *data);

  put_u32 (data, (uint32_t) target->uri->export_len);
  put_bytes (data, target->uri->export, target->uri->export_len);
  put_u32 (data, count);
  return data;
}

static void
query_beyond_the_data (const struct target *target)
{
  static const uint32_t lengths[] = { 6, 1000, UINT32_MAX };

  for (size_t i = 0; i < ARRAY_LEN (lengths); i++) {
    struct option_data *data = begin_data (target, 1);

    put_u32 (data, lengths[i]);
    put_bytes (data, "base:", 5);
    expect_invalid (target, data, "a query that is longer than the data");
  }
}

static void
name_beyond_the_data (const struct target *target)
{
  static const uint32_t lengths[] = { 5, 1000, UINT32_MAX, UINT32_MAX - 3 };

  for (size_t i = 0; i < ARRAY_LEN (lengths); i++) {
    struct option_data *data = take_memory (sizeof *data);

    put_u32 (data, lengths[i]);
    put_u32 (data, 0);
    expect_invalid (target, data,
                    "an export name that is longer than the data");
  }
}

static void
more_queries_promised (const struct target *target)
{
  static const uint32_t counts[] = { 2, 1000, UINT32_MAX };

  for (size_t i = 0; i < ARRAY_LEN (counts); i++) {
    struct option_data *data = begin_data (target, counts[i]);

    put_u32 (data, 5);
    put_bytes (data, "base:", 5);
    expect_invalid (target, data, "more queries promised than sent");
  }
}

/* Without a whole length, and without a whole count. */
static void
short_data (const struct target *target)
{
  static const uint8_t zeroes[3];

  for (size_t len = 0; len <= sizeof zeroes; len++) {
    struct option_data *data = take_memory (sizeof *data);

    put_bytes (data, zeroes, len);
    expect_invalid (target, data, "no length of an export name");
    data->len = 0;
    put_u32 (data, (uint32_t) target->uri->export_len);
    put_bytes (data, target->uri->export, target->uri->export_len);
    put_bytes (data, zeroes, len);
    expect_invalid (target, data, "no count of queries");
  }
}

/* The text does not say that this is a mistake, and calls nothing else one
 * that a server could overlook.
 */
static void
trailing_data (const struct target *target)
{
  struct option_data *data = begin_data (target, 1);

  put_u32 (data, 5);
  put_bytes (data, "base:", 5);
  put_u16 (data, 0);
  for (size_t i = 0; i < ARRAY_LEN (both_options); i++) {
    struct session *session = session_begin (target);
    struct contexts *contexts = take_memory (sizeof *contexts);

    session_structure (session);
    send_option (session, both_options[i], data->bytes, data->len);
    recv_contexts (session, both_options[i], contexts);
    if (contexts->final == REP_ERR_UNSUP)
      skip ("metadata contexts are not offered");
    should (contexts->final == REP_ERR_INVALID,
            "%s, data behind the last query: expected NBD_REP_ERR_INVALID, "
            "got %s",
            option_name (both_options[i]),
            contexts->is_closed ? "the end of the connection"
                                : reply_name (contexts->final));
    if (!contexts->is_closed)
      expect_options_go_on (session, "data behind the last query");
  }
}

/* ---- Before structured replies ---- */

static struct contexts *
ask_too_early (const struct target *target, uint32_t option,
               struct session **ret_session)
{
  static const char *const query = ALLOCATION_CONTEXT;
  struct contexts *contexts = take_memory (sizeof *contexts);

  *ret_session = session_begin (target);
  ask_contexts (*ret_session, option, &query, 1, contexts);
  if (!contexts->is_closed && contexts->final == REP_ERR_UNSUP)
    skip ("metadata contexts are not offered");
  return contexts;
}

static void
set_needs_structured_replies (const struct target *target)
{
  struct session *session;
  const struct contexts *contexts =
    ask_too_early (target, OPT_SET_META_CONTEXT, &session);

  if (contexts->is_closed) {
    should (false, "expected NBD_REP_ERR_INVALID, got the end of the "
                   "connection");
    return;
  }
  should (contexts->final == REP_ERR_INVALID,
          "expected NBD_REP_ERR_INVALID, got %s",
          reply_name (contexts->final));
  expect_options_go_on (session, "a SET before structured replies");
}

static void
list_may_need_structured_replies (const struct target *target)
{
  struct session *session;
  const struct contexts *contexts =
    ask_too_early (target, OPT_LIST_META_CONTEXT, &session);

  expect (!contexts->is_closed,
          "expected a reply, got the end of the connection");
  expect_options_go_on (session, "a LIST before structured replies");
}

/* clang-format off */
#define INVALID_SYNTAX                                                    \
  "If the option request is syntactically invalid (such as a query "      \
  "length that would require reading beyond the original length given "   \
  "in the option header), the server MUST fail the request with "         \
  "`NBD_REP_ERR_INVALID`."

const struct check meta_syntax_checks[] = {
  { "meta/a-query-longer-than-the-data-is-invalid", LEVEL_MUST,
    "Option types", INVALID_SYNTAX, query_beyond_the_data },
  { "meta/a-name-longer-than-the-data-is-invalid", LEVEL_MUST,
    "Option types", INVALID_SYNTAX, name_beyond_the_data },
  { "meta/more-queries-promised-than-sent-are-invalid", LEVEL_MUST,
    "Option types", INVALID_SYNTAX, more_queries_promised },
  { "meta/short-data-is-invalid", LEVEL_MUST,
    "Option types", INVALID_SYNTAX, short_data },
  { "meta/trailing-data-is-invalid", LEVEL_SHOULD,
    "Option types", INVALID_SYNTAX, trailing_data },
  { "meta/set-needs-structured-replies", LEVEL_SHOULD, "Option types",
    "`NBD_OPT_SET_META_CONTEXT`: This option MUST NOT be requested unless "
    "structured replies have been negotiated first. If a client attempts to "
    "do so, a server SHOULD send `NBD_REP_ERR_INVALID`.",
    set_needs_structured_replies },
  { "meta/list-may-need-structured-replies", LEVEL_MUST, "Option types",
    "`NBD_OPT_LIST_META_CONTEXT`: This option SHOULD NOT be requested "
    "unless structured replies have been negotiated first. If a client "
    "attempts to do so, a server MAY send `NBD_REP_ERR_INVALID`.",
    list_may_need_structured_replies },
  { 0 },
};
/* clang-format on */
