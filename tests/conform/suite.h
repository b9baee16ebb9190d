/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* All checks, and running them. */
#ifndef BP_CONFORM_SUITE_H
#define BP_CONFORM_SUITE_H

#include <stdbool.h>

#include "conform/options.h"

struct target;

/* How many checks CHOICE lets through. */
unsigned suite_count (const struct choice *choice);

/* Print them. */
void suite_list (const struct choice *choice);

/* Run them against TARGET and print TAP.  Returns how many failed; IS_STRICT
 * counts those that only passed with a remark, too.
 */
unsigned suite_run (const struct target *target, const struct choice *choice,
                    bool is_strict);

#endif /* BP_CONFORM_SUITE_H */
