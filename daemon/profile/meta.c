/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Metadata and counters, written.  The members stand here in the order in
 * which a person reads them.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "daemon/profile/meta.h"

void
add_replay_counts (struct json_object *obj,
                   const struct replay_counts *counts)
{
  bp_json_add_u64 (obj, "blobs_named", counts->blobs_named);
  bp_json_add_u64 (obj, "blobs_opened", counts->blobs_opened);
  bp_json_add_u64 (obj, "blobs_missing", counts->blobs_missing);
  bp_json_add_u64 (obj, "bytes_prefetched", counts->bytes_prefetched);
  bp_json_add_u64 (obj, "bytes_used", counts->bytes_used);
  bp_json_add_u64 (obj, "late", counts->late);
  bp_json_add_u64 (obj, "wasted", counts->wasted);
  bp_json_add_u64 (obj, "not_pinned", counts->not_pinned);
}

/* The counters as a new object, the caller's. */
static struct json_object *
counters_json (const struct replay_result *result)
{
  struct json_object *obj = json_object_new_object ();

  add_replay_counts (obj, &result->counts);
  bp_json_add_u64 (obj, "stalls", result->stalls);
  bp_json_add_double (obj, "stall_seconds",
                      (double) result->stall_ns / NS_PER_SEC);
  return obj;
}

/* OBJ as one line of text. */
static int
copy_text (struct json_object *obj, char **ret_text, struct bp_error *err)
{
  const char *text =
    json_object_to_json_string_ext (obj, JSON_C_TO_STRING_PLAIN);

  *ret_text = text ? strdup (text) : NULL;
  if (*ret_text == NULL)
    return bp_error_set (err, -ENOMEM, "profile: out of memory");
  return 0;
}

int
counters_encode (const struct replay_result *result, char **ret_text,
                 struct bp_error *err)
{
  CLEANUP_JSON struct json_object *obj = counters_json (result);

  return copy_text (obj, ret_text, err);
}

static void
add_root (struct json_object *obj, const char *key,
          const struct bp_root *root)
{
  char hex[BP_ROOT_HEX_SIZE];

  bp_json_add_string (obj, key, bp_root_format (root, hex));
}

/* When (RFC 3339, UTC), and by which daemon. */
static void
add_origin (struct json_object *obj)
{
  char when[32], host[65] = "", by[128];
  const time_t now = time (NULL);
  struct tm tm;

  gmtime_r (&now, &tm);
  strftime (when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
  bp_json_add_string (obj, "recorded", when);

  if (gethostname (host, sizeof host - 1) < 0)
    strcpy (host, "localhost");
  snprintf (by, sizeof by, "blobpagerd %s on %s", PACKAGE_VERSION, host);
  bp_json_add_string (obj, "recorded_by", by);
}

int
meta_encode (const struct meta_facts *facts, char **ret_text,
             struct bp_error *err)
{
  CLEANUP_JSON struct json_object *obj = json_object_new_object ();

  bp_json_add_string (obj, "kind", "blob");
  add_root (obj, "root", &facts->root);
  bp_json_add_u64 (obj, "records", facts->records);
  if (facts->has_image)
    add_root (obj, "image", &facts->image);
  add_origin (obj);
  bp_json_add_bool (obj, "automatic", facts->automatic);
  bp_json_add_double (obj, "seconds", facts->seconds);
  bp_json_add_u64 (obj, "messages", facts->messages);
  bp_json_add_u64 (obj, "client_opens", facts->opens);
  if (facts->replay)
    json_object_object_add (obj, "last_replay",
                            counters_json (facts->replay));
  return copy_text (obj, ret_text, err);
}
