/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a client asks for with LIST_META_CONTEXT and SET_META_CONTEXT. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "daemon/front/meta-context.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"

enum {
  ALLOCATION = CONTEXT (MAP_ALLOCATION),
  RESIDENCY = CONTEXT (MAP_RESIDENCY),
  BOTH = ALLOCATION | RESIDENCY,
};

/* An option's data, as it grows. */
struct message {
  uint8_t data[32768];
  size_t len;
};

static void
add_u32 (struct message *message, uint32_t value)
{
  cr_assert_leq (message->len + 4, sizeof message->data);
  put_be32 (message->data + message->len, value);
  message->len += 4;
}

static void
add_string (struct message *message, const char *text, size_t len)
{
  add_u32 (message, (uint32_t) len);
  cr_assert_leq (message->len + len, sizeof message->data);
  memcpy (message->data + message->len, text, len);
  message->len += len;
}

/* Export "disk", and the queries, up to NULL. */
static struct message
message_of (const char *const *queries)
{
  struct message message = { .len = 0 };
  uint32_t count = 0;

  while (queries[count])
    count++;
  add_string (&message, "disk", 4);
  add_u32 (&message, count);
  for (uint32_t i = 0; i < count; i++)
    add_string (&message, queries[i], strlen (queries[i]));
  return message;
}

/* The message in memory that ends with it, so that a sanitizer sees what
 * is read behind it.
 */
static int
decode (const struct message *message, bool lists,
        struct context_query *ret_query)
{
  CLEANUP_FREE uint8_t *copy = malloc (message->len + (message->len == 0));

  memcpy (copy, message->data, message->len);
  return context_query_decode (copy, message->len, lists, ret_query);
}

#define QUERIES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const char *const no_query[] = { NULL };

static unsigned
contexts_of (const char *const *queries, bool lists)
{
  const struct message message = message_of (queries);
  struct context_query query;

  cr_assert_eq (decode (&message, lists, &query), 0);
  cr_assert_eq (query.export_name_len, 4);
  return query.contexts;
}

Test (meta_context, names_select_exactly_what_they_name)
{
  cr_assert_eq (contexts_of (QUERIES ("base:allocation"), false),
                ALLOCATION);
  cr_assert_eq (contexts_of (QUERIES ("blobpager:residency"), false),
                RESIDENCY);
  cr_assert_eq (contexts_of (QUERIES ("blobpager:residency",
                                      "base:allocation",
                                      "blobpager:residency"),
                             true),
                BOTH);
}

Test (meta_context, what_is_not_known_selects_nothing)
{
  static const char *const unknown[] = {
    "",
    ":",
    "base",
    "base:alloc",
    "base:allocation ",
    "base:allocation:",
    "BASE:allocation",
    "blobpager",
    "blobpager:residency2",
    "qemu:dirty-bitmap:x",
    "x-local:y",
    "allocation",
  };

  for (size_t i = 0; i < ARRAY_LEN (unknown); i++) {
    cr_assert_eq (contexts_of (QUERIES (unknown[i]), false), 0, "'%s'",
                  unknown[i]);
    cr_assert_eq (contexts_of (QUERIES (unknown[i], "base:allocation"),
                               true),
                  ALLOCATION, "'%s'", unknown[i]);
  }
}

Test (meta_context, a_namespace_is_a_wildcard_only_where_contexts_are_listed)
{
  cr_assert_eq (contexts_of (QUERIES ("base:"), true), ALLOCATION);
  cr_assert_eq (contexts_of (QUERIES ("blobpager:"), true), RESIDENCY);
  cr_assert_eq (contexts_of (QUERIES ("base:", "blobpager:"), true), BOTH);
  cr_assert_eq (contexts_of (QUERIES ("base:", "blobpager:"), false), 0);
}

Test (meta_context, no_query_lists_all_and_selects_none)
{
  cr_assert_eq (contexts_of (no_query, true), BOTH);
  cr_assert_eq (contexts_of (no_query, false), 0);
}

Test (meta_context, the_export_may_have_any_name)
{
  struct message message = { .len = 0 };
  struct context_query query;

  add_string (&message, "", 0);
  add_u32 (&message, 0);
  cr_assert_eq (decode (&message, true, &query), 0);
  cr_assert_eq (query.export_name_len, 0);
}

Test (meta_context, any_part_of_a_message_is_malformed)
{
  struct message message =
    message_of (QUERIES ("base:", "blobpager:residency"));
  struct context_query query;

  cr_assert_eq (decode (&message, true, &query), 0);
  message.len++;
  cr_assert_eq (decode (&message, true, &query), -EPROTO, "a byte more");
  for (message.len -= 2; message.len > 0; message.len--)
    cr_assert_eq (decode (&message, true, &query), -EPROTO, "%zu bytes",
                  message.len);
  cr_assert_eq (decode (&message, true, &query), -EPROTO, "nothing");
}

Test (meta_context, lengths_and_counts_beyond_the_data_are_malformed)
{
  static const uint32_t lies[] = { 6, 100, 1u << 31, UINT32_MAX - 3,
                                   UINT32_MAX };
  static const size_t places[] = { 0, 8, 12 }; /* Name, count, query. */
  const struct message good = message_of (QUERIES ("base:"));
  struct context_query query;

  cr_assert_eq (good.len, 4 + 4 + 4 + 4 + 5);
  for (size_t p = 0; p < ARRAY_LEN (places); p++) {
    for (size_t i = 0; i < ARRAY_LEN (lies); i++) {
      struct message message = good;

      put_be32 (message.data + places[p], lies[i]);
      cr_assert_eq (decode (&message, true, &query), -EPROTO,
                    "%u at offset %zu", lies[i], places[p]);
    }
  }
}

Test (meta_context, a_long_query_is_read_and_a_longer_one_is_too_big)
{
  static char text[4097];
  struct context_query query;

  memset (text, 'x', sizeof text);
  for (size_t len = 4095; len <= 4097; len++) {
    struct message message = { .len = 0 };

    add_string (&message, "disk", 4);
    add_u32 (&message, 1);
    add_string (&message, text, len);
    cr_assert_eq (decode (&message, false, &query),
                  len > 4096 ? -ERANGE : 0, "%zu bytes", len);
  }
}

Test (meta_context, a_thousand_queries_are_answered_and_more_are_too_big)
{
  struct context_query query;

  for (uint32_t count = 1024; count <= 1025; count++) {
    struct message message = { .len = 0 };

    add_string (&message, "disk", 4);
    add_u32 (&message, count);
    for (uint32_t i = 0; i < count; i++)
      add_string (&message, "base:allocation", i % 2 ? 15 : 4);
    cr_assert_eq (decode (&message, true, &query),
                  count > 1024 ? -ERANGE : 0, "%u queries", count);
    cr_assert_eq (query.contexts, ALLOCATION);
  }
}

Test (meta_context, each_context_has_a_name_and_an_identifier_of_its_own)
{
  cr_assert_str_eq (context_name (MAP_ALLOCATION), "base:allocation");
  cr_assert_str_eq (context_name (MAP_RESIDENCY), "blobpager:residency");
  cr_assert_neq (context_id (MAP_ALLOCATION), 0);
  cr_assert_neq (context_id (MAP_RESIDENCY), 0);
  cr_assert_neq (context_id (MAP_ALLOCATION), context_id (MAP_RESIDENCY));
}

Test (meta_context, flags_are_those_of_the_standard_and_of_the_manual)
{
  cr_assert_eq (context_flags (MAP_ALLOCATION, MAP_DATA), 0);
  cr_assert_eq (context_flags (MAP_ALLOCATION, MAP_HOLE), 3);
  cr_assert_eq (context_flags (MAP_RESIDENCY, MAP_ABSENT), 0);
  cr_assert_eq (context_flags (MAP_RESIDENCY, MAP_ON_ITS_WAY), 1);
  cr_assert_eq (context_flags (MAP_RESIDENCY, MAP_VERIFIED), 2);
}
