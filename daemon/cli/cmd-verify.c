/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager verify [TAG...]: hash what is stored and name what is wrong.
 * Without tags, everything in the store.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/progress.h"
#include "lib/base/json.h"

static const char *store_path;
static bool with_progress, json;

/* What has been found. */
struct findings {
  struct progress progress;
  struct json_object *array; /* With --json; borrowed. */
  bool any;
};

static const char *
state_of (int code)
{
  switch (code) {
  case -EBADMSG:
  case -EPROTO:
  case -EOPNOTSUPP: return "corrupt";
  case -ENOENT: return "missing";
  default: return "unreadable";
  }
}

static void
add_json (struct json_object *array, const char *root, const char *image,
          uint64_t offset, int code, const char *why)
{
  struct json_object *item = json_object_new_object ();

  bp_json_add_string (item, "state", state_of (code));
  if (root)
    bp_json_add_string (item, "root", root);
  if (image)
    bp_json_add_string (item, "image", image);
  if (root)
    bp_json_add_u64 (item, "offset", offset);
  bp_json_add_string (item, "why", why);
  json_object_array_add (array, item);
}

/* "corrupt  ROOT  image 'debian' at offset 4096: digest mismatch" */
static void
print_text (const char *root, const char *image, uint64_t offset, int code,
            const char *why)
{
  printf ("%-10s  ", state_of (code));
  if (root)
    printf ("%s  ", root);
  if (image)
    printf ("image '%s' at offset %" PRIu64 ": ", image, offset);
  else if (root)
    printf ("no image, offset %" PRIu64 ": ", offset);
  printf ("%s\n", why);
}

static int
tell (void *opaque, const struct bp_root *root, const char *image,
      uint64_t offset, int code, const char *why)
{
  struct findings *findings = opaque;
  char hex[BP_ROOT_HEX_SIZE];
  const char *text = root ? bp_root_format (root, hex) : NULL;

  findings->any = true;
  progress_clear (&findings->progress);
  if (json)
    add_json (findings->array, text, image, offset, code, why);
  else
    print_text (text, image, offset, code, why);
  return 0;
}

static void
show (void *opaque, uint64_t done, uint64_t total)
{
  struct findings *findings = opaque;

  progress_show (&findings->progress, done, total);
}

/* Returns how many of the NAMES (all: the store) could not be verified. */
static int
verify (struct bp_store *store, int count, char **names,
        struct findings *findings)
{
  struct bp_error err;
  int failed = 0;

  if (count == 0 &&
      bp_store_verify_all (store, tell, show, findings, &err) < 0) {
    cli_fail (&err);
    failed++;
  }
  for (int i = 0; i < count; i++)
    if (bp_store_verify_image (store, names[i], tell, show, findings,
                               &err) < 0) {
      progress_clear (&findings->progress);
      cli_fail (&err);
      failed++;
    }
  return failed;
}

static int
run (int argc, char **argv)
{
  CLEANUP_STORE struct bp_store *store = NULL;
  CLEANUP_JSON struct json_object *obj = json_object_new_object ();
  struct findings findings = { .array = json_object_new_array () };
  int failed;

  json_object_object_add (obj, "problems", findings.array);
  for (int i = 0; i < argc; i++)
    if (!bp_is_tag_name (argv[i]))
      cli_usage ("verify", "'%s': not a tag's name", argv[i]);
  store = cli_open_store ("verify", store_path, BP_STORE_READ);
  if (store == NULL)
    return CLI_FAILED;
  progress_start (&findings.progress, "verify", with_progress);
  failed = verify (store, argc, argv, &findings);
  progress_clear (&findings.progress);
  if (json)
    cli_print_json (obj);
  return failed > 0 || findings.any ? CLI_FAILED : CLI_DONE;
}

static const struct cli_option options[] = {
  CLI_OPTION_STORE (&store_path),
  CLI_OPTION_PROGRESS (&with_progress),
  CLI_OPTION_JSON (&json),
  { 0 },
};

const struct command cmd_verify = {
  .name = "verify",
  .synopsis = "--store=DIR [--progress] [--json] [TAG...]",
  .summary = "hash images, or the whole store, and name what is wrong",
  .options = options,
  .run = run,
};
