/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager(1): a table of subcommands.
 *
 * main finds the row, takes the options out of the command line by the
 * row's table, and runs the rest.  Whatever was printed must have reached
 * its reader: a full disk behind standard output is a failure, too.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cli/cli.h"
#include "daemon/synopsis.h"
#include "lib/base/range.h"

/* In the order of blobpager(1). */
/* clang-format off */
static const struct command *const commands[] = {
  &cmd_import,
  &cmd_add,
  &cmd_ls,
  &cmd_info,
  &cmd_verify,
  &cmd_rm,
  &cmd_merkle,
  &cmd_status,
  &cmd_profile,
};
/* clang-format on */

enum {
  MAX_OPTIONS = 24
};

static const struct command *
find_command (const char *name)
{
  for (size_t i = 0; i < ARRAY_LEN (commands); i++)
    if (strcmp (commands[i]->name, name) == 0)
      return commands[i];
  return NULL;
}

/* ---- Help ---- */

static void
print_help (void)
{
  printf ("blobpager - fill and inspect a store, and control blobpagerd\n\n"
          "%s\n",
          blobpager_synopsis);
  for (size_t i = 0; i < ARRAY_LEN (commands); i++)
    printf ("  %-9s %s\n", commands[i]->name, commands[i]->summary);
  printf ("\nRead blobpager(1) for the whole story.\n");
}

/* "--name=VALUE", padded. */
static void
print_option (const char *name, const char *value, const char *help)
{
  const int n = printf ("  --%s%s%s", name, value ? "=" : "",
                        value ? value : "");

  printf ("%*s%s\n", n < 24 ? 24 - n : 1, "", help);
}

/* One way to call the command; an indented line goes on with the one
 * before it.
 */
static void
print_synopsis_line (const char *name, const char *line, int len)
{
  if (line[0] == ' ')
    printf ("%.*s\n", len, line);
  else
    printf ("blobpager %s %.*s\n", name, len, line);
}

static void
print_command_help (const struct command *command)
{
  const struct cli_option *option = command->options;

  printf ("blobpager %s - %s\n\n", command->name, command->summary);
  for (const char *line = command->synopsis; line;) {
    const char *end = strchr (line, '\n');
    const int len = end ? (int) (end - line) : (int) strlen (line);

    print_synopsis_line (command->name, line, len);
    line = end ? end + 1 : NULL;
  }
  putchar ('\n');
  for (; option->name; option++)
    print_option (option->name, option->value, option->help);
  print_option ("help", NULL, "print this");
  printf ("\nRead blobpager(1) for the whole story.\n");
}

/* Every long option, for completion and for the check of the manual. */
static void
print_long_options (void)
{
  for (size_t i = 0; i < ARRAY_LEN (commands); i++)
    for (const struct cli_option *option = commands[i]->options;
         option->name; option++)
      printf ("%s --%s\n", commands[i]->name, option->name);
}

/* ---- Options ---- */

/* Each option's number in the table is its value for getopt. */
static void
fill_getopt (const struct cli_option *options,
             struct option out[MAX_OPTIONS + 2])
{
  size_t n = 0;

  for (; options[n].name; n++) {
    if (n == MAX_OPTIONS)
      abort ();
    out[n] = (struct option){
      .name = options[n].name,
      .has_arg = options[n].value ? required_argument : no_argument,
      .val = (int) n + 1,
    };
  }
  out[n] = (struct option){ .name = "help", .val = 'h' << 8 };
  out[n + 1] = (struct option){ 0 };
}

/* getopt has stopped: at a long option that is unknown (optopt is 0) or
 * has a value and takes none (optopt is its own), which is WORD; or at a
 * letter, which may stand in the middle of a word.
 */
static void __attribute__ ((noreturn))
refuse_option (const struct command *command, const char *word)
{
  if (optopt == 0)
    cli_usage (command->name, "'%s': no such option", word);
  if (optopt <= MAX_OPTIONS || optopt > UCHAR_MAX)
    cli_usage (command->name, "'%s': it takes no value", word);
  cli_usage (command->name, "'-%c': no such option", optopt);
}

/* Take the options out of ARGV (argv[0] is the command's name).  Returns
 * the number of the first operand; exits for --help and wrong options.
 */
static int
take_options (const struct command *command, int argc, char **argv)
{
  struct option options[MAX_OPTIONS + 2];
  int c;

  fill_getopt (command->options, options);
  opterr = 0;
  optind = 1;
  while ((c = getopt_long (argc, argv, ":", options, NULL)) != -1) {
    if (c == 'h' << 8) {
      print_command_help (command);
      exit (fflush (stdout) == 0 ? CLI_DONE : CLI_FAILED);
    }
    if (c == ':')
      cli_usage (command->name, "'%s': its value is missing",
                 argv[optind - 1]);
    if (c == '?')
      refuse_option (command, argv[optind - 1]);
    if (command->options[c - 1].flag)
      *command->options[c - 1].flag = true;
    else
      *command->options[c - 1].string = optarg;
  }
  return optind;
}

static int
run_command (const struct command *command, int argc, char **argv)
{
  const int first = take_options (command, argc, argv);

  return command->run (argc - first, argv + first);
}

static int
run (int argc, char **argv)
{
  const struct command *command;

  if (argc < 2)
    cli_usage (NULL, "no command");
  if (strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "help") == 0)
    print_help ();
  else if (strcmp (argv[1], "--version") == 0)
    printf ("blobpager %s\n", PACKAGE_VERSION);
  else if (strcmp (argv[1], "--long-options") == 0)
    print_long_options ();
  else {
    command = find_command (argv[1]);
    if (command == NULL)
      cli_usage (NULL, "'%s': no such command", argv[1]);
    return run_command (command, argc - 1, argv + 1);
  }
  return CLI_DONE;
}

int
main (int argc, char *argv[])
{
  const int status = run (argc, argv);

  if (fflush (stdout) == 0 && !ferror (stdout))
    return status;
  fprintf (stderr, "blobpager: standard output: write: %s\n",
           strerror (errno));
  return status == CLI_DONE ? CLI_FAILED : status;
}
