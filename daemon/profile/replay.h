/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A replay: pages a profile in ahead of the client, and keeps what it
 * paged in pinned until it is freed (rule 2).
 *
 * Threads: each replay has one of its own; the functions here may be
 * called from any thread, and none waits for the driver.
 */
#ifndef BP_REPLAY_H
#define BP_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/profile.h"

struct replay;
struct fetcher;
struct pager;
struct rate_limit;

struct replay_config {
  struct pager *pager; /* Borrowed, as the next two. */
  struct fetcher *fetcher;
  struct rate_limit *limit; /* Of all replays together. */
  const char *name;         /* Of the profile, for the log; copied. */
  /* Called from the replay's thread, no lock held, when it has drained. */
  void (*drained) (void *opaque);
  void *opaque;
};

/* Start replaying MESSAGES, which are copied.  Returns 0, -ENOMEM, or the
 * system's code for a thread that does not start.
 */
int replay_start (struct replay **ret_replay,
                  const struct replay_config *config,
                  const struct bp_blob_message *messages, size_t count,
                  struct bp_error *err);

/* Everything has been asked for and has come, or failed. */
bool replay_is_drained (struct replay *replay);

/* End it, drained or not, and release its pins.  Does not wait for what
 * is on its way.
 */
void replay_free (struct replay *replay);

struct replay_counts {
  uint64_t blobs_named; /* Distinct roots in the profile. */
  uint64_t blobs_opened;
  uint64_t blobs_missing; /* The store lacks them. */
  uint64_t bytes_prefetched;
  uint64_t bytes_used; /* Of these, by a client. */
  uint64_t late;       /* Windows: the client came first. */
  uint64_t wasted;     /* Bytes prefetched and not used. */
  uint64_t not_pinned; /* Windows left out: the pin share was full. */
};
void replay_count (struct replay *replay, struct replay_counts *ret_counts);

#endif /* BP_REPLAY_H */
