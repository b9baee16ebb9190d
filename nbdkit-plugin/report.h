/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The one place where the plugin's errors become nbdkit's. */
#ifndef BP_REPORT_H
#define BP_REPORT_H

#include "lib/error.h"

/* Log ERR and make it the error of this callback.  Returns -1, so that a
 * failing callback is one line.
 */
int report_error (const struct bp_error *err);

#endif /* BP_REPORT_H */
