/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager profile start, stop and abort.
 *
 * "start --foreground" keeps its connection, which owns the recording:
 * when we are killed, the daemon aborts it.  So Ctrl-C needs no handler,
 * and all that is left to do is to look whether it has ended by itself.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/control-client.h"
#include "daemon/cli/profile-actions.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"

enum {
  LOOK_MS = 250
}; /* How often --foreground looks. */

/* A new request; the caller owns it. */
static struct json_object *
new_request (const char *command)
{
  struct json_object *request = json_object_new_object ();

  bp_json_add_string (request, "command", command);
  return request;
}

static void
add_text (struct json_object *request, const char *key, const char *value)
{
  if (value != NULL)
    bp_json_add_string (request, key, value);
}

static void
add_seconds (struct json_object *request, const char *key, unsigned seconds)
{
  if (seconds != 0)
    bp_json_add_u64 (request, key, seconds);
}

static void
add_flag (struct json_object *request, const char *key, bool flag)
{
  if (flag)
    bp_json_add_bool (request, key, true);
}

static struct json_object *
new_start_request (const struct profile_args *args)
{
  struct json_object *request = new_request ("profile-start");

  add_text (request, "name", args->name);
  add_text (request, "export", args->export_tag);
  add_text (request, "mode", args->mode);
  add_seconds (request, "for", args->for_s);
  add_seconds (request, "quiet", args->quiet_s);
  add_flag (request, "attach", args->attach);
  add_flag (request, "until_exit", args->until_exit);
  add_flag (request, "foreground", args->foreground);
  return request;
}

/* True if the array KEY of STATUS has NAME, and not as something that has
 * ended.
 */
static bool
has_live (struct json_object *status, const char *key, const char *name)
{
  struct json_object *rows;

  if (!json_object_object_get_ex (status, key, &rows) ||
      !json_object_is_type (rows, json_type_array))
    return false;
  for (size_t i = 0; i < json_object_array_length (rows); i++) {
    struct json_object *row = json_object_array_get_idx (rows, i);
    const char *row_name = bp_json_get_string (row, "name");
    const char *state = bp_json_get_string (row, "state");

    if (row_name != NULL && strcmp (row_name, name) == 0 &&
        (state == NULL || strcmp (state, "ended") != 0))
      return true;
  }
  return false;
}

/* 1 if the daemon still records NAME, or only replays it, 0 if not. */
static int
is_recording (struct control_client *client, const char *name,
              struct bp_error *err)
{
  CLEANUP_JSON struct json_object *request = new_request ("status");
  CLEANUP_JSON struct json_object *reply = NULL;
  const int r = control_client_call (client, request, &reply, err);

  if (r < 0)
    return r;
  return has_live (reply, "recordings", name) ||
         has_live (reply, "replay", name);
}

/* Until the recording NAME has ended. */
static int
wait_for_end (struct control_client *client, const char *name,
              struct bp_error *err)
{
  const struct timespec pause = { .tv_nsec = LOOK_MS * NS_PER_MS };
  int r;

  while ((r = is_recording (client, name, err)) == 1)
    nanosleep (&pause, NULL);
  return r;
}

int
profile_start (const struct profile_args *args, struct bp_error *err)
{
  CLEANUP_CONTROL_CLIENT struct control_client client = CONTROL_CLIENT_NONE;
  CLEANUP_JSON struct json_object *request = new_start_request (args);
  CLEANUP_JSON struct json_object *reply = NULL;
  const char *name;
  int r = control_client_open (&client, args->control_path, err);

  if (r == 0)
    r = control_client_call (&client, request, &reply, err);
  if (r < 0 || !args->foreground)
    return r;
  name = bp_json_get_string (reply, "name");
  if (name == NULL)
    return bp_error_set (err, -EPROTO, "start: the reply has no name");
  return wait_for_end (&client, name, err);
}

/* COMMAND with the name of ARGS, on a connection of its own. */
static int
call (const char *command, const struct profile_args *args,
      struct json_object **ret_reply, struct bp_error *err)
{
  CLEANUP_CONTROL_CLIENT struct control_client client = CONTROL_CLIENT_NONE;
  CLEANUP_JSON struct json_object *request = new_request (command);
  const int r = control_client_open (&client, args->control_path, err);

  add_text (request, "name", args->name);
  return r < 0 ? r : control_client_call (&client, request, ret_reply, err);
}

int
profile_stop (const struct profile_args *args, struct bp_error *err)
{
  CLEANUP_JSON struct json_object *reply = NULL;
  const char *name, *root;
  uint64_t records;
  const int r = call ("profile-stop", args, &reply, err);

  if (r < 0)
    return r;
  name = bp_json_get_string (reply, "name");
  root = bp_json_get_string (reply, "root");
  if (name == NULL || root == NULL ||
      !bp_json_get_u64 (reply, "records", &records))
    return bp_error_set (err, -EPROTO, "stop: the reply is malformed");
  if (args->json) {
    json_object_object_del (reply, "ok");
    cli_print_json (reply);
  }
  else
    printf ("%s  %s  %" PRIu64 "\n", name, root, records);
  return 0;
}

int
profile_abort (const struct profile_args *args, struct bp_error *err)
{
  CLEANUP_JSON struct json_object *reply = NULL;

  return call ("profile-abort", args, &reply, err);
}
