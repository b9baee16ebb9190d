/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The driver's observer, which may be taken away while lanes run: that
 * waits for the calls that are under way.
 *
 * Threads: any.  The lock is held, for reading, while the observer is
 * called; so whoever takes it away must hold none that a hook takes.
 */
#ifndef BP_OBSERVING_H
#define BP_OBSERVING_H

#include <pthread.h>
#include <stdint.h>

#include "lib/merkle.h"
#include "daemon/pager/driver.h"

struct observing {
  pthread_rwlock_t lock;
  struct driver_observer observer; /* LOCK.  All NULL: none. */
};

void observing_init (struct observing *observing);
void observing_done (struct observing *observing);

/* OBSERVER is copied; NULL: none from now on. */
void observing_set (struct observing *observing,
                    const struct driver_observer *observer);

void observing_key_opened (struct observing *observing, uint64_t key,
                           const struct bp_root *root);
void observing_session_lost (struct observing *observing);

#endif /* BP_OBSERVING_H */
