/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* How one of nbdkit's workers waits for what another one does.
 *
 * Threads: a wait belongs to one worker; the departure is shared by all
 * workers of a connection.
 */
#ifndef BP_WAIT_H
#define BP_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"

/* Of a connection: the worker that was the first to leave after the
 * client had gone.  Zeroed memory is one that nobody has left.
 */
struct departure {
  atomic_int first; /* Its thread id; 0: none yet. */
};

struct wait {
  struct departure *departure; /* Borrowed. */
  uint64_t deadline_ns;        /* By then what is waited for has arrived. */
  unsigned slice_ns;           /* The next sleep. */
};

struct wait wait_begin (struct departure *departure);

/* True for a second: what has not been received may still be.  */
bool wait_may_arrive (const struct wait *wait);

/* Sleep a little.  Called without locks.  Returns 0, or -ESHUTDOWN when
 * the client has gone or nbdkit ends.
 */
int wait_slice (struct wait *wait, struct bp_error *err);

#endif /* BP_WAIT_H */
