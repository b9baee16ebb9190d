/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The counters as Prometheus reads them: blobpager_NAME_total for a
 * counter, blobpager_NAME for a gauge, from the table in metrics.h.
 *
 * Threads: the control loop's.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/control/commands.h"
#include "daemon/metrics.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"

#define SUFFIX_counter "_total"
#define SUFFIX_gauge ""

static void
print_metric (FILE *fp, const char *name, const char *type, const char *help,
              uint64_t value)
{
  fprintf (fp, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", name, help,
           name, type, name, value);
}

int
control_metrics (struct control_call *call, struct bp_error *err)
{
  CLEANUP_FREE char *text = NULL;
  size_t len;
  FILE *fp = open_memstream (&text, &len);

  if (fp == NULL)
    return bp_error_set (err, -ENOMEM, "metrics: %m");
#define X(name, type, help)                                        \
  print_metric (fp, "blobpager_" #name SUFFIX_##type, #type, help, \
                METRIC_GET (name));
  METRICS (X)
#undef X
  if (fclose (fp) != 0)
    return bp_error_set (err, -ENOMEM, "metrics: %m");
  bp_json_add_string (call->reply, "text", text);
  return 0;
}
