/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The commands of the control socket: one table, from which requests are
 * dispatched and the documentation is checked.
 */
#ifndef BP_COMMANDS_H
#define BP_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/tag.h"

struct driver;
struct pager;
struct profiles;

/* What commands work on.  All borrowed; outlives every call. */
struct control_context {
  struct pager *pager;
  struct profiles *profiles;
  struct driver *driver;
  uint64_t started_ns; /* When the daemon started. */
};

/* One request under way.  The caller's, zeroed but for its first part. */
struct control_call {
  const struct control_context *context;
  struct json_object *request; /* Borrowed. */
  struct json_object *reply;   /* Borrowed; the command adds members. */

  /* What the command did, for the owner of the connection. */
  char started[BP_NAME_SIZE]; /* This recording was started, or "". */
  char ended[BP_NAME_SIZE];   /* This one was stopped or aborted, or "". */
  bool foreground;            /* The connection owns what was started. */
};

struct control_command {
  const char *name;
  bool blocks; /* It waits for the driver: not for the event loop. */
  int (*run) (struct control_call *call, struct bp_error *err);
};

/* The row of NAME, or NULL. */
const struct control_command *control_find_command (const char *name);

/* Abort the recording NAME, whose connection has gone.  Blocks. */
void control_abort_recording (const struct control_context *context,
                              const char *name);

/* status.c: add the members of a status reply. */
int control_status (struct control_call *call, struct bp_error *err);

/* metrics-text.c: add "text", for Prometheus. */
int control_metrics (struct control_call *call, struct bp_error *err);

#endif /* BP_COMMANDS_H */
