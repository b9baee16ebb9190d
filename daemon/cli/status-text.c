/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A status reply as a few lines and up to three tables. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "daemon/cli/status-text.h"
#include "lib/base/json.h"
#include "lib/base/size.h"

static struct json_object *
get_object (struct json_object *obj, const char *key)
{
  struct json_object *value = NULL;

  json_object_object_get_ex (obj, key, &value);
  return value;
}

static uint64_t
get_number (struct json_object *obj, const char *key)
{
  uint64_t value = 0;

  bp_json_get_u64 (obj, key, &value);
  return value;
}

static double
get_double (struct json_object *obj, const char *key)
{
  return json_object_get_double (get_object (obj, key));
}

static const char *
get_text (struct json_object *obj, const char *key)
{
  const char *text = bp_json_get_string (obj, key);

  return text != NULL && *text != '\0' ? text : "-";
}

/* The member KEY as a size, in OUT. */
#define SIZE_TEXT(obj, key) \
  bp_size_format (get_number (obj, key), (char[32]){ 0 }, 32)

static void
print_uptime (FILE *fp, double seconds)
{
  const uint64_t s = (uint64_t) seconds;

  fprintf (fp, "%" PRIu64 ":%02u:%02u", s / 3600, (unsigned) (s / 60 % 60),
           (unsigned) (s % 60));
}

static void
print_summary (struct json_object *status, FILE *fp)
{
  struct json_object *driver = get_object (status, "driver");
  struct json_object *cache = get_object (status, "cache");
  struct json_object *verify = get_object (status, "verify");
  struct json_object *clients = get_object (status, "clients");

  fprintf (fp, "daemon    blobpagerd %s, process %" PRIu64 ", up ",
           get_text (status, "version"), get_number (status, "pid"));
  print_uptime (fp, get_double (status, "uptime_seconds"));
  fprintf (fp, "\ndriver    %s, %s\n", get_text (driver, "uri"),
           bp_json_get_bool (driver, "connected", false) ? "connected"
                                                         : "not connected");
  fprintf (fp,
           "          %" PRIu64 " reads, %s, %" PRIu64 " errors, %" PRIu64
           " missing, %" PRIu64 " retries\n",
           get_number (driver, "reads"), SIZE_TEXT (driver, "bytes"),
           get_number (driver, "errors"), get_number (driver, "missing"),
           get_number (driver, "retries"));
  fprintf (fp,
           "verified  %" PRIu64 " windows, %s, %" PRIu64 " corrupt, by %s\n",
           get_number (verify, "blobs"), SIZE_TEXT (verify, "bytes"),
           get_number (verify, "corrupt"), get_text (verify, "sha256"));
  fprintf (fp,
           "cache     %s of %s, %s pinned, %" PRIu64 " hits, %" PRIu64
           " misses, %" PRIu64 " evictions\n",
           SIZE_TEXT (cache, "used_bytes"),
           SIZE_TEXT (cache, "budget_bytes"),
           SIZE_TEXT (cache, "pinned_bytes"), get_number (cache, "hits"),
           get_number (cache, "misses"), get_number (cache, "evictions"));
  fprintf (fp,
           "clients   %" PRIu64 " connections so far, %" PRIu64
           " reads, %s, %" PRIu64 " errors\n",
           get_number (clients, "connections"),
           get_number (clients, "reads"), SIZE_TEXT (clients, "bytes"),
           get_number (clients, "errors"));
}

static void
print_export (struct json_object *row, FILE *fp)
{
  fprintf (fp,
           "%-24s %8" PRIu64 " %9" PRIu64 " %10s %7" PRIu64 " %9.2f\n",
           get_text (row, "name"), get_number (row, "clients"),
           get_number (row, "reads"), SIZE_TEXT (row, "bytes_read"),
           get_number (row, "stalls"), get_double (row, "stall_seconds"));
}

static void
print_recording (struct json_object *row, FILE *fp)
{
  fprintf (fp, "%-24s %-20s %-9s %9" PRIu64 " %8.0f\n",
           get_text (row, "name"), get_text (row, "export"),
           bp_json_get_bool (row, "automatic", false) ? "yes" : "no",
           get_number (row, "records"), get_double (row, "seconds"));
}

static void
print_replay (struct json_object *row, FILE *fp)
{
  fprintf (fp,
           "%-20s %-9s %6" PRIu64 "/%-6" PRIu64
           " %10s %10s %5" PRIu64 " %10s %7" PRIu64 "\n",
           get_text (row, "name"), get_text (row, "state"),
           get_number (row, "blobs_opened"),
           get_number (row, "blobs_named"),
           SIZE_TEXT (row, "bytes_prefetched"),
           SIZE_TEXT (row, "bytes_used"), get_number (row, "late"),
           SIZE_TEXT (row, "wasted"), get_number (row, "not_pinned"));
}

/* The rows of the array KEY under HEADER; nothing if there are none. */
static void
print_table (struct json_object *status, const char *key, const char *header,
             void (*print_row) (struct json_object *row, FILE *fp), FILE *fp)
{
  struct json_object *rows = get_object (status, key);

  if (!json_object_is_type (rows, json_type_array) ||
      json_object_array_length (rows) == 0)
    return;
  fprintf (fp, "\n%s\n", header);
  for (size_t i = 0; i < json_object_array_length (rows); i++)
    print_row (json_object_array_get_idx (rows, i), fp);
}

void
status_print (struct json_object *status, FILE *fp)
{
  print_summary (status, fp);
  print_table (status, "exports",
               "EXPORT                    CLIENTS     READS      BYTES"
               "  STALLS   SECONDS",
               print_export, fp);
  print_table (status, "recordings",
               "RECORDING                EXPORT               AUTOMATIC"
               "   RECORDS  SECONDS",
               print_recording, fp);
  print_table (status, "replay",
               "REPLAY               STATE     OPENED/NAMED  PREFETCHED"
               "       USED  LATE     WASTED NOT PINNED",
               print_replay, fp);
}
