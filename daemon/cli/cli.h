/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The blobpager command: what its subcommands share.
 *
 * Each subcommand is a row of the table in main.c, defined in its own
 * cmd-*.c with its options; usage, dispatch, --help and --long-options
 * come from these.  Exit status: 0 done, 1 failed, 2 usage.
 *
 * Threads: main only.
 */
#ifndef BP_CLI_H
#define BP_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/store.h"

enum {
  CLI_DONE = 0,
  CLI_FAILED = 1,
  CLI_USAGE = 2,
};

/* An option, --NAME or --NAME=VALUE.  Exactly one target is set. */
struct cli_option {
  const char *name;    /* Without the dashes; NULL ends a table. */
  const char *value;   /* What --help calls the value; NULL: a flag. */
  const char *help;    /* A phrase. */
  bool *flag;          /* Set to true. */
  const char **string; /* Set to the value, which lives as long as main. */
};

/* A subcommand. */
struct command {
  const char *name;
  const char *synopsis; /* What follows "blobpager NAME "; lines end in \n
                           but for the last. */
  const char *summary;  /* A phrase. */
  const struct cli_option *options;

  /* The operands, with the options taken out; argv[argc] is NULL.
   * Returns the exit status.
   */
  int (*run) (int argc, char **argv);
};

/* The rows of the table, in the order of blobpager(1). */
extern const struct command cmd_import;
extern const struct command cmd_add;
extern const struct command cmd_ls;
extern const struct command cmd_info;
extern const struct command cmd_verify;
extern const struct command cmd_rm;
extern const struct command cmd_merkle;
extern const struct command cmd_status;
extern const struct command cmd_profile;

/* Options that many have. */
#define CLI_OPTION_STORE(target)                                           \
  {                                                                        \
    .name = "store", .value = "DIR", .help = "the store", .string = target \
  }
#define CLI_OPTION_CONTROL(target)                                    \
  {                                                                   \
    .name = "control", .value = "PATH", .help = "the control socket", \
    .string = target                                                  \
  }
#define CLI_OPTION_COMPRESS(target)                                     \
  {                                                                     \
    .name = "compress", .value = "zstd|none",                           \
    .help = "how to store what is new (default zstd)", .string = target \
  }
#define CLI_OPTION_JSON(target)                                          \
  {                                                                      \
    .name = "json", .help = "print JSON instead of text", .flag = target \
  }
#define CLI_OPTION_PROGRESS(target)                                         \
  {                                                                         \
    .name = "progress",                                                     \
    .help = "show progress even where there is no terminal", .flag = target \
  }

/* Print "blobpager: ERR's message".  Returns CLI_FAILED. */
int cli_fail (const struct bp_error *err);

/* Print "blobpager: COMMAND: …" and exit with CLI_USAGE. */
void cli_usage (const char *command, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3), noreturn));

/* Exit with a usage error unless LOW <= ARGC <= HIGH operands are there. */
void cli_want_operands (const char *command, int argc, int low, int high);

/* Open the store at PATH (the value of --store); NULL is a usage error.
 * Prints what fails and returns NULL.  The caller closes it.
 */
struct bp_store *cli_open_store (const char *command, const char *path,
                                 enum bp_store_mode mode);

/* The codec that VALUE of --compress names; NULL: the default. */
enum bp_codec cli_parse_codec (const char *command, const char *value);

static inline void
cleanup_store (struct bp_store **store)
{
  bp_store_close (*store);
}
#define CLEANUP_STORE __attribute__ ((cleanup (cleanup_store)))

/* Print OBJ on a line of standard output. */
void cli_print_json (struct json_object *obj);

#endif /* BP_CLI_H */
