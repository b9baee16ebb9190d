/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The commands' end of the control socket. */
#ifndef BP_CONTROL_CLIENT_H
#define BP_CONTROL_CLIENT_H

#include <stddef.h>

#include <json-c/json.h>

#include "lib/error.h"

/* A connection to the daemon. */
struct control_client {
  int fd;
  char *path; /* Of the control socket; owned. */
};
#define CONTROL_CLIENT_NONE \
  {                         \
    .fd = -1                \
  }

/* Connect to PATH, or where the daemon is by default if it is NULL. */
int control_client_open (struct control_client *client, const char *path,
                         struct bp_error *err);

/* Send REQUEST and wait for the reply.  A reply that says it failed is a
 * failure here, with its code and its text.  The caller owns *ret_reply.
 */
int control_client_call (struct control_client *client,
                         struct json_object *request,
                         struct json_object **ret_reply,
                         struct bp_error *err);

/* Harmless for CONTROL_CLIENT_NONE. */
void control_client_close (struct control_client *client);

#define CLEANUP_CONTROL_CLIENT \
  __attribute__ ((cleanup (control_client_close)))

#endif /* BP_CONTROL_CLIENT_H */
