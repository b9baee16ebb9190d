/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Who was here: fingerprints of windows evicted a short while ago.
 *
 * A window that comes back while its ghost is young was evicted too
 * early, and goes straight to the main queue (evict.c).  A table of fixed
 * size, one place for each hash; a later ghost overwrites an earlier one,
 * and a ghost older than a table full of evictions is none.
 *
 * Threads: the caller locks.
 */
#ifndef BP_GHOST_H
#define BP_GHOST_H

#include <stdbool.h>
#include <stdint.h>

struct ghost_table {
  uint64_t *places; /* Fingerprint in the high half, number of the eviction
                       in the low; 0: empty. */
  uint32_t mask;    /* Places - 1. */
  uint32_t now;     /* Evictions so far; wraps. */
};

/* Room for at least WINDOWS.  Returns 0 or -ENOMEM. */
int ghost_init (struct ghost_table *ghosts, uint64_t windows);
void ghost_done (struct ghost_table *ghosts);

void ghost_remember (struct ghost_table *ghosts, uint64_t hash);

/* True once for a hash that was remembered lately. */
bool ghost_recall (struct ghost_table *ghosts, uint64_t hash);

uint64_t ghost_table_bytes (const struct ghost_table *ghosts);

#endif /* BP_GHOST_H */
