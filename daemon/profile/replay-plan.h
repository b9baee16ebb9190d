/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a replay has to do: the distinct roots of a profile, in the order
 * of their first message, and its page-ins, each window once, in order.
 *
 * Threads: pure functions on the caller's memory.
 */
#ifndef BP_REPLAY_PLAN_H
#define BP_REPLAY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/profile.h"

/* A window. */
struct plan_item {
  uint64_t offset;   /* The lowest that a message gives, bytes in the blob;
                        any value. */
  uint32_t blob;     /* Number of its root in the plan. */
  bool was_resident; /* For the replay. */
};

struct replay_plan {
  struct bp_root *roots; /* Owned. */
  size_t nr_roots;
  struct plan_item *items; /* Owned. */
  size_t nr_items;
};

/* Returns 0 or -ENOMEM. */
int replay_plan_make (struct replay_plan *ret_plan,
                      const struct bp_blob_message *messages, size_t count);
void replay_plan_done (struct replay_plan *plan);

#endif /* BP_REPLAY_PLAN_H */
