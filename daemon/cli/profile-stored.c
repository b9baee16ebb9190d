/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager profile list, show and delete: from the running daemon, or
 * with --store from the store itself.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/control-client.h"
#include "daemon/cli/profile-actions.h"
#include "daemon/cli/profile-text.h"
#include "daemon/cli/store-profiles.h"
#include "lib/base/cleanup.h"
#include "lib/base/hex.h"
#include "lib/base/json.h"
#include "lib/profile.h"

/* Ask the daemon COMMAND, about the name of ARGS if it has one. */
static int
call (const char *command, const struct profile_args *args,
      struct json_object **ret_reply, struct bp_error *err)
{
  CLEANUP_CONTROL_CLIENT struct control_client client = CONTROL_CLIENT_NONE;
  CLEANUP_JSON struct json_object *request = json_object_new_object ();
  const int r = control_client_open (&client, args->control_path, err);

  bp_json_add_string (request, "command", command);
  if (args->name != NULL)
    bp_json_add_string (request, "name", args->name);
  return r < 0 ? r : control_client_call (&client, request, ret_reply, err);
}

int
profile_list (const struct profile_args *args, struct bp_error *err)
{
  CLEANUP_JSON struct json_object *list = NULL;
  struct json_object *rows;
  const int r = args->store_path != NULL
                  ? store_profiles_list (args->store_path, &list, err)
                  : call ("profile-list", args, &list, err);

  if (r < 0)
    return r;
  if (!json_object_object_get_ex (list, "profiles", &rows) ||
      !json_object_is_type (rows, json_type_array))
    return bp_error_set (err, -EPROTO, "list: the reply is malformed");
  if (args->json) {
    json_object_object_del (list, "ok");
    cli_print_json (list);
  }
  else
    profile_print_list (rows, stdout);
  return 0;
}

/* Hexadecimal digits to bytes that the caller frees. */
static int
decode_data (const char *hex, uint8_t **ret_data, size_t *ret_len,
             struct bp_error *err)
{
  const size_t len = strlen (hex) / 2;
  CLEANUP_FREE uint8_t *data = NULL;

  if (len > BP_PROFILE_MAX_SIZE)
    return bp_error_set (err, -ERANGE, "show: the profile is too large");
  data = malloc (len + 1);
  if (data == NULL)
    return bp_error_set (err, -ENOMEM, "show: %m");
  if (!bp_hex_decode (hex, data, len))
    return bp_error_set (err, -EPROTO, "show: the reply is malformed");
  *ret_data = steal_ptr (&data);
  *ret_len = len;
  return 0;
}

static int
get_from_daemon (const struct profile_args *args,
                 struct json_object **ret_meta, uint8_t **ret_data,
                 size_t *ret_len, struct bp_error *err)
{
  CLEANUP_JSON struct json_object *reply = NULL;
  struct json_object *meta;
  const char *hex;
  int r = call ("profile-show", args, &reply, err);

  if (r < 0)
    return r;
  hex = bp_json_get_string (reply, "data");
  if (hex == NULL ||
      !json_object_object_get_ex (reply, "profile", &meta) ||
      !json_object_is_type (meta, json_type_object))
    return bp_error_set (err, -EPROTO, "show: the reply is malformed");
  r = decode_data (hex, ret_data, ret_len, err);
  if (r == 0)
    *ret_meta = json_object_get (meta);
  return r;
}

int
profile_show (const struct profile_args *args, struct bp_error *err)
{
  CLEANUP_JSON struct json_object *meta = NULL;
  CLEANUP_JSON struct json_object *obj = NULL;
  CLEANUP_FREE uint8_t *data = NULL;
  size_t len;
  int r = args->store_path != NULL
            ? store_profiles_get (args->store_path, args->name, &meta, &data,
                                  &len, err)
            : get_from_daemon (args, &meta, &data, &len, err);

  if (r < 0)
    return r;
  if (!args->json)
    return profile_print (args->name, meta, data, len, stdout, err);
  r = profile_to_json (args->name, meta, data, len, &obj, err);
  if (r == 0)
    cli_print_json (obj);
  return r;
}

int
profile_delete (const struct profile_args *args, struct bp_error *err)
{
  CLEANUP_JSON struct json_object *reply = NULL;

  if (args->store_path != NULL)
    return store_profiles_delete (args->store_path, args->name, err);
  return call ("profile-delete", args, &reply, err);
}
