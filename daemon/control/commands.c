/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The commands of the control socket.
 *
 * A command reads the members of its request, does its work and adds the
 * members of its reply; the caller adds "ok", or the error.  Members that
 * a command does not know are refused, so that a misspelt "foreground"
 * cannot leave a recording behind.
 *
 * Threads: commands that block run on a thread of their own, the others
 * on the control loop.
 */
#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/commands.h"
#include "daemon/log.h"
#include "daemon/profile/profile.h"
#include "lib/base/cleanup.h"
#include "lib/base/hex.h"
#include "lib/base/json.h"
#include "lib/base/range.h"

enum {
  MAX_SECONDS = 365 * 24 * 60 * 60
}; /* Of for and quiet. */

/* 0, or -EINVAL if the request has a member that is not in KNOWN, which
 * ends with NULL.
 */
static int
refuse_unknown (const struct control_call *call, const char *const *known,
                struct bp_error *err)
{
  json_object_object_foreach (call->request, key, value)
  {
    char quoted[64];
    size_t i = 0;

    (void) value;
    while (known[i] != NULL && strcmp (known[i], key) != 0)
      i++;
    if (known[i] == NULL)
      return bp_error_set (err, -EINVAL, "unknown member '%s'",
                           log_quote (key, strlen (key), quoted,
                                      sizeof quoted));
  }
  return 0;
}

/* Copy the string member KEY to OUT, BP_NAME_SIZE bytes; "" if absent.
 * IS_NAME judges it.
 */
static int
read_name (const struct control_call *call, const char *key,
           bool (*is_name) (const char *), char *out, struct bp_error *err)
{
  const char *name;

  out[0] = '\0';
  if (!json_object_object_get_ex (call->request, key, NULL))
    return 0;
  name = bp_json_get_string (call->request, key);
  if (name == NULL || !is_name (name))
    return bp_error_set (err, -EINVAL, "%s: not a name", key);
  strcpy (out, name); /* A name fits. */
  return 0;
}

/* "name", which must be there, and nothing else but "command". */
static int
read_only_name (const struct control_call *call, char *out,
                struct bp_error *err)
{
  static const char *const known[] = { "command", "name", NULL };
  int r = refuse_unknown (call, known, err);

  if (r == 0)
    r = read_name (call, "name", bp_is_profile_name, out, err);
  if (r == 0 && out[0] == '\0')
    r = bp_error_set (err, -EINVAL, "name: missing");
  return r;
}

/* A whole number of seconds; 0 if absent. */
static int
read_seconds (const struct control_call *call, const char *key,
              unsigned *ret_seconds, struct bp_error *err)
{
  uint64_t seconds = 0;

  if (json_object_object_get_ex (call->request, key, NULL) &&
      (!bp_json_get_u64 (call->request, key, &seconds) || seconds == 0 ||
       seconds > MAX_SECONDS))
    return bp_error_set (err, -EINVAL, "%s: not a number of seconds", key);
  *ret_seconds = (unsigned) seconds;
  return 0;
}

/* true or false; false if absent. */
static int
read_bool (const struct control_call *call, const char *key, bool *ret_value,
           struct bp_error *err)
{
  struct json_object *value;

  *ret_value = false;
  if (!json_object_object_get_ex (call->request, key, &value))
    return 0;
  if (!json_object_is_type (value, json_type_boolean))
    return bp_error_set (err, -EINVAL, "%s: neither true nor false", key);
  *ret_value = json_object_get_boolean (value);
  return 0;
}

static int
read_mode (const struct control_call *call, enum profile_mode *ret_mode,
           struct bp_error *err)
{
  const char *mode = bp_json_get_string (call->request, "mode");

  if (!json_object_object_get_ex (call->request, "mode", NULL) ||
      (mode != NULL && strcmp (mode, "record-and-replay") == 0))
    *ret_mode = PROFILE_RECORD_AND_REPLAY;
  else if (mode != NULL && strcmp (mode, "replay-xor-record") == 0)
    *ret_mode = PROFILE_REPLAY_XOR_RECORD;
  else
    return bp_error_set (err, -EINVAL,
                         "mode: neither record-and-replay nor "
                         "replay-xor-record");
  return 0;
}

static int
read_start (struct control_call *call, struct profile_start *start,
            struct bp_error *err)
{
  static const char *const known[] = {
    "command", "name", "attach", "export", "for", "quiet", "until_exit",
    "mode", "foreground", NULL
  };
  int r;

  if ((r = refuse_unknown (call, known, err)) < 0 ||
      (r = read_name (call, "name", bp_is_profile_name, start->name,
                      err)) < 0 ||
      (r = read_name (call, "export", bp_is_tag_name, start->export_tag,
                      err)) < 0 ||
      (r = read_bool (call, "attach", &start->attach, err)) < 0 ||
      (r = read_bool (call, "until_exit", &start->until_exit, err)) < 0 ||
      (r = read_bool (call, "foreground", &call->foreground, err)) < 0 ||
      (r = read_seconds (call, "for", &start->for_s, err)) < 0 ||
      (r = read_seconds (call, "quiet", &start->quiet_s, err)) < 0 ||
      (r = read_mode (call, &start->mode, err)) < 0)
    return r;
  if (start->attach && start->export_tag[0] == '\0')
    return bp_error_set (err, -EINVAL, "attach: needs an export");
  if (start->attach == (start->name[0] != '\0'))
    return bp_error_set (err, -EINVAL,
                         "exactly one of name and attach is needed");
  return 0;
}

/* The name of the recording just started.  That of an attached one is
 * its image root, which the recordings know.
 */
static void
name_started (struct control_call *call, const struct profile_start *start)
{
  CLEANUP_JSON struct json_object *recordings = NULL;
  CLEANUP_JSON struct json_object *replays = NULL;

  strcpy (call->started, start->name);
  if (!start->attach)
    return;
  profiles_status (call->context->profiles, &recordings, &replays);
  for (size_t i = 0; i < json_object_array_length (recordings); i++) {
    struct json_object *row = json_object_array_get_idx (recordings, i);
    const char *export = bp_json_get_string (row, "export");
    const char *name = bp_json_get_string (row, "name");

    if (export != NULL && name != NULL && !bp_is_tag_name (name) &&
        bp_is_profile_name (name) && strcmp (export, start->export_tag) == 0)
      strcpy (call->started, name);
  }
}

static int
run_start (struct control_call *call, struct bp_error *err)
{
  struct profile_start start = { 0 };
  int r = read_start (call, &start, err);

  if (r == 0)
    r = profiles_start (call->context->profiles, &start, err);
  if (r < 0)
    return r;
  name_started (call, &start);
  bp_json_add_string (call->reply, "name", call->started);
  return 0;
}

static int
run_stop (struct control_call *call, struct bp_error *err)
{
  struct profile_result result = { 0 };
  char name[BP_NAME_SIZE], root[BP_ROOT_HEX_SIZE];
  int r = read_only_name (call, name, err);

  if (r < 0)
    return r;
  r = profiles_stop (call->context->profiles, name, &result, err);
  strcpy (call->ended, name);
  if (r < 0)
    return r;
  bp_json_add_string (call->reply, "name", result.name);
  bp_json_add_string (call->reply, "root",
                      bp_root_format (&result.root, root));
  bp_json_add_u64 (call->reply, "records", result.records);
  return 0;
}

static int
run_abort (struct control_call *call, struct bp_error *err)
{
  char name[BP_NAME_SIZE];
  int r = read_only_name (call, name, err);

  if (r == 0)
    r = profiles_abort (call->context->profiles, name, err);
  if (r == 0)
    strcpy (call->ended, name);
  return r;
}

static int
run_list (struct control_call *call, struct bp_error *err)
{
  static const char *const known[] = { "command", NULL };
  CLEANUP_FREE char *json = NULL;
  CLEANUP_JSON struct json_object *list = NULL;
  struct json_object *array;
  int r = refuse_unknown (call, known, err);

  if (r == 0)
    r = profiles_list (call->context->profiles, &json, err);
  if (r < 0)
    return r;
  if (bp_json_parse (json, strlen (json), &list) < 0 ||
      !json_object_object_get_ex (list, "profiles", &array))
    return bp_error_set (err, -EPROTO, "the driver's list: malformed");
  json_object_object_add (call->reply, "profiles", json_object_get (array));
  return 0;
}

static int
run_show (struct control_call *call, struct bp_error *err)
{
  CLEANUP_FREE char *meta_text = NULL;
  CLEANUP_FREE uint8_t *data = NULL;
  CLEANUP_FREE char *hex = NULL;
  struct json_object *meta = NULL;
  char name[BP_NAME_SIZE];
  size_t len;
  int r = read_only_name (call, name, err);

  if (r == 0)
    r = profiles_get (call->context->profiles, name, &meta_text, &data, &len,
                      err);
  if (r < 0)
    return r;
  if (bp_json_parse (meta_text, strlen (meta_text), &meta) < 0)
    return bp_error_set (err, -EPROTO, "metadata of '%s': malformed", name);
  json_object_object_add (call->reply, "profile", meta);
  hex = malloc (2 * len + 1);
  if (hex == NULL)
    return bp_error_set (err, -ENOMEM, "profile '%s': %m", name);
  bp_hex_encode (data, len, hex);
  bp_json_add_string (call->reply, "data", hex);
  return 0;
}

static int
run_delete (struct control_call *call, struct bp_error *err)
{
  char name[BP_NAME_SIZE];
  int r = read_only_name (call, name, err);

  if (r == 0)
    r = profiles_delete (call->context->profiles, name, err);
  return r;
}

static int
run_status (struct control_call *call, struct bp_error *err)
{
  static const char *const known[] = { "command", NULL };
  const int r = refuse_unknown (call, known, err);

  return r < 0 ? r : control_status (call, err);
}

static int
run_metrics (struct control_call *call, struct bp_error *err)
{
  static const char *const known[] = { "command", NULL };
  const int r = refuse_unknown (call, known, err);

  return r < 0 ? r : control_metrics (call, err);
}

/* clang-format off */
static const struct control_command commands[] = {
  { "status",         false, run_status },
  { "metrics",        false, run_metrics },
  { "profile-start",  true,  run_start },
  { "profile-stop",   true,  run_stop },
  { "profile-abort",  true,  run_abort },
  { "profile-list",   true,  run_list },
  { "profile-show",   true,  run_show },
  { "profile-delete", true,  run_delete },
};
/* clang-format on */

const struct control_command *
control_find_command (const char *name)
{
  for (size_t i = 0; i < ARRAY_LEN (commands); i++)
    if (strcmp (commands[i].name, name) == 0)
      return &commands[i];
  return NULL;
}

void
control_abort_recording (const struct control_context *context,
                         const char *name)
{
  struct bp_error err;

  if (profiles_abort (context->profiles, name, &err) < 0)
    log_debug ("control: abort of '%s', whose owner has gone: %s", name,
               err.msg);
  else
    log_info ("control: recording '%s' aborted: its owner has gone", name);
}
