/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The JSON that goes with a profile: its metadata (blobpager-profile(5))
 * and the counters of a replay (rule 11).
 *
 * Threads: pure functions.
 */
#ifndef BP_PROFILE_META_H
#define BP_PROFILE_META_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/merkle.h"
#include "daemon/profile/replay.h"

/* How a replay went, at its end. */
struct replay_result {
  struct replay_counts counts;
  uint64_t stalls; /* Of the exports it was for, while it ran. */
  uint64_t stall_ns;
};

/* Add COUNTS to OBJ, a member each. */
void add_replay_counts (struct json_object *obj,
                        const struct replay_counts *counts);

/* The counters as text, the caller's to free.  Returns 0 or -ENOMEM. */
int counters_encode (const struct replay_result *result, char **ret_text,
                     struct bp_error *err);

/* What the metadata of a recorded profile says. */
struct meta_facts {
  struct bp_root root; /* Of the profile's bytes. */
  uint64_t records;
  bool has_image;       /* Clients read one image only … */
  struct bp_root image; /* … this one. */
  bool automatic;
  double seconds;                     /* That the recording took. */
  uint64_t messages;                  /* In the driver's log. */
  uint64_t opens;                     /* Client opens. */
  const struct replay_result *replay; /* That ran meanwhile, or NULL. */
};

/* Metadata for WRITE_PROFILE, the caller's to free. */
int meta_encode (const struct meta_facts *facts, char **ret_text,
                 struct bp_error *err);

#endif /* BP_PROFILE_META_H */
