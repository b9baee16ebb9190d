/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The conversation of INFO and GO. */
#ifndef BP_CONFORM_INFO_H
#define BP_CONFORM_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;
struct target;

enum {
  MAX_INFO_ITEMS = 64,
};

/* What the server answered.  The items are as they came; what is taken
 * out of them below is the last of each type that is long enough.
 */
struct info {
  bool is_closed;    /* By the server, instead of an answer. */
  uint32_t final;    /* The reply that ended it. */
  unsigned nr_items; /* NBD_REP_INFO before that. */
  struct info_item {
    uint16_t type;
    uint32_t len;        /* Of the reply, with the type. */
    const uint8_t *data; /* Behind the type. */
  } items[MAX_INFO_ITEMS];

  bool has_export;
  uint64_t size;
  uint16_t flags;
  bool has_block_size;
  uint32_t min_block, preferred_block, max_block;
};

/* A session for INFO and GO; skips if the server has neither. */
struct session *begin_info (const struct target *target);

/* Ask with OPTION about the target's export, and request its block sizes,
 * as a client must that is to keep to them.
 */
void ask_info (struct session *session, uint32_t option, struct info *info);

/* About NAME, and request what is in the list. */
void ask_info_of (struct session *session, uint32_t option, const void *name,
                  size_t name_len, const uint16_t *requests, unsigned count,
                  struct info *info);

/* Receive what was asked for. */
void recv_info (struct session *session, uint32_t option, struct info *info);

/* Fail unless it was acknowledged, with an NBD_INFO_EXPORT. */
void expect_info_ack (const struct info *info, uint32_t option);

/* The first item of TYPE, or NULL. */
const struct info_item *info_find (const struct info *info, uint16_t type);

#endif /* BP_CONFORM_INFO_H */
