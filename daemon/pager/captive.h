/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The captive driver: an nbdkit of our own, on a socket in a private
 * directory.
 *
 *   $BLOBPAGER_NBDKIT -f --exit-with-parent -U DIR/socket
 *                     $BLOBPAGER_PLUGIN store=STORE
 *
 * Its standard error is ours.  It is in a process group of its own, so
 * that a Ctrl-C meant for the daemon does not end the driver before the
 * daemon's reads have drained.
 *
 * Threads: a captive belongs to the thread that starts it, which must
 * outlive it: nbdkit exits with the thread that made it.
 */
#ifndef BP_CAPTIVE_H
#define BP_CAPTIVE_H

#include <stdbool.h>

#include "lib/error.h"

struct captive;

/* Make the private directory; nothing is started.  STORE is borrowed. */
int captive_new (struct captive **ret_captive, const char *store,
                 struct bp_error *err);

/* Where its socket is, or will be. */
const char *captive_socket (const struct captive *captive);

/* Start nbdkit, which must not be running. */
int captive_start (struct captive *captive, struct bp_error *err);

/* Whether it runs.  One that has ended is reaped, and how it ended is
 * logged.
 */
bool captive_is_running (struct captive *captive);

/* Terminate it: SIGTERM, and after 2 seconds SIGKILL. */
void captive_stop (struct captive *captive);

/* Stop, and remove the directory.  NULL is allowed. */
void captive_free (struct captive *captive);

#endif /* BP_CAPTIVE_H */
