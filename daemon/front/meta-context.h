/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Metadata contexts: under which names, identifiers and flags BLOCK_STATUS
 * tells each kind of map.  Pure functions.
 */
#ifndef BP_META_CONTEXT_H
#define BP_META_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/pager/pager.h"

/* A set of contexts has a bit for each kind of map. */
#define CONTEXT(kind) (1u << (kind))

/* The name of a context, a string. */
const char *context_name (enum map_kind kind);

/* What stands for it in replies: the same on every connection, not 0. */
uint32_t context_id (enum map_kind kind);

/* The flags of an extent in STATE. */
uint32_t context_flags (enum map_kind kind, uint32_t state);

/* What LIST_META_CONTEXT or SET_META_CONTEXT says. */
struct context_query {
  const uint8_t *export_name; /* Borrowed from the data. */
  size_t export_name_len;
  unsigned contexts; /* Set of those that the queries match. */
};

/* Decode the LEN bytes of DATA of the option: u32 length, export's name,
 * u32 count of queries, of each u32 length and the query.
 *
 * A query is a context's name; if LISTS, it may be a namespace and a
 * colon, and no query at all matches every context.  Others match nothing.
 *
 * Returns 0; -EPROTO; or -ERANGE if there are too many queries, or one is
 * too long.
 */
int context_query_decode (const uint8_t *data, size_t len, bool lists,
                          struct context_query *ret_query);

#endif /* BP_META_CONTEXT_H */
