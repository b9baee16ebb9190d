/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a session's active recordings have seen.
 *
 * A log holds one FileMessage (key, window start) for each window that a
 * data read covers, in the order in which the reads were issued, whatever
 * connection they came by.  The messages of one read stand together.
 *
 * Threads: any; every function takes the set's own lock, which is a leaf.
 */
#ifndef BP_RECORDING_LOG_H
#define BP_RECORDING_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

/* Active recordings of one session, at most. */
enum {
  RECORDING_LOG_MAX_ACTIVE = 16
};

struct recording_set;

int recording_set_new (struct recording_set **ret_set);
/* Aborts what is active. */
void recording_set_free (struct recording_set *set);

/* Returns 0; -EBUSY when too many are active; -ENOMEM.  Ids count from 1
 * and are never reused.
 */
int recording_start (struct recording_set *set, uint64_t *ret_id,
                     struct bp_error *err);

/* End recording ID: its messages, packed, are the caller's to free.
 * Returns 0; -EINVAL for an id that is not active; -ERANGE if it had more
 * than BP_RECORDING_MAX messages, -ENOMEM if it could not be kept.  It has
 * ended in every case.
 */
int recording_stop (struct recording_set *set, uint64_t id,
                    uint8_t **ret_data, size_t *ret_len,
                    struct bp_error *err);

/* Returns 0 or -EINVAL. */
int recording_abort (struct recording_set *set, uint64_t id,
                     struct bp_error *err);

bool recording_is_active (struct recording_set *set);

/* A read of windows FIRST to LAST of KEY is about to be issued.  Cannot
 * fail: a log that is full or cannot grow says so when it is stopped.
 */
void recording_append (struct recording_set *set, uint64_t key,
                       uint64_t first, uint64_t last);

#endif /* BP_RECORDING_LOG_H */
