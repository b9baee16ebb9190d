/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The profile commands without the daemon: each opens the store, does one
 * thing, and closes it.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/store-profiles.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"

int
store_profiles_list (const char *path, struct json_object **ret_obj,
                     struct bp_error *err)
{
  CLEANUP_STORE struct bp_store *store = NULL;
  CLEANUP_FREE char *json = NULL;
  int r = bp_store_open (&store, path, BP_STORE_READ, err);

  if (r == 0)
    r = bp_store_list_profiles (store, &json, err);
  if (r < 0)
    return r;
  *ret_obj = json_tokener_parse (json);
  return *ret_obj ? 0 : bp_error_set (err, -ENOMEM, "profiles: %m");
}

int
store_profiles_get (const char *path, const char *name,
                    struct json_object **ret_meta, uint8_t **ret_data,
                    size_t *ret_len, struct bp_error *err)
{
  CLEANUP_STORE struct bp_store *store = NULL;
  CLEANUP_FREE char *meta = NULL;
  CLEANUP_FREE uint8_t *data = NULL;
  size_t len;
  int r = bp_store_open (&store, path, BP_STORE_READ, err);

  if (r == 0)
    r = bp_store_get_profile (store, name, true, &meta, &data, &len, err);
  if (r < 0)
    return r;
  r = bp_json_parse (meta, strlen (meta), ret_meta);
  if (r < 0)
    return bp_error_set (err, r, "profile '%s': metadata: %m", name);
  *ret_data = steal_ptr (&data);
  *ret_len = len;
  return 0;
}

int
store_profiles_delete (const char *path, const char *name,
                       struct bp_error *err)
{
  CLEANUP_STORE struct bp_store *store = NULL;
  const int r = bp_store_open (&store, path, BP_STORE_WRITE, err);

  return r < 0 ? r : bp_store_delete_profile (store, name, err);
}
