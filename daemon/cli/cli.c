/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Helpers of the subcommands: errors as one line, stores, JSON. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cli/cli.h"

int
cli_fail (const struct bp_error *err)
{
  fflush (stdout);
  fprintf (stderr, "blobpager: %s\n", err->msg);
  return CLI_FAILED;
}

void
cli_usage (const char *command, const char *fmt, ...)
{
  va_list args;

  fflush (stdout);
  fputs ("blobpager: ", stderr);
  if (command)
    fprintf (stderr, "%s: ", command);
  va_start (args, fmt);
  vfprintf (stderr, fmt, args);
  va_end (args);
  fprintf (stderr, "; see blobpager %s%s--help\n", command ? command : "",
           command ? " " : "");
  exit (CLI_USAGE);
}

void
cli_want_operands (const char *command, int argc, int low, int high)
{
  if (argc < low)
    cli_usage (command, "an operand is missing");
  if (argc > high)
    cli_usage (command, "too many operands");
}

struct bp_store *
cli_open_store (const char *command, const char *path,
                enum bp_store_mode mode)
{
  struct bp_store *store = NULL;
  struct bp_error err;

  if (path == NULL || *path == '\0')
    cli_usage (command, "--store=DIR is missing");
  if (bp_store_open (&store, path, mode, &err) < 0) {
    cli_fail (&err);
    return NULL;
  }
  return store;
}

enum bp_codec
cli_parse_codec (const char *command, const char *value)
{
  if (value == NULL || strcmp (value, "zstd") == 0)
    return BP_CODEC_ZSTD;
  if (strcmp (value, "none") == 0)
    return BP_CODEC_RAW;
  cli_usage (command, "--compress: '%s' is neither zstd nor none", value);
}

void
cli_print_json (struct json_object *obj)
{
  puts (json_object_to_json_string_ext (obj,
                                        JSON_C_TO_STRING_NOSLASHESCAPE));
}
