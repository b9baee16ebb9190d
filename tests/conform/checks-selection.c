/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Which metadata contexts are selected when transmission begins: only
 * those of the last SET_META_CONTEXT, if that was of the same export.
 */
#include <config.h>

#include "conform/check.h"
#include "conform/contexts.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"

/* Enter transmission; nothing must be selected. */
static void
expect_none_selected (struct session *session, const char *after)
{
  const struct target *target = session->target;
  struct span span;

  session_enter (session);
  span = span_at (target, 0, 4096);
  expect_error (session,
                send_request (session,
                              make_request (session, CMD_BLOCK_STATUS, 0,
                                            span.offset, span.len)),
                ERROR_INVAL, after);
}

static void
set_without_queries_selects_none (const struct target *target)
{
  struct session *session = session_begin_structured (target);
  const struct contexts *contexts =
    expect_contexts (session, OPT_SET_META_CONTEXT, NULL, 0);

  expect (contexts->count == 0, "expected no context, got %u",
          contexts->count);
  expect_none_selected (session, "NBD_CMD_BLOCK_STATUS after a SET without "
                                 "queries");
}

static void
set_replaces_what_was_set (const struct target *target)
{
  static const char *const query = UNKNOWN_NAMESPACE;
  struct session *session = session_begin (target);
  uint32_t id;

  select_allocation (session, &id);
  expect_contexts (session, OPT_SET_META_CONTEXT, &query, 1);
  expect_none_selected (session, "NBD_CMD_BLOCK_STATUS after a SET that "
                                 "selects nothing");
}

static void
failed_set_clears_what_was_set (const struct target *target)
{
  struct session *session = session_begin (target);
  struct contexts *contexts = take_memory (sizeof *contexts);
  uint32_t id;

  select_allocation (session, &id);
  send_option (session, OPT_SET_META_CONTEXT, "\0\0", 2);
  recv_contexts (session, OPT_SET_META_CONTEXT, contexts);
  if (contexts->is_closed)
    skip ("the server closes the connection, as it may");
  expect (contexts->final != REP_ACK,
          "two bytes of data: expected an error, got NBD_REP_ACK");
  expect_none_selected (session,
                        "NBD_CMD_BLOCK_STATUS after a SET that failed");
}

static void
set_of_another_export_selects_none (const struct target *target)
{
  static const char *const query = ALLOCATION_CONTEXT;
  struct session *session = session_begin_structured (target);
  struct contexts *contexts = take_memory (sizeof *contexts);

  skip_without_allocation (target);
  ask_contexts_of (session, OPT_SET_META_CONTEXT, NO_SUCH_EXPORT, &query, 1,
                   contexts);
  expect (!contexts->is_closed,
          "expected a reply, got the end of the connection");
  expect_none_selected (session, "NBD_CMD_BLOCK_STATUS after a SET for "
                                 "another export");
}

static void
selection_lasts_until_go (const struct target *target)
{
  struct session *session = session_begin (target);
  struct pending *pending;
  struct span span;
  uint32_t id;

  select_allocation (session, &id);
  expect_options_go_on (session, "NBD_OPT_SET_META_CONTEXT");
  session_enter (session);
  span = span_at (target, 0, 4096);
  pending = send_request (session, make_request (session, CMD_BLOCK_STATUS,
                                                 0, span.offset, span.len));
  await_reply (session, pending);
  expect (reply_error (pending) == ERROR_NONE,
          "NBD_CMD_BLOCK_STATUS: expected success, got %s",
          error_name (reply_error (pending)));
}

/* clang-format off */
const struct check selection_checks[] = {
  { "meta/a-set-without-queries-selects-none", LEVEL_MUST, "Option types",
    "If zero queries are sent, the server MUST select no metadata contexts.",
    set_without_queries_selects_none },
  { "meta/a-set-replaces-what-was-set", LEVEL_MUST, "Option types",
    "Issuing this command replaces all previously-set metadata contexts",
    set_replaces_what_was_set },
  { "meta/a-set-that-failed-clears-what-was-set", LEVEL_MUST,
    "Option types",
    "Issuing this command replaces all previously-set metadata contexts "
    "(including when this command fails)",
    failed_set_clears_what_was_set },
  { "meta/a-set-of-another-export-selects-none", LEVEL_MUST,
    "Option types",
    "where the final time it was sent, it referred to the same export name "
    "that was ultimately selected for transmission phase",
    set_of_another_export_selects_none },
  { "meta/a-selection-lasts-until-go", LEVEL_MUST, "Metadata querying",
    "During transmission, a client can then indicate interest in metadata "
    "for a given region by way of the `NBD_CMD_BLOCK_STATUS` command",
    selection_lasts_until_go },
  { 0 },
};
/* clang-format on */
