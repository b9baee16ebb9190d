/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Metadata contexts.
 *
 * Lengths and counts come from the client: each is compared with what is
 * left of the data before it is used, so that nothing is ever added to
 * it.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "daemon/front/meta-context.h"
#include "daemon/front/nbd-protocol.h"

enum {
  MAX_QUERIES = 1024
};

static const char *const names[NR_MAP_KINDS] = {
  [MAP_ALLOCATION] = "base:allocation",
  [MAP_RESIDENCY] = "blobpager:residency",
};

const char *
context_name (enum map_kind kind)
{
  return names[kind];
}

uint32_t
context_id (enum map_kind kind)
{
  return (uint32_t) kind + 1;
}

uint32_t
context_flags (enum map_kind kind, uint32_t state)
{
  if (kind == MAP_RESIDENCY)
    return state;
  return state == MAP_HOLE ? NBD_STATE_HOLE | NBD_STATE_ZERO : 0;
}

/* ---- Decoding ---- */

/* What has not been decoded yet. */
struct cursor {
  const uint8_t *data;
  size_t len;
};

/* Returns false if nothing is left. */
static bool
take_u32 (struct cursor *cursor, uint32_t *ret_value)
{
  if (cursor->len < 4)
    return false;
  *ret_value = get_be32 (cursor->data);
  cursor->data += 4;
  cursor->len -= 4;
  return true;
}

/* A length and so many bytes. */
static bool
take_string (struct cursor *cursor, const uint8_t **ret_data,
             size_t *ret_len)
{
  uint32_t len;

  if (!take_u32 (cursor, &len) || len > cursor->len)
    return false;
  *ret_data = cursor->data;
  *ret_len = len;
  cursor->data += len;
  cursor->len -= len;
  return true;
}

/* The contexts that QUERY matches. */
static unsigned
match (const uint8_t *query, size_t len, bool lists)
{
  unsigned contexts = 0;
  enum map_kind kind;

  for (kind = 0; kind < NR_MAP_KINDS; kind++) {
    const char *name = names[kind];
    const size_t space_len = (size_t) (strchr (name, ':') + 1 - name);

    if ((len == strlen (name) && memcmp (query, name, len) == 0) ||
        (lists && len == space_len && memcmp (query, name, len) == 0))
      contexts |= CONTEXT (kind);
  }
  return contexts;
}

static int
decode_queries (struct cursor *cursor, uint32_t count, bool lists,
                unsigned *ret_contexts)
{
  unsigned contexts = 0;
  const uint8_t *query;
  size_t len;

  for (; count > 0; count--) {
    if (!take_string (cursor, &query, &len))
      return -EPROTO;
    if (len > NBD_MAX_STRING)
      return -ERANGE;
    contexts |= match (query, len, lists);
  }
  *ret_contexts = contexts;
  return 0;
}

int
context_query_decode (const uint8_t *data, size_t len, bool lists,
                      struct context_query *ret_query)
{
  struct cursor cursor = { data, len };
  struct context_query query;
  uint32_t count;
  int r;

  if (!take_string (&cursor, &query.export_name, &query.export_name_len) ||
      !take_u32 (&cursor, &count) || count > cursor.len / 4)
    return -EPROTO;
  if (count > MAX_QUERIES)
    return -ERANGE;
  r = decode_queries (&cursor, count, lists, &query.contexts);
  if (r < 0)
    return r;
  if (cursor.len > 0)
    return -EPROTO;
  if (count == 0 && lists)
    query.contexts = CONTEXT (NR_MAP_KINDS) - 1;
  *ret_query = query;
  return 0;
}
