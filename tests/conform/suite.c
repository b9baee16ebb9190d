/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The list of lists, and its output in the Test Anything Protocol:
 *
 *   1..2
 *   ok 1 - info/has-flags-is-set
 *   not ok 2 - write/its-payload-is-read-over
 *   #   text: "The client MUST follow …"
 *   #   section: Request types (MUST)
 *   #   expected the magic number of a reply, got 0x00000000
 */
#include <config.h>

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "conform/apart.h"
#include "conform/check.h"
#include "conform/options.h"
#include "conform/suite.h"
#include "conform/target.h"
#include "lib/base/range.h"

static const struct check *const groups[] = {
  handshake_checks,
  export_name_checks,
  info_checks,
  info_syntax_checks,
  block_size_checks,
  list_checks,
  meta_checks,
  selection_checks,
  meta_syntax_checks,
  read_checks,
  write_checks,
  error_checks,
  command_checks,
  flow_checks,
  structured_checks,
  chunk_checks,
  block_status_checks,
  extent_checks,
  tls_checks,
  several_checks, /* Last: they are the hardest to survive. */
};

static const char *const level_names[] = {
  [LEVEL_MUST] = "MUST",
  [LEVEL_SHOULD] = "SHOULD",
  [LEVEL_ROBUST] = "implied",
};

struct tally {
  unsigned number; /* Of the check, from 1. */
  unsigned nr_failed, nr_skipped, nr_remarked;
};

static bool
matches (const char *name, const struct globs *globs)
{
  for (unsigned i = 0; i < globs->count; i++)
    if (fnmatch (globs->list[i], name, 0) == 0)
      return true;
  return false;
}

static bool
is_chosen (const struct check *check, const struct choice *choice)
{
  return (choice->only.count == 0 || matches (check->name, &choice->only)) &&
         !matches (check->name, &choice->except);
}

unsigned
suite_count (const struct choice *choice)
{
  unsigned count = 0;

  for (size_t i = 0; i < ARRAY_LEN (groups); i++)
    for (const struct check *check = groups[i]; check->name; check++)
      count += is_chosen (check, choice);
  return count;
}

/* ---- The list ---- */

/* TEXT in lines of at most 76 columns, each after PREFIX. */
static void
print_wrapped (const char *prefix, const char *text)
{
  const size_t width = 76 - strlen (prefix);

  while (*text) {
    size_t len = strlen (text);

    if (len > width) {
      len = width;
      while (len > 0 && text[len] != ' ')
        len--;
      if (len == 0)
        len = strcspn (text, " ");
    }
    printf ("%s%.*s\n", prefix, (int) len, text);
    text += len + (text[len] == ' ');
  }
}

void
suite_list (const struct choice *choice)
{
  for (size_t i = 0; i < ARRAY_LEN (groups); i++)
    for (const struct check *check = groups[i]; check->name; check++)
      if (is_chosen (check, choice)) {
        printf ("%s\n    %s, %s\n", check->name, level_names[check->level],
                check->section);
        print_wrapped ("        ", check->text);
      }
}

/* ---- A run ---- */

/* Each line of TEXT as a line of diagnostics. */
static void
print_diagnostics (const char *text)
{
  while (*text) {
    const size_t len = strcspn (text, "\n");

    printf ("#   %.*s\n", (int) len, text);
    text += len + (text[len] == '\n');
  }
}

static void
print_failure (const struct check *check, const char *text)
{
  printf ("#   text: \"%s\"\n#   section: %s (%s)\n", check->text,
          check->section, level_names[check->level]);
  print_diagnostics (text);
}

/* The reason to skip is what was printed last. */
static const char *
last_line (char *text)
{
  const size_t len = strlen (text);
  char *newline;

  if (len > 0 && text[len - 1] == '\n')
    text[len - 1] = '\0';
  newline = strrchr (text, '\n');
  return newline ? newline + 1 : text;
}

static void
print_result (const struct check *check, struct outcome *outcome,
              bool is_strict, struct tally *tally)
{
  const bool is_remarked = outcome->result == CHECK_PASSED_REMARKS;
  const bool is_ok = outcome->result != CHECK_FAILED &&
                     outcome->result != CHECK_UNREACHABLE &&
                     !(is_remarked && is_strict);

  tally->nr_failed += !is_ok;
  tally->nr_remarked += is_remarked;
  tally->nr_skipped += outcome->result == CHECK_SKIPPED;
  printf ("%s %u - %s", is_ok ? "ok" : "not ok", tally->number, check->name);
  if (outcome->result == CHECK_SKIPPED)
    printf (" # SKIP %s", last_line (outcome->text));
  putchar ('\n');
  if (!is_ok)
    print_failure (check, outcome->text);
  else if (is_remarked)
    print_diagnostics (outcome->text);
}

/* Returns false if the server has gone. */
static bool
run_check (const struct target *target, const struct check *check,
           bool is_strict, struct tally *tally)
{
  static struct outcome outcome;
  const int r =
    run_apart (check->run, target, target->timeout_s, &outcome);

  if (r < 0)
    die (EXIT_FAILED, "%s: cannot be run: %s", check->name, strerror (-r));
  tally->number++;
  print_result (check, &outcome, is_strict, tally);
  fflush (stdout);
  return outcome.result != CHECK_UNREACHABLE;
}

/* Of one group; returns false if the server has gone. */
static bool
run_group (const struct target *target, const struct check *group,
           const struct choice *choice, bool is_strict, struct tally *tally)
{
  for (const struct check *check = group; check->name; check++)
    if (is_chosen (check, choice) &&
        !run_check (target, check, is_strict, tally))
      return false;
  return true;
}

static void
print_target (const struct target *target)
{
  static const char *const tls_names[] = {
    [TLS_NONE] = "none",
    [TLS_SELECTIVE] = "offered",
    [TLS_FORCED] = "demanded",
  };
  const struct facts *facts = target->facts;

  printf ("# %s\n", target->text);
  if (facts->is_opened)
    printf ("# %ju bytes, flags 0x%x, structured replies: %s, "
            "base:allocation: %s, TLS: %s\n",
            (uintmax_t) facts->size, facts->flags,
            facts->has_structured ? "yes" : "no",
            facts->has_allocation ? "yes" : "no", tls_names[facts->tls]);
  else
    printf ("# the export cannot be opened: %s\n", facts->why);
}

unsigned
suite_run (const struct target *target, const struct choice *choice,
           bool is_strict)
{
  struct tally tally = { 0 };

  printf ("1..%u\n", suite_count (choice));
  print_target (target);
  for (size_t i = 0; i < ARRAY_LEN (groups); i++)
    if (!run_group (target, groups[i], choice, is_strict, &tally)) {
      printf ("Bail out! The server is gone: this check, or the one before, "
              "was too much for it.\n");
      break;
    }
  printf ("# %u checks: %u failed, %u skipped, %u with a SHOULD not kept\n",
          tally.number, tally.nr_failed, tally.nr_skipped,
          tally.nr_remarked);
  return tally.nr_failed;
}
