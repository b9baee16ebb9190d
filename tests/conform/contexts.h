/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The conversation of LIST_META_CONTEXT and SET_META_CONTEXT. */
#ifndef BP_CONFORM_CONTEXTS_H
#define BP_CONFORM_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option_data;
struct session;
struct target;

#define ALLOCATION_CONTEXT "base:allocation"

/* That no server has. */
#define UNKNOWN_NAMESPACE "x-blobpager-nbd-conform:none"
#define UNKNOWN_LEAF "base:blobpager-nbd-conform-none"

enum {
  MAX_CONTEXTS = 256,
};

struct context {
  uint32_t id;
  size_t len;
  const char *name; /* LEN bytes and a NUL. */
};

struct contexts {
  bool is_closed; /* By the server, instead of an answer. */
  uint32_t final; /* The reply that ended it. */
  unsigned count;
  struct context list[MAX_CONTEXTS];
};

/* Ask for the contexts of the target's export that match QUERIES. */
void ask_contexts (struct session *session, uint32_t option,
                   const char *const *queries, unsigned count,
                   struct contexts *contexts);

/* Of another export. */
void ask_contexts_of (struct session *session, uint32_t option,
                      const char *export, const char *const *queries,
                      unsigned count, struct contexts *contexts);

/* The data of such an option, for checks that spoil it. */
void put_contexts (struct option_data *data, const char *export,
                   size_t export_len, const char *const *queries,
                   unsigned count);

/* Receive what was asked for. */
void recv_contexts (struct session *session, uint32_t option,
                    struct contexts *contexts);

/* The same, and it must be acknowledged; skips if the server does not know
 * OPTION.
 */
struct contexts *expect_contexts (struct session *session, uint32_t option,
                                  const char *const *queries,
                                  unsigned count);

/* Skip if base:allocation cannot be selected. */
void skip_without_allocation (const struct target *target);

/* Fail unless it was acknowledged. */
void expect_contexts_ack (const struct contexts *contexts, uint32_t option);

/* The context NAME, or NULL. */
const struct context *contexts_find (const struct contexts *contexts,
                                     const char *name);

/* Ask for structured replies and select base:allocation, or skip. */
void select_allocation (struct session *session, uint32_t *ret_id);

#endif /* BP_CONFORM_CONTEXTS_H */
