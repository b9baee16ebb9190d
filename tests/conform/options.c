/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Options: one table makes the parser, --help and --long-options, which
 * tests/check-docs.sh compares with the manual page.
 */
#include <config.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform/options.h"
#include "lib/base/range.h"
#include "lib/base/size.h"

#define PROGRAM "blobpager-nbd-conform"

enum {
  DEFAULT_TIMEOUT = 10, /* Seconds. */
  MAX_TIMEOUT = 24 * 60 * 60,
};

struct row {
  const char *name;
  const char *value; /* What it takes, or NULL. */
  const char *help;  /* NULL: hidden. */
  void (*set) (struct options *options, const char *value);
};

void
die (int status, const char *fmt, ...)
{
  va_list args;

  fflush (stdout);
  fputs (PROGRAM ": ", stderr);
  va_start (args, fmt);
  vfprintf (stderr, fmt, args);
  va_end (args);
  fputs (status == EXIT_USAGE ? "; see " PROGRAM " --help\n" : "\n", stderr);
  exit (status);
}

static void
set_list (struct options *options, const char *value)
{
  (void) value;
  options->list = true;
}

static void
add_glob (struct globs *globs, const char *value)
{
  if (globs->count == MAX_GLOBS)
    die (EXIT_USAGE, "'%s': more than %d globs", value, MAX_GLOBS);
  globs->list[globs->count++] = value;
}

static void
set_only (struct options *options, const char *value)
{
  add_glob (&options->choice.only, value);
}

static void
set_except (struct options *options, const char *value)
{
  add_glob (&options->choice.except, value);
}

static void
set_reference (struct options *options, const char *value)
{
  options->reference = value;
}

static void
set_strict (struct options *options, const char *value)
{
  (void) value;
  options->strict = true;
}

static void
set_timeout (struct options *options, const char *value)
{
  uint64_t seconds;

  if (bp_number_parse (value, 1, MAX_TIMEOUT, &seconds) < 0)
    die (EXIT_USAGE, "--timeout: '%s' is no number of seconds", value);
  options->timeout_s = (unsigned) seconds;
}

static void print_help (struct options *options, const char *value);
static void print_long_options (struct options *options, const char *value);

static void
print_version (struct options *options, const char *value)
{
  (void) options;
  (void) value;
  puts (PROGRAM " " PACKAGE_VERSION);
  exit (fflush (stdout) == 0 ? EXIT_DONE : EXIT_FAILED);
}

/* clang-format off */
static const struct row rows[] = {
  { "list", NULL,
    "print every check: its name, and the sentence it puts to the server",
    set_list },
  { "only", "GLOB", "run the checks whose names match; may be repeated",
    set_only },
  { "except", "GLOB", "but not these; may be repeated", set_except },
  { "reference", "FILE", "compare the export with this raw image",
    set_reference },
  { "strict", NULL, "a SHOULD that is not kept is a failure, too",
    set_strict },
  { "timeout", "SECONDS", "what a check may take [10]", set_timeout },
  { "help", NULL, "print this text and exit", print_help },
  { "version", NULL, "print the version and exit", print_version },
  { "long-options", NULL, NULL, print_long_options },
};
/* clang-format on */

static const char lesson[] =
  "\nTry it:\n\n"
  "  nbdkit -r -U /tmp/s memory 1M\n"
  "  " PROGRAM " 'nbd+unix:///?socket=/tmp/s'\n\n"
  "  " PROGRAM " --only='write/*' nbd://localhost\n"
  "  " PROGRAM " --list --only='structured/*'\n\n"
  "A line is a check: \"ok\", \"not ok\" and why, or \"# SKIP\" and what the\n"
  "server does not offer.  The export must be read-only, and the server\n"
  "must outlive its clients and take several at once (qemu-nbd: -r -t -e "
  "0).\n"
  "Exit status: 0 all is well, 1 a check failed or the server cannot be\n"
  "reached, 2 the command line is wrong.\n\n"
  "Read " PROGRAM "(1) for the whole story.\n";

static void
print_help (struct options *options, const char *value)
{
  (void) options;
  (void) value;
  printf ("Does an NBD server keep to the standard?\n\n%s\nOptions:\n\n",
          conform_synopsis);
  for (size_t i = 0; i < ARRAY_LEN (rows); i++)
    if (rows[i].help) {
      const int n =
        printf ("  --%s%s%s", rows[i].name, rows[i].value ? "=" : "",
                rows[i].value ? rows[i].value : "");

      printf ("%*s%s\n", n < 24 ? 24 - n : 1, "", rows[i].help);
    }
  fputs (lesson, stdout);
  exit (fflush (stdout) == 0 ? EXIT_DONE : EXIT_FAILED);
}

static void
print_long_options (struct options *options, const char *value)
{
  (void) options;
  (void) value;
  for (size_t i = 0; i < ARRAY_LEN (rows); i++)
    if (rows[i].help)
      printf ("--%s\n", rows[i].name);
  exit (fflush (stdout) == 0 ? EXIT_DONE : EXIT_FAILED);
}

/* "--NAME", "--NAME=VALUE" or "--NAME VALUE" at ARGV[*I]. */
static void
take_option (struct options *options, int argc, char **argv, int *i)
{
  const char *word = argv[*i], *equals = strchr (word, '=');
  const size_t len =
    equals ? (size_t) (equals - word) - 2 : strlen (word) - 2;
  const struct row *row = rows;

  while (row < rows + ARRAY_LEN (rows) &&
         (strlen (row->name) != len || memcmp (row->name, word + 2, len)))
    row++;
  if (row == rows + ARRAY_LEN (rows))
    die (EXIT_USAGE, "'%s': no such option", word);
  if (row->value == NULL && equals)
    die (EXIT_USAGE, "--%s takes no value", row->name);
  if (row->value && equals == NULL && *i + 1 == argc)
    die (EXIT_USAGE, "--%s: its value is missing", row->name);
  if (row->value)
    row->set (options, equals ? equals + 1 : argv[++*i]);
  else
    row->set (options, NULL);
}

void
options_parse (struct options *options, int argc, char **argv)
{
  *options = (struct options){ .timeout_s = DEFAULT_TIMEOUT };
  for (int i = 1; i < argc; i++) {
    if (strncmp (argv[i], "--", 2) == 0)
      take_option (options, argc, argv, &i);
    else if (argv[i][0] == '-')
      die (EXIT_USAGE, "'%s': no such option", argv[i]);
    else if (options->uri)
      die (EXIT_USAGE, "'%s': one URI at a time", argv[i]);
    else
      options->uri = argv[i];
  }
  if (options->uri == NULL && !options->list)
    die (EXIT_USAGE, "no URI");
  if (options->uri && options->list)
    die (EXIT_USAGE, "--list takes no URI");
}
