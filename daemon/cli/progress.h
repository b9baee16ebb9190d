/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Progress of long work, on standard error: one line that is written over
 * on a terminal, and with --progress in a pipe a new line each second.
 */
#ifndef BP_PROGRESS_H
#define BP_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
  const char *what; /* A word before the figures; borrowed. */
  bool is_shown;
  bool is_terminal;
  bool has_line; /* A line is on the terminal and must be ended. */
  uint64_t started_ns;
  uint64_t shown_ns; /* When a line was last written. */
};

/* FORCE: show it even where there is no terminal. */
void progress_start (struct progress *progress, const char *what,
                     bool force);

/* DONE of TOTAL bytes (0: unknown).  Cheap to call often.  PROGRESS is a
 * struct progress: fits bp_progress_fn.
 */
void progress_show (void *progress, uint64_t done, uint64_t total);

/* Take the line off the terminal, so that something else can be printed.
 */
void progress_clear (struct progress *progress);

#endif /* BP_PROGRESS_H */
