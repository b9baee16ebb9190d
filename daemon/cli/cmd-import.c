/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager import SOURCE: make an image of a disk. */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/image-import.h"
#include "daemon/cli/import-source.h"
#include "daemon/cli/progress.h"
#include "daemon/cli/tag-json.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"

static const char *store_path;
static const char *name;
static const char *compress;
static bool is_raw, with_progress, json;

static void
cleanup_source (struct import_source **source)
{
  import_source_close (*source);
}
#define CLEANUP_SOURCE __attribute__ ((cleanup (cleanup_source)))

/* The name of the image: --name, or what SOURCE gives. */
static void
choose_name (const char *what, char out[BP_NAME_SIZE])
{
  CLEANUP_FREE char *given = name ? NULL : import_source_default_name (what);
  const char *chosen = name ? name : given;

  if (chosen == NULL || !bp_is_tag_name (chosen))
    cli_usage ("import", "%s'%.130s' cannot name an image%s",
               name ? "--name: " : "", chosen ? chosen : "",
               name ? "" : "; give --name");
  snprintf (out, BP_NAME_SIZE, "%s", chosen);
}

/* WORD for a shell: quoted unless it is plain. */
static void
print_quoted (FILE *fp, const char *word)
{
  const char *p = word;

  while (isalnum ((unsigned char) *p) || (*p && strchr ("._/:=,+@-", *p)))
    p++;
  if (*p == '\0' && p > word) {
    fputs (word, fp);
    return;
  }
  fputc ('\'', fp);
  for (p = word; *p; p++)
    if (*p == '\'')
      fputs ("'\\''", fp);
    else
      fputc (*p, fp);
  fputc ('\'', fp);
}

/* One line that says what WHAT is and the two commands that import the
 * disk in it.
 */
static int
refuse_format (const char *what, const char *format, const char *tag)
{
  fprintf (stderr, "blobpager: ");
  fprintf (stderr, "%s: is a %s file, not a disk: run: qemu-nbd --fork "
                   "--read-only --format=%s --socket=/tmp/%s.sock ",
           what, format, format, tag);
  print_quoted (stderr, what);
  fprintf (stderr, " && blobpager import --store=");
  print_quoted (stderr, store_path);
  fprintf (stderr, " --name=%s 'nbd+unix:///?socket=/tmp/%s.sock' (or give "
                   "--raw to import the file as it is)\n",
           tag, tag);
  return CLI_FAILED;
}

static void
set_source (struct bp_tag *tag, const char *what)
{
  CLEANUP_FREE char *path = is_nbd_uri (what) ? NULL : realpath (what, NULL);

  snprintf (tag->source, sizeof tag->source, "%s", path ? path : what);
}

static void
print_tag (const struct bp_tag *tag)
{
  char hex[BP_ROOT_HEX_SIZE];

  if (json) {
    CLEANUP_JSON struct json_object *obj = tag_to_json (tag);

    cli_print_json (obj);
    return;
  }
  printf ("%s  %s\n", bp_root_format (&tag->root, hex), tag->name);
}

static int
run (int argc, char **argv)
{
  CLEANUP_STORE struct bp_store *store = NULL;
  CLEANUP_SOURCE struct import_source *source = NULL;
  const enum bp_codec codec = cli_parse_codec ("import", compress);
  struct bp_tag tag = { .name = "" };
  struct progress progress;
  const char *format = NULL;
  struct bp_error err;
  int r;

  cli_want_operands ("import", argc, 1, 1);
  if (store_path == NULL || *store_path == '\0')
    cli_usage ("import", "--store=DIR is missing");
  choose_name (argv[0], tag.name);
  set_source (&tag, argv[0]);
  r = import_source_open (&source, argv[0], is_raw, &format, &err);
  if (r == -EOPNOTSUPP && format)
    return refuse_format (argv[0], format, tag.name);
  if (r < 0)
    return cli_fail (&err);
  store = cli_open_store ("import", store_path, BP_STORE_CREATE);
  if (store == NULL)
    return CLI_FAILED;

  progress_start (&progress, "import", with_progress);
  r = image_import (store, source, codec, &tag, progress_show, &progress,
                    &err);
  progress_clear (&progress);
  if (r < 0)
    return cli_fail (&err);
  print_tag (&tag);
  return CLI_DONE;
}

static const struct cli_option options[] = {
  CLI_OPTION_STORE (&store_path),
  { .name = "name",
    .value = "TAG",
    .help = "name of the image (SOURCE's base name without its suffix)",
    .string = &name },
  CLI_OPTION_COMPRESS (&compress),
  { .name = "raw",
    .help = "import a qcow2, VMDK or VHDX file as it is",
    .flag = &is_raw },
  CLI_OPTION_PROGRESS (&with_progress),
  CLI_OPTION_JSON (&json),
  { 0 },
};

const struct command cmd_import = {
  .name = "import",
  .synopsis = "--store=DIR [--name=TAG] [--compress=zstd|none] [--raw]\n"
              "                 [--progress] [--json] SOURCE",
  .summary = "make an image of a disk: a file, block device or NBD URI",
  .options = options,
  .run = run,
};
