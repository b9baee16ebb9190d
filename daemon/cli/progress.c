/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Showing progress. */
#include <config.h>

#include <stdio.h>
#include <unistd.h>

#include "daemon/cli/progress.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "lib/base/size.h"

#define TERMINAL_PERIOD_NS (200 * NS_PER_MS)
#define PIPE_PERIOD_NS NS_PER_SEC

void
progress_start (struct progress *progress, const char *what, bool force)
{
  const bool is_terminal = isatty (STDERR_FILENO);

  *progress = (struct progress){
    .what = what,
    .is_shown = is_terminal || force,
    .is_terminal = is_terminal,
    .started_ns = now_ns (),
    .shown_ns = now_ns (),
  };
}

static void
print_line (struct progress *progress, uint64_t done, uint64_t total,
            uint64_t now)
{
  const uint64_t ms = (now - progress->started_ns) / NS_PER_MS;
  char done_text[32], total_text[32], rate[32];

  bp_size_format (done, done_text, sizeof done_text);
  bp_size_format (total, total_text, sizeof total_text);
  bp_size_format (done / MAX (ms, 1) * 1000, rate, sizeof rate);
  fprintf (stderr, "%s%s: %s", progress->is_terminal ? "\r\033[K" : "",
           progress->what, done_text);
  if (total > 0)
    fprintf (stderr, " of %s, %.0f%%", total_text,
             100 * (double) done / (double) total);
  fprintf (stderr, ", %s/s%s", rate, progress->is_terminal ? "" : "\n");
  fflush (stderr);
  progress->has_line = progress->is_terminal;
}

void
progress_show (void *opaque, uint64_t done, uint64_t total)
{
  struct progress *progress = opaque;
  uint64_t now;

  if (!progress->is_shown)
    return;
  now = now_ns ();
  if (now - progress->shown_ns <
      (progress->is_terminal ? TERMINAL_PERIOD_NS : PIPE_PERIOD_NS))
    return;
  progress->shown_ns = now;
  print_line (progress, done, total, now);
}

void
progress_clear (struct progress *progress)
{
  if (!progress->has_line)
    return;
  fputs ("\r\033[K", stderr);
  fflush (stderr);
  progress->has_line = false;
}
