/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The broken server's metadata contexts. */
#include <config.h>

#include <string.h>

#include "conform/broken.h"
#include "conform/protocol.h"
#include "lib/base/bytes.h"

enum {
  MANY_QUERIES = 50,
};

static const char *const context_names[NR_CONTEXTS] = { "base:allocation",
                                                        "x-broken:parity" };

/* What is left of an option's data. */
struct rest {
  const uint8_t *data;
  size_t len;
};

static bool
take_u32 (struct rest *rest, uint32_t *ret)
{
  if (rest->len < 4)
    return false;
  *ret = get_be32 (rest->data);
  rest->data += 4;
  rest->len -= 4;
  return true;
}

/* With BUG, a length beyond the end means up to the end. */
static bool
take_string (struct rest *rest, enum bug bug, struct rest *ret)
{
  uint32_t len;

  if (!take_u32 (rest, &len))
    return false;
  if (len > rest->len) {
    if (!has_bug (bug))
      return false;
    len = (uint32_t) rest->len;
  }
  *ret = (struct rest){ rest->data, len };
  rest->data += len;
  rest->len -= len;
  return true;
}

static bool
equals (const struct rest *text, const char *wanted)
{
  return text->len == strlen (wanted) &&
         memcmp (text->data, wanted, text->len) == 0;
}

static bool
begins (const struct rest *text, const char *wanted)
{
  return text->len >= strlen (wanted) &&
         memcmp (text->data, wanted, strlen (wanted)) == 0;
}

/* Mark what QUERY finds. */
static void
match (uint32_t option, const struct rest *query, bool found[NR_CONTEXTS])
{
  const bool is_list = option == OPT_LIST_META_CONTEXT;

  for (unsigned i = 0; i < NR_CONTEXTS; i++)
    if (equals (query, context_names[i]) ||
        (is_list && has_bug (BUG_LIST_META_IGNORES_QUERY)))
      found[i] = true;
  if (equals (query, "base:") &&
      ((is_list && !has_bug (BUG_NO_BASE_WILDCARD)) ||
       (!is_list && has_bug (BUG_BASE_SELECTS))))
    found[0] = true;
  if (is_list && equals (query, "x-broken:"))
    found[1] = true;
  if (equals (query, "allocation") && has_bug (BUG_COLON_OPTIONAL))
    found[0] = true;
  if (!is_list && found[0] && has_bug (BUG_SET_SELECTS_MORE))
    found[1] = true;
}

/* A query that a bug takes amiss. */
static bool
is_amiss (uint32_t option, const struct rest *query)
{
  (void) option;
  if (begins (query, "x-blobpager") &&
      has_bug (BUG_UNKNOWN_NAMESPACE_REFUSED))
    return true;
  return begins (query, "base:blobpager") &&
         has_bug (BUG_UNKNOWN_LEAF_REFUSED);
}

/* Returns 0 or the error to answer with. */
static uint32_t
run_queries (uint32_t option, struct rest *rest, uint32_t count,
             bool found[NR_CONTEXTS])
{
  if (count > MANY_QUERIES && has_bug (BUG_MANY_QUERIES_CLOSE))
    client_leave ();
  for (uint32_t i = 0; i < count; i++) {
    struct rest query;

    if (rest->len == 0 && has_bug (BUG_META_COUNT_UNCHECKED))
      break;
    if (!take_string (rest, BUG_META_QUERY_UNCHECKED, &query))
      return REP_ERR_INVALID;
    if (is_amiss (option, &query))
      return REP_ERR_INVALID;
    if (begins (&query, "x-blobpager") && has_bug (BUG_SET_STOPS_AT_UNKNOWN))
      break;
    match (option, &query, found);
  }
  if (rest->len > 0 && !has_bug (BUG_META_TRAILING_TAKEN) &&
      !has_bug (BUG_SET_STOPS_AT_UNKNOWN))
    return REP_ERR_INVALID;
  return 0;
}

/* Which contexts are meant?  Returns 0 or an error. */
static uint32_t
parse (uint32_t option, const uint8_t *data, size_t len,
       bool found[NR_CONTEXTS], bool *ret_is_ours)
{
  struct rest rest = { data, len }, name;
  uint32_t count, error;

  if (len < 8 && has_bug (BUG_META_SHORT_TAKEN)) {
    *ret_is_ours = true;
    return 0;
  }
  if (!take_string (&rest, BUG_META_NAME_UNCHECKED, &name))
    return REP_ERR_INVALID;
  if (!take_u32 (&rest, &count)) {
    if (!has_bug (BUG_META_NAME_UNCHECKED))
      return REP_ERR_INVALID;
    count = 0;
  }
  *ret_is_ours = is_our_export (name.data, name.len) ||
                 has_bug (BUG_META_NAME_UNCHECKED) ||
                 has_bug (BUG_SET_OF_ANY_EXPORT);
  error = run_queries (option, &rest, count, found);
  if (error)
    return error;
  if (count == 0)
    for (unsigned i = 0; i < NR_CONTEXTS; i++)
      found[i] = option == OPT_LIST_META_CONTEXT
                   ? !has_bug (BUG_LIST_META_EMPTY)
                   : has_bug (BUG_EMPTY_SET_SELECTS);
  return *ret_is_ours ? 0 : REP_ERR_UNKNOWN;
}

static void
send_context (struct client *client, uint32_t option, uint32_t id,
              const char *name)
{
  uint8_t reply[64];

  put_be32 (reply, id);
  memcpy (reply + 4, name, strlen (name));
  reply_option (client, option, REP_META_CONTEXT, reply, 4 + strlen (name));
}

static uint32_t
id_of (uint32_t option, unsigned context)
{
  if (option == OPT_LIST_META_CONTEXT)
    return has_bug (BUG_LIST_META_ID);
  return has_bug (BUG_EQUAL_IDS) ? 1 : context + 1;
}

static void
answer (struct client *client, uint32_t option,
        const bool found[NR_CONTEXTS])
{
  for (unsigned i = 0; i < NR_CONTEXTS; i++)
    if (found[i])
      send_context (client, option, id_of (option, i), context_names[i]);
  if (option == OPT_LIST_META_CONTEXT &&
      has_bug (BUG_CONTEXT_WITHOUT_COLON))
    send_context (client, option, 0, "allocation");
  reply_option (client, option, REP_ACK, NULL, 0);
}

/* Returns true if it is, and was answered. */
static bool
is_too_early (struct client *client, uint32_t option)
{
  if (client->is_structured)
    return false;
  if (option == OPT_LIST_META_CONTEXT) {
    if (has_bug (BUG_EARLY_LIST_META_CLOSES))
      client_leave ();
    return false;
  }
  if (has_bug (BUG_EARLY_SET_META_TAKEN))
    return false;
  reply_option (client, option, REP_ERR_INVALID, NULL, 0);
  return true;
}

void
handle_meta (struct client *client, uint32_t option, const uint8_t *data,
             size_t len)
{
  const bool is_set = option == OPT_SET_META_CONTEXT;
  bool found[NR_CONTEXTS] = { false }, is_ours;
  uint32_t error;

  if (is_too_early (client, option))
    return;
  error = parse (option, data, len, found, &is_ours);
  if (is_set && !has_bug (BUG_SET_ADDS) &&
      !(error && has_bug (BUG_FAILED_SET_KEEPS)))
    memset (client->is_selected, 0, sizeof client->is_selected);
  if (error) {
    reply_option (client, option, error, NULL, 0);
    return;
  }
  for (unsigned i = 0; i < NR_CONTEXTS && is_set; i++)
    client->is_selected[i] |= found[i];
  answer (client, option, found);
}
