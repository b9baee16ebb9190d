/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager ls: the images of a store, a line each. */
#include <config.h>

#include <stdio.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/tag-json.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/base/size.h"

static const char *store_path;
static bool json;

static void
print_json (const struct bp_tag *tags, size_t count)
{
  CLEANUP_JSON struct json_object *obj = json_object_new_object ();
  struct json_object *array = json_object_new_array ();

  for (size_t i = 0; i < count; i++)
    json_object_array_add (array, tag_to_json (&tags[i]));
  json_object_object_add (obj, "images", array);
  cli_print_json (obj);
}

static void
print_text (const struct bp_tag *tags, size_t count)
{
  char size[32], bytes[32];

  for (size_t i = 0; i < count; i++) {
    char hex[BP_ROOT_HEX_SIZE];

    printf ("%s  %10s  %10s  %-20s  %s\n",
            bp_root_format (&tags[i].root, hex),
            bp_size_format (tags[i].size, size, sizeof size),
            bp_size_format (tags[i].bytes, bytes, sizeof bytes),
            tags[i].created, tags[i].name);
  }
}

static int
run (int argc, char **argv)
{
  CLEANUP_STORE struct bp_store *store = NULL;
  CLEANUP_FREE struct bp_tag *tags = NULL;
  struct bp_error err;
  size_t count, nr_bad;

  (void) argv;
  cli_want_operands ("ls", argc, 0, 0);
  store = cli_open_store ("ls", store_path, BP_STORE_READ);
  if (store == NULL)
    return CLI_FAILED;
  if (bp_store_list_tags (store, &tags, &count, &nr_bad, &err) < 0)
    return cli_fail (&err);
  if (json)
    print_json (tags, count);
  else
    print_text (tags, count);
  if (nr_bad > 0) {
    fprintf (stderr, "blobpager: %s: %zu damaged tag%s left out; "
                     "'blobpager verify' names them\n",
             store_path, nr_bad, nr_bad == 1 ? "" : "s");
    return CLI_FAILED;
  }
  return CLI_DONE;
}

static const struct cli_option options[] = {
  CLI_OPTION_STORE (&store_path),
  CLI_OPTION_JSON (&json),
  { 0 },
};

const struct command cmd_ls = {
  .name = "ls",
  .synopsis = "--store=DIR [--json]",
  .summary = "list images: root, size, bytes of data, when imported, tag",
  .options = options,
  .run = run,
};
