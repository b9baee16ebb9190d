/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager profile: its actions are a table, with the options that each
 * takes.
 */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/profile-actions.h"
#include "lib/base/range.h"
#include "lib/base/size.h"
#include "lib/tag.h"

enum {
  MAX_SECONDS = 365 * 24 * 60 * 60
};

static struct profile_args args;
static const char *for_text;
static const char *quiet_text;

struct action {
  const char *name;
  bool takes_name;
  bool takes_store; /* --store, instead of --control. */
  bool takes_json;
  bool takes_start; /* What only start takes. */
  int (*run) (const struct profile_args *args, struct bp_error *err);
};

/* clang-format off */
static const struct action actions[] = {
  { "start",  true,  false, false, true,  profile_start },
  { "stop",   true,  false, true,  false, profile_stop },
  { "abort",  true,  false, false, false, profile_abort },
  { "list",   false, true,  true,  false, profile_list },
  { "show",   true,  true,  true,  false, profile_show },
  { "delete", true,  true,  false, false, profile_delete },
};
/* clang-format on */

static const struct action *
find_action (const char *name)
{
  for (size_t i = 0; i < ARRAY_LEN (actions); i++)
    if (strcmp (actions[i].name, name) == 0)
      return &actions[i];
  cli_usage ("profile", "'%s': no such action", name);
}

static void
refuse_option (const struct action *action, bool is_taken, bool is_given,
               const char *option)
{
  if (is_given && !is_taken)
    cli_usage ("profile", "%s takes no --%s", action->name, option);
}

/* Every option that was given is one of ACTION's. */
static void
check_options (const struct action *action)
{
  const bool start = action->takes_start;

  refuse_option (action, action->takes_store, args.store_path != NULL,
                 "store");
  refuse_option (action, action->takes_json, args.json, "json");
  refuse_option (action, start, args.export_tag != NULL, "export");
  refuse_option (action, start, args.mode != NULL, "mode");
  refuse_option (action, start, for_text != NULL, "for");
  refuse_option (action, start, quiet_text != NULL, "quiet");
  refuse_option (action, start, args.attach, "attach");
  refuse_option (action, start, args.until_exit, "until-exit");
  refuse_option (action, start, args.foreground, "foreground");
  if (args.store_path != NULL && args.control_path != NULL)
    cli_usage ("profile", "--store and --control exclude each other");
}

static unsigned
parse_seconds (const char *option, const char *text)
{
  uint64_t seconds = 0;

  if (text != NULL && bp_number_parse (text, 1, MAX_SECONDS, &seconds) < 0)
    cli_usage ("profile", "--%s: could not parse '%s'", option, text);
  return (unsigned) seconds;
}

static void
check_start (void)
{
  args.for_s = parse_seconds ("for", for_text);
  args.quiet_s = parse_seconds ("quiet", quiet_text);
  if (args.export_tag != NULL && !bp_is_tag_name (args.export_tag))
    cli_usage ("profile", "--export: '%s': not a tag's name",
               args.export_tag);
  if (args.mode != NULL && strcmp (args.mode, "record-and-replay") != 0 &&
      strcmp (args.mode, "replay-xor-record") != 0)
    cli_usage ("profile", "--mode: '%s': neither record-and-replay nor "
                          "replay-xor-record",
               args.mode);
  if (args.attach && args.export_tag == NULL)
    cli_usage ("profile", "--attach needs --export=TAG");
}

/* The operand NAME is there exactly if it should be, and is a name. */
static void
take_name (const struct action *action, int argc, char **argv)
{
  const bool takes_name = action->takes_name && !args.attach;

  if (argc < (int) takes_name)
    cli_usage ("profile", "%s: NAME is missing", action->name);
  if (argc > (int) takes_name)
    cli_usage ("profile", "%s: '%s': too many operands", action->name,
               argv[takes_name]);
  if (!takes_name)
    return;
  args.name = argv[0];
  if (!bp_is_profile_name (args.name))
    cli_usage ("profile", "'%s': not a profile's name", args.name);
}

static int
run (int argc, char **argv)
{
  struct bp_error err = { 0 };
  const struct action *action;

  if (argc == 0)
    cli_usage ("profile", "an action is missing");
  action = find_action (argv[0]);
  check_options (action);
  if (action->takes_start)
    check_start ();
  take_name (action, argc - 1, argv + 1);
  return action->run (&args, &err) < 0 ? cli_fail (&err) : CLI_DONE;
}

static const struct cli_option options[] = {
  CLI_OPTION_CONTROL (&args.control_path),
  { .name = "store",
    .value = "DIR",
    .help = "list, show, delete: in this store, without a daemon",
    .string = &args.store_path },
  CLI_OPTION_JSON (&args.json),
  { .name = "attach",
    .help = "start: a profile of the image, not of a name",
    .flag = &args.attach },
  { .name = "export",
    .value = "TAG",
    .help = "start: record this export's clients only",
    .string = &args.export_tag },
  { .name = "for",
    .value = "SECONDS",
    .help = "start: end after so long",
    .string = &for_text },
  { .name = "quiet",
    .value = "SECONDS",
    .help = "start: end after so long without a new blob",
    .string = &quiet_text },
  { .name = "until-exit",
    .help = "start: end when the last client leaves",
    .flag = &args.until_exit },
  { .name = "foreground",
    .help = "start: wait for the end; abort if killed before",
    .flag = &args.foreground },
  { .name = "mode",
    .value = "MODE",
    .help = "start: record-and-replay or replay-xor-record",
    .string = &args.mode },
  { 0 },
};

const struct command cmd_profile = {
  .name = "profile",
  .synopsis =
    "start NAME | --attach [--export=TAG] [OPTION]...\n"
    "stop [--json] NAME\n"
    "abort NAME\n"
    "list [--store=DIR] [--json]\n"
    "show [--store=DIR] [--json] NAME\n"
    "delete [--store=DIR] NAME",
  .summary = "record what a workload reads, and replay it",
  .options = options,
  .run = run,
};
