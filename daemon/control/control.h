/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The control socket: JSON, one object a line, from the daemon's own user
 * or root; and the metrics.
 *
 * {"command":"status"} → {"ok":true, …} or {"ok":false,"code":"EBUSY",
 * "error":"…"}.  The table of commands is in control.c.
 */
#ifndef BP_CONTROL_H
#define BP_CONTROL_H

#include "lib/error.h"

struct control;
struct driver;
struct options;
struct pager;
struct profiles;

enum {
  CONTROL_MAX_REQUEST = 64 << 10
}; /* Bytes of one line. */

/* Bind OPTIONS->control; a stale socket is replaced, a live one is
 * -EADDRINUSE.  Who connects waits until control_run.
 */
int control_new (struct control **ret_control, const struct options *options,
                 struct bp_error *err);

/* Serve it from threads of its own.  All borrowed, until control_stop. */
int control_run (struct control *control, struct pager *pager,
                 struct profiles *profiles, struct driver *driver,
                 struct bp_error *err);

/* Close every connection, and wait for the commands under way. */
void control_stop (struct control *control);

/* Remove the socket. */
void control_free (struct control *control);

#endif /* BP_CONTROL_H */
