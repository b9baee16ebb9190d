/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The command line. */
#ifndef BP_CONFORM_OPTIONS_H
#define BP_CONFORM_OPTIONS_H

#include <stdbool.h>

enum {
  MAX_GLOBS = 64,
};

struct globs {
  unsigned count;
  const char *list[MAX_GLOBS];
};

/* Of checks, by their names. */
struct choice {
  struct globs only; /* None: all. */
  struct globs except;
};

struct options {
  const char *uri; /* NULL only with list. */
  struct choice choice;
  const char *reference;
  unsigned timeout_s;
  bool list;
  bool strict;
};

/* Parse ARGV.  Exits for --help, --version, and with status 2 for a
 * command line that is wrong.
 */
void options_parse (struct options *options, int argc, char **argv);

/* One line on standard error, and exit with STATUS. */
void die (int status, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3), noreturn));

enum {
  EXIT_DONE = 0,
  EXIT_FAILED = 1,
  EXIT_USAGE = 2,
};

/* man/synopsis-blobpager-nbd-conform.txt. */
extern const char conform_synopsis[];

#endif /* BP_CONFORM_OPTIONS_H */
