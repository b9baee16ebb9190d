/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the target is and offers, found out before the checks. */
#ifndef BP_CONFORM_PROBE_H
#define BP_CONFORM_PROBE_H

#include "conform/target.h"

enum {
  WHY_MAX = 4096,
};

/* Fill in TARGET->facts.  Returns 0, or a negative errno with WHY saying
 * why nothing can be tested: there is no server, it has no such export, or
 * the export may be written to.  A server that breaks the protocol is no
 * error here.
 */
int probe_target (struct target *target, char why[WHY_MAX]);

#endif /* BP_CONFORM_PROBE_H */
