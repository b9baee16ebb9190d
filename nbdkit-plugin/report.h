/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The one place where the plugin's errors become nbdkit's. */
#ifndef BP_REPORT_H
#define BP_REPORT_H

#include "lib/error.h"

/* The errno that a client is told for CODE (a negative errno).  Corrupt,
 * malformed and missing bytes are all EIO: only what a client can act on
 * is told apart.
 */
int report_errno (int code);

/* Log ERR and make it the error of this callback.  Returns -1, so that a
 * failing callback is one line.
 */
int report_error (const struct bp_error *err);

#endif /* BP_REPORT_H */
