/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The signals that tell the daemon something: SIGTERM and SIGINT (end),
 * SIGHUP.  They are blocked in every thread and read as from a file, so
 * that waiting for one can be part of waiting for something else.
 *
 * Threads: main only, before any other starts.
 */
#ifndef BP_SIGNALS_H
#define BP_SIGNALS_H

#include <stdbool.h>

#include "lib/error.h"

struct signals {
  int fd;     /* Readable while one of them is pending. */
  int end_fd; /* The same, of SIGTERM and SIGINT; not to be read. */
};

/* Block them, for all threads to come; SIGPIPE is ignored. */
int signals_init (struct signals *signals, struct bp_error *err);
void signals_done (struct signals *signals);

/* Take one that is pending: its number, or 0. */
int signals_take (struct signals *signals);

/* Take all; true if one of them tells us to end. */
bool signals_take_end (struct signals *signals);

#endif /* BP_SIGNALS_H */
