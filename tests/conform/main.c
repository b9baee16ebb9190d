/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager-nbd-conform(1): does an NBD server keep to the standard?
 *
 *   main ─▶ options, uri ─▶ probe ─▶ suite ─▶ apart ─▶ one check, in a
 *                                             process of its own:
 *
 *   checks-*.c ─▶ session ─▶ option, info, contexts ─▶ channel ─▶ dial, tls
 *              └▶ transmission, chunks, extents, data ─┘
 *
 * It decodes the protocol by itself and shares nothing with blobpagerd, so
 * that an error of one is not an error of both.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conform/options.h"
#include "conform/probe.h"
#include "conform/suite.h"
#include "conform/target.h"

static void
open_reference (struct target *target, const char *path)
{
  off_t size;

  target->reference_fd = open (path, O_RDONLY | O_CLOEXEC);
  if (target->reference_fd < 0)
    die (EXIT_FAILED, "'%s': open: %s", path, strerror (errno));
  size = lseek (target->reference_fd, 0, SEEK_END);
  if (size < 0)
    die (EXIT_FAILED, "'%s': seek: %s", path, strerror (errno));
  target->reference_size = (uint64_t) size;
}

/* Returns the exit status. */
static int
test_server (const struct options *options)
{
  static struct uri uri;
  char why[WHY_MAX];
  const char *reason;
  struct target target = {
    .uri = &uri,
    .text = options->uri,
    .timeout_s = options->timeout_s,
    .reference_fd = -1,
  };

  if (uri_parse (&uri, options->uri, &reason) < 0)
    die (EXIT_USAGE, "'%s': %s", options->uri, reason);
  if (options->reference)
    open_reference (&target, options->reference);
  if (probe_target (&target, why) < 0)
    die (EXIT_FAILED, "%s: %s", options->uri, why);
  return suite_run (&target, &options->choice, options->strict) == 0
           ? EXIT_DONE
           : EXIT_FAILED;
}

int
main (int argc, char *argv[])
{
  struct options options;
  int status = EXIT_DONE;

  signal (SIGPIPE, SIG_IGN);
  options_parse (&options, argc, argv);
  if (suite_count (&options.choice) == 0)
    die (EXIT_USAGE, "--only and --except leave no check");
  if (options.list)
    suite_list (&options.choice);
  else
    status = test_server (&options);
  if (fflush (stdout) != 0 || ferror (stdout))
    die (EXIT_FAILED, "standard output: write: %s", strerror (errno));
  return status;
}
