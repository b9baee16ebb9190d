/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The pidfile: there, whole, from when the daemon is ready to serve until
 * it ends.
 */
#ifndef BP_PIDFILE_H
#define BP_PIDFILE_H

#include "lib/error.h"

/* Write our process id to PATH: a new file, renamed into place. */
int pidfile_write (const char *path, struct bp_error *err);

/* Remove PATH, unless it holds another's process id by now. */
void pidfile_remove (const char *path);

#endif /* BP_PIDFILE_H */
