/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The status reply: what the daemon serves, holds, has verified and is
 * recording or replaying now.  Its members are listed in blobpagerd(8).
 *
 * Threads: the control loop's; nothing here waits.
 */
#include <config.h>

#include <unistd.h>

#include "daemon/control/commands.h"
#include "daemon/metrics.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/pager.h"
#include "daemon/profile/profile.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/sha256.h"

/* A new member KEY of REPLY: an object, borrowed from it. */
static struct json_object *
add_object (struct json_object *reply, const char *key)
{
  struct json_object *obj = json_object_new_object ();

  json_object_object_add (reply, key, obj);
  return obj;
}

/* For pager_for_each_export; OPAQUE is the array. */
static void
add_export (void *opaque, struct export *export)
{
  const struct export_info *info = export_get_info (export);
  struct json_object *obj = json_object_new_object ();
  struct export_counts counts;
  char root[BP_ROOT_HEX_SIZE];

  export_get_counts (export, &counts);
  bp_json_add_string (obj, "name", info->name);
  bp_json_add_string (obj, "root", bp_root_format (&info->root, root));
  bp_json_add_string (obj, "tag", info->tag);
  bp_json_add_u64 (obj, "size", info->size);
  bp_json_add_u64 (obj, "clients", counts.clients);
  bp_json_add_u64 (obj, "reads", counts.reads);
  bp_json_add_u64 (obj, "bytes_read", counts.bytes_read);
  bp_json_add_u64 (obj, "stalls", counts.stalls);
  bp_json_add_double (obj, "stall_seconds",
                      (double) counts.stall_ns / (double) NS_PER_SEC);
  json_object_array_add (opaque, obj);
}

static void
add_exports (struct json_object *reply, struct pager *pager)
{
  struct json_object *exports = json_object_new_array ();

  pager_for_each_export (pager, add_export, exports);
  json_object_object_add (reply, "exports", exports);
}

static void
add_clients (struct json_object *reply)
{
  struct json_object *obj = add_object (reply, "clients");

  bp_json_add_u64 (obj, "connections", METRIC_GET (client_connections));
  bp_json_add_u64 (obj, "reads", METRIC_GET (client_reads));
  bp_json_add_u64 (obj, "bytes", METRIC_GET (client_bytes));
  bp_json_add_u64 (obj, "errors", METRIC_GET (client_errors));
}

static void
add_cache (struct json_object *reply)
{
  struct json_object *obj = add_object (reply, "cache");

  bp_json_add_u64 (obj, "budget_bytes", METRIC_GET (cache_budget_bytes));
  bp_json_add_u64 (obj, "used_bytes", METRIC_GET (cache_used_bytes));
  bp_json_add_u64 (obj, "pinned_bytes", METRIC_GET (cache_pinned_bytes));
  bp_json_add_u64 (obj, "hits", METRIC_GET (cache_hits));
  bp_json_add_u64 (obj, "misses", METRIC_GET (cache_misses));
  bp_json_add_u64 (obj, "evictions", METRIC_GET (cache_evictions));
}

static void
add_verify (struct json_object *reply)
{
  struct json_object *obj = add_object (reply, "verify");

  bp_json_add_u64 (obj, "blobs", METRIC_GET (verify_blobs));
  bp_json_add_u64 (obj, "bytes", METRIC_GET (verify_bytes));
  bp_json_add_u64 (obj, "corrupt", METRIC_GET (verify_corrupt));
  bp_json_add_string (obj, "sha256", bp_sha256_name ());
}

static void
add_driver (struct json_object *reply, struct driver *driver)
{
  struct json_object *obj = add_object (reply, "driver");

  bp_json_add_string (obj, "uri", driver_uri (driver));
  bp_json_add_bool (obj, "connected", driver_is_connected (driver));
  bp_json_add_u64 (obj, "sessions", METRIC_GET (driver_sessions));
  bp_json_add_u64 (obj, "opens", METRIC_GET (driver_opens));
  bp_json_add_u64 (obj, "reads", METRIC_GET (driver_reads));
  bp_json_add_u64 (obj, "bytes", METRIC_GET (driver_bytes));
  bp_json_add_u64 (obj, "errors", METRIC_GET (driver_errors));
  bp_json_add_u64 (obj, "missing", METRIC_GET (driver_missing));
  bp_json_add_u64 (obj, "retries", METRIC_GET (driver_retries));
}

int
control_status (struct control_call *call, struct bp_error *err)
{
  const struct control_context *context = call->context;
  struct json_object *recordings = NULL, *replays = NULL;

  (void) err;
  bp_json_add_string (call->reply, "version", PACKAGE_VERSION);
  bp_json_add_u64 (call->reply, "pid", (uint64_t) getpid ());
  bp_json_add_double (call->reply, "uptime_seconds",
                      (double) (now_ns () - context->started_ns) /
                        (double) NS_PER_SEC);
  add_exports (call->reply, context->pager);
  add_clients (call->reply);
  add_cache (call->reply);
  add_verify (call->reply);
  add_driver (call->reply, context->driver);
  profiles_status (context->profiles, &recordings, &replays);
  json_object_object_add (call->reply, "recordings", recordings);
  json_object_object_add (call->reply, "replay", replays);
  return 0;
}
