/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Metadata contexts: which queries find and select what. */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conform/check.h"
#include "conform/contexts.h"
#include "conform/info.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/range.h"

enum {
  MANY_QUERIES = 100,
};

static struct contexts *
list_all (struct session *session)
{
  return expect_contexts (session, OPT_LIST_META_CONTEXT, NULL, 0);
}

/* ---- LIST_META_CONTEXT ---- */

static void
list_without_queries_returns_all (const struct target *target)
{
  struct session *session = session_begin_structured (target);
  const struct contexts *contexts = list_all (session);

  if (target->facts->has_allocation)
    expect (contexts_find (contexts, ALLOCATION_CONTEXT) ||
              contexts_find (contexts, "base:"),
            "expected base:allocation, which can be selected, among the "
            "contexts, got %u others",
            contexts->count);
  expect_options_go_on (session, "NBD_OPT_LIST_META_CONTEXT");
}

static void
names_have_a_namespace (const struct target *target)
{
  const struct contexts *contexts =
    list_all (session_begin_structured (target));

  for (unsigned i = 0; i < contexts->count; i++) {
    const struct context *context = &contexts->list[i];
    const char *colon = memchr (context->name, ':', context->len);

    expect_string ("the name of a context",
                   (const uint8_t *) context->name, context->len);
    expect (colon && colon > context->name,
            "expected a namespace and a colon, got the context '%s'",
            context->name);
    for (const char *p = context->name; p < colon; p++)
      expect ((unsigned char) *p > ' ' && *p != 0x7f,
              "expected a printable namespace without white space, got the "
              "context '%s'",
              context->name);
  }
}

static void
list_ids_are_zero (const struct target *target)
{
  const struct contexts *contexts =
    list_all (session_begin_structured (target));

  for (unsigned i = 0; i < contexts->count; i++)
    should (contexts->list[i].id == 0,
            "the context '%s' in a list: expected the ID 0, got %" PRIu32,
            contexts->list[i].name, contexts->list[i].id);
}

static void
base_is_a_wildcard_in_a_list (const struct target *target)
{
  static const char *const query = "base:";
  const struct contexts *contexts;

  skip_without_allocation (target);
  contexts = expect_contexts (session_begin_structured (target),
                              OPT_LIST_META_CONTEXT, &query, 1);
  expect (contexts_find (contexts, ALLOCATION_CONTEXT) != NULL,
          "expected base:allocation, got %u other contexts",
          contexts->count);
  for (unsigned i = 0; i < contexts->count; i++)
    expect (strncmp (contexts->list[i].name, query, strlen (query)) == 0,
            "expected contexts of the namespace base, got '%s'",
            contexts->list[i].name);
}

static void
list_matches_the_query (const struct target *target)
{
  static const char *const query = ALLOCATION_CONTEXT;
  const struct contexts *contexts;

  skip_without_allocation (target);
  contexts = expect_contexts (session_begin_structured (target),
                              OPT_LIST_META_CONTEXT, &query, 1);
  expect (contexts->count == 1 &&
            contexts_find (contexts, ALLOCATION_CONTEXT),
          "expected base:allocation alone, got %u contexts",
          contexts->count);
}

/* ---- What must be ignored ---- */

static void
expect_nothing_found (struct session *session, uint32_t option,
                      const char *query)
{
  const struct contexts *contexts =
    expect_contexts (session, option, &query, 1);

  expect (contexts->count == 0,
          "%s, '%s': expected no context, got %u, the first '%s'",
          option_name (option), query, contexts->count,
          contexts->list[0].name);
}

static void
unknown_namespace_is_ignored (const struct target *target)
{
  struct session *session = session_begin_structured (target);

  expect_nothing_found (session, OPT_LIST_META_CONTEXT, UNKNOWN_NAMESPACE);
  expect_nothing_found (session, OPT_SET_META_CONTEXT, UNKNOWN_NAMESPACE);
}

static void
unknown_leaf_is_ignored (const struct target *target)
{
  struct session *session = session_begin_structured (target);

  expect_nothing_found (session, OPT_LIST_META_CONTEXT, UNKNOWN_LEAF);
  expect_nothing_found (session, OPT_SET_META_CONTEXT, UNKNOWN_LEAF);
}

static void
base_selects_nothing (const struct target *target)
{
  expect_nothing_found (session_begin_structured (target),
                        OPT_SET_META_CONTEXT, "base:");
}

static void
query_without_colon_finds_nothing (const struct target *target)
{
  static const uint32_t options[] = { OPT_LIST_META_CONTEXT,
                                      OPT_SET_META_CONTEXT };
  static const char *const query = "allocation";
  struct session *session = session_begin_structured (target);
  struct contexts *contexts = take_memory (sizeof *contexts);

  for (size_t i = 0; i < ARRAY_LEN (options); i++) {
    ask_contexts (session, options[i], &query, 1, contexts);
    expect (!contexts->is_closed,
            "%s: expected a reply, got the end of the connection",
            option_name (options[i]));
    expect (contexts->count == 0,
            "%s, '%s': expected no context, got %u",
            option_name (options[i]), query, contexts->count);
  }
  expect_options_go_on (session, "a query without a colon");
}

/* ---- SET_META_CONTEXT ---- */

static void
set_selects_what_it_names (const struct target *target)
{
  static const char *const query = ALLOCATION_CONTEXT;
  struct session *session = session_begin_structured (target);
  const struct contexts *contexts;

  skip_without_allocation (target);
  contexts = expect_contexts (session, OPT_SET_META_CONTEXT, &query, 1);
  expect (contexts->count == 1 &&
            contexts_find (contexts, ALLOCATION_CONTEXT),
          "expected base:allocation alone, got %u contexts",
          contexts->count);
  expect_options_go_on (session, "NBD_OPT_SET_META_CONTEXT");
}

static void
set_selects_beside_unknown (const struct target *target)
{
  static const char *const queries[] = { UNKNOWN_NAMESPACE, UNKNOWN_LEAF,
                                         ALLOCATION_CONTEXT, "base:" };
  const struct contexts *contexts;

  skip_without_allocation (target);
  contexts = expect_contexts (session_begin_structured (target),
                              OPT_SET_META_CONTEXT, queries,
                              ARRAY_LEN (queries));
  expect (contexts->count == 1 &&
            contexts_find (contexts, ALLOCATION_CONTEXT),
          "expected base:allocation alone, got %u contexts",
          contexts->count);
}

static void
ids_are_unique (const struct target *target)
{
  struct session *session = session_begin_structured (target);
  const struct contexts *known = list_all (session), *set;
  const char *queries[MAX_CONTEXTS];

  for (unsigned i = 0; i < known->count; i++)
    queries[i] = known->list[i].name;
  if (known->count == 0)
    skip ("the server lists no contexts");
  set = expect_contexts (session, OPT_SET_META_CONTEXT, queries, known->count);
  for (unsigned i = 0; i < set->count; i++)
    for (unsigned j = 0; j < i; j++)
      expect (set->list[i].id != set->list[j].id,
              "expected a unique ID, got %" PRIu32 " for '%s' and '%s'",
              set->list[i].id, set->list[j].name, set->list[i].name);
}

static void
many_queries_are_answered (const struct target *target)
{
  const char *queries[MANY_QUERIES];
  struct session *session = session_begin_structured (target);
  struct contexts *contexts = take_memory (sizeof *contexts);

  for (unsigned i = 0; i < MANY_QUERIES; i++) {
    char *query = take_memory (64);

    snprintf (query, 64, "%s-%u", UNKNOWN_NAMESPACE, i);
    queries[i] = query;
  }
  ask_contexts (session, OPT_LIST_META_CONTEXT, queries, MANY_QUERIES,
                contexts);
  if (!contexts->is_closed && contexts->final == REP_ERR_UNSUP)
    skip ("metadata contexts are not offered");
  if (contexts->is_closed || contexts->final != REP_ERR_TOO_BIG)
    expect_contexts_ack (contexts, OPT_LIST_META_CONTEXT);
  expect (contexts->count == 0, "expected no context, got %u",
          contexts->count);
  expect_options_go_on (session, "a hundred queries");
}

/* clang-format off */
const struct check meta_checks[] = {
  { "meta/a-list-without-queries-returns-all", LEVEL_MUST, "Option types",
    "If zero queries are sent, then the server MUST return all the metadata "
    "contexts that are available to the client to select on the given "
    "export.",
    list_without_queries_returns_all },
  { "meta/names-have-a-namespace", LEVEL_MUST, "Metadata querying",
    "The name MUST consist of a namespace, followed by a colon, followed by "
    "a leaf-name. [...] The entire name (namespace, colon, and leaf-name) "
    "MUST follow the restrictions for strings",
    names_have_a_namespace },
  { "meta/ids-in-a-list-are-zero", LEVEL_SHOULD, "Option types",
    "The metadata context ID in these replies is reserved and SHOULD be set "
    "to zero; clients MUST disregard it.",
    list_ids_are_zero },
  { "meta/base-is-a-wildcard-in-a-list", LEVEL_MUST,
    "The `base:` metadata namespace",
    "`base:` - the server [...] MUST support this as a wildcard during "
    "`NBD_OPT_LIST_META_CONTEXT`",
    base_is_a_wildcard_in_a_list },
  { "meta/base-selects-nothing", LEVEL_MUST,
    "The `base:` metadata namespace",
    "`base:` - the server MUST ignore this form during "
    "`NBD_OPT_SET_META_CONTEXT`",
    base_selects_nothing },
  { "meta/a-list-matches-the-query", LEVEL_MUST, "Option types",
    "If one or more queries are sent, then the server MUST return those "
    "metadata contexts that are available to the client to select on the "
    "given export with `NBD_OPT_SET_META_CONTEXT`, and which match one or "
    "more of the queries given.",
    list_matches_the_query },
  { "meta/an-unknown-namespace-is-ignored", LEVEL_MUST, "Option types",
    "the server MUST ignore query strings belonging to an unknown "
    "namespace. If none of the query strings find any metadata contexts, "
    "the server MUST send a single reply of type `NBD_REP_ACK`.",
    unknown_namespace_is_ignored },
  { "meta/an-unknown-leaf-is-ignored", LEVEL_MUST,
    "The `base:` metadata namespace",
    "If a `[leaf-name]` requested by the client is not recognized, the "
    "server MUST ignore it rather than report an error.",
    unknown_leaf_is_ignored },
  { "meta/a-query-without-a-colon-finds-nothing", LEVEL_MUST,
    "Option types",
    "For requests that are semantically invalid (such as lacking the "
    "required colon that delimits the namespace [...]), the server MAY fail "
    "the request with `NBD_REP_ERR_INVALID`.",
    query_without_colon_finds_nothing },
  { "meta/many-queries-are-answered", LEVEL_MUST, "Option types",
    "the server MAY fail with `NBD_REP_ERR_TOO_BIG` if too many queries are "
    "requested",
    many_queries_are_answered },
  { "meta/set-selects-what-it-names", LEVEL_MUST, "Option types",
    "the server MUST reply with a number of `NBD_REP_META_CONTEXT` replies, "
    "one for each selected metadata context, [...] followed by "
    "`NBD_REP_ACK`",
    set_selects_what_it_names },
  { "meta/set-selects-beside-what-is-unknown", LEVEL_MUST, "Option types",
    "The server MAY ignore queries that do not select a single metadata "
    "context",
    set_selects_beside_unknown },
  { "meta/ids-are-unique", LEVEL_MUST, "Option types",
    "one for each selected metadata context, each with a unique metadata "
    "context ID",
    ids_are_unique },
  { 0 },
};
/* clang-format on */
