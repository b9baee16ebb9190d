/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager rm TAG: remove a tag; its blobs stay. */
#include <config.h>

#include "daemon/cli/cli.h"

static const char *store_path;

static int
run (int argc, char **argv)
{
  CLEANUP_STORE struct bp_store *store = NULL;
  struct bp_error err;

  cli_want_operands ("rm", argc, 1, 1);
  if (!bp_is_tag_name (argv[0]))
    cli_usage ("rm", "'%s': not a tag's name", argv[0]);
  store = cli_open_store ("rm", store_path, BP_STORE_WRITE);
  if (store == NULL)
    return CLI_FAILED;
  if (bp_store_remove_tag (store, argv[0], &err) < 0)
    return cli_fail (&err);
  return CLI_DONE;
}

static const struct cli_option options[] = {
  CLI_OPTION_STORE (&store_path),
  { 0 },
};

const struct command cmd_rm = {
  .name = "rm",
  .synopsis = "--store=DIR TAG",
  .summary = "remove a tag",
  .options = options,
  .run = run,
};
