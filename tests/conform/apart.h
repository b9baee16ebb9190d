/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Running a function in a process of its own, with its output caught and
 * its time limited.
 */
#ifndef BP_CONFORM_APART_H
#define BP_CONFORM_APART_H

#include <stdbool.h>
#include <stddef.h>

#include "conform/check.h"

enum {
  MAX_OUTPUT = 64 << 10, /* Bytes; what a process prints beyond is lost. */
};

struct outcome {
  enum check_result result;
  size_t len;
  char text[MAX_OUTPUT + 1]; /* What was printed, and a NUL. */
};

/* Run RUN (TARGET) within TIMEOUT_S seconds, and a little more before it
 * is killed.  A process that dies has failed.  Returns 0, or -errno if it
 * could not be started.
 */
int run_apart (void (*run) (const struct target *target),
               const struct target *target, unsigned timeout_s,
               struct outcome *ret_outcome);

#endif /* BP_CONFORM_APART_H */
