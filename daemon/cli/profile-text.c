/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Stored profiles: their metadata is JSON that others wrote, so every
 * member may be absent or of another type; their records go through the
 * one decoder.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cli/profile-text.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/profile.h"

static const char *
get_text (struct json_object *obj, const char *key)
{
  const char *text = bp_json_get_string (obj, key);

  return text != NULL ? text : "-";
}

static bool
is_file_kind (struct json_object *meta)
{
  return strcmp (get_text (meta, "kind"), "file") == 0;
}

void
profile_print_list (struct json_object *profiles, FILE *fp)
{
  const size_t count = json_object_array_length (profiles);

  if (count > 0)
    fprintf (fp, "%-32s %-7s %9s  %s\n", "NAME", "KIND", "RECORDS",
             "RECORDED");
  for (size_t i = 0; i < count; i++) {
    struct json_object *row = json_object_array_get_idx (profiles, i);
    uint64_t records = 0;

    bp_json_get_u64 (row, "records", &records);
    fprintf (fp, "%-32s %-7s %9" PRIu64 "  %s\n", get_text (row, "name"),
             bp_json_get_bool (row, "damaged", false)
               ? "damaged"
               : get_text (row, "kind"),
             records, get_text (row, "recorded"));
  }
}

/* ---- Records ---- */

/* One record, of either kind. */
struct record {
  char id[BP_ROOT_HEX_SIZE]; /* A root, or an object id in decimal. */
  uint64_t offset;           /* Bytes, or BP_OPEN_MARKER. */
};

typedef void (*record_fn) (void *opaque, const struct record *record);

static int
for_each_blob_record (const uint8_t *data, size_t len, record_fn fn,
                      void *opaque, struct bp_error *err)
{
  CLEANUP_FREE struct bp_blob_message *messages = NULL;
  size_t count;
  const int r =
    bp_profile_decode_blobs (data, len, &messages, &count, err);

  if (r < 0)
    return r;
  for (size_t i = 0; i < count; i++) {
    struct record record = { .offset = messages[i].offset };

    bp_root_format (&messages[i].root, record.id);
    fn (opaque, &record);
  }
  return 0;
}

static int
for_each_file_record (const uint8_t *data, size_t len, record_fn fn,
                      void *opaque, struct bp_error *err)
{
  CLEANUP_FREE struct bp_file_message *messages = NULL;
  size_t count;
  const int r =
    bp_profile_decode_files (data, len, &messages, &count, err);

  if (r < 0)
    return r;
  for (size_t i = 0; i < count; i++) {
    struct record record = { .offset = messages[i].offset };

    snprintf (record.id, sizeof record.id, "%" PRIu64, messages[i].id);
    fn (opaque, &record);
  }
  return 0;
}

static int
for_each_record (struct json_object *meta, const uint8_t *data, size_t len,
                 record_fn fn, void *opaque, struct bp_error *err)
{
  return is_file_kind (meta)
           ? for_each_file_record (data, len, fn, opaque, err)
           : for_each_blob_record (data, len, fn, opaque, err);
}

static void
print_record (void *opaque, const struct record *record)
{
  if (record->offset == BP_OPEN_MARKER)
    fprintf (opaque, "%s  open\n", record->id);
  else
    fprintf (opaque, "%s  %" PRIu64 "\n", record->id, record->offset);
}

static void
add_record (void *opaque, const struct record *record)
{
  struct json_object *obj = json_object_new_object ();

  bp_json_add_string (obj, "id", record->id);
  if (record->offset == BP_OPEN_MARKER)
    bp_json_add_bool (obj, "open", true);
  else
    bp_json_add_u64 (obj, "offset", record->offset);
  json_object_array_add (opaque, obj);
}

/* ---- One profile ---- */

/* "key  value", strings without their quotes. */
static void
print_member (const char *key, struct json_object *value, FILE *fp)
{
  const char *text =
    json_object_is_type (value, json_type_string)
      ? json_object_get_string (value)
      : json_object_to_json_string_ext (value, JSON_C_TO_STRING_PLAIN);

  fprintf (fp, "%-14s %s\n", key, text);
}

int
profile_print (const char *name, struct json_object *meta,
               const uint8_t *data, size_t len, FILE *fp,
               struct bp_error *err)
{
  fprintf (fp, "%-14s %s\n", "name", name);
  json_object_object_foreach (meta, key, value)
  {
    if (json_object_is_type (value, json_type_object)) {
      fprintf (fp, "%s\n", key);
      json_object_object_foreach (value, inner_key, inner)
      {
        fputs ("  ", fp);
        print_member (inner_key, inner, fp);
      }
    }
    else if (strcmp (key, "name") != 0)
      print_member (key, value, fp);
  }
  fputc ('\n', fp);
  return for_each_record (meta, data, len, print_record, fp, err);
}

int
profile_to_json (const char *name, struct json_object *meta,
                 const uint8_t *data, size_t len,
                 struct json_object **ret_obj, struct bp_error *err)
{
  CLEANUP_JSON struct json_object *obj = json_object_new_object ();
  struct json_object *entries = json_object_new_array ();
  int r;

  bp_json_add_string (obj, "name", name);
  json_object_object_foreach (meta, key, value)
    json_object_object_add (obj, key, json_object_get (value));
  json_object_object_add (obj, "entries", entries);
  r = for_each_record (meta, data, len, add_record, entries, err);
  if (r < 0)
    return r;
  *ret_obj = steal_ptr (&obj);
  return 0;
}
