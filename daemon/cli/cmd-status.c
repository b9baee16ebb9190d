/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager status: what the running daemon serves, holds and records. */
#include <config.h>

#include <errno.h>
#include <stdio.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/control-client.h"
#include "daemon/cli/status-text.h"
#include "lib/base/json.h"

static const char *control_path;
static bool json;
static bool metrics;

static void
print_reply (struct json_object *reply)
{
  if (metrics)
    fputs (bp_json_get_string (reply, "text"), stdout);
  else if (json) {
    json_object_object_del (reply, "ok");
    cli_print_json (reply);
  }
  else
    status_print (reply, stdout);
}

static int
run (int argc, char **argv)
{
  CLEANUP_CONTROL_CLIENT struct control_client client = CONTROL_CLIENT_NONE;
  CLEANUP_JSON struct json_object *request = json_object_new_object ();
  CLEANUP_JSON struct json_object *reply = NULL;
  struct bp_error err;

  (void) argv;
  cli_want_operands ("status", argc, 0, 0);
  if (json && metrics)
    cli_usage ("status", "--json and --metrics exclude each other");
  bp_json_add_string (request, "command", metrics ? "metrics" : "status");
  if (control_client_open (&client, control_path, &err) < 0 ||
      control_client_call (&client, request, &reply, &err) < 0)
    return cli_fail (&err);
  if (metrics && bp_json_get_string (reply, "text") == NULL) {
    bp_error_set (&err, -EPROTO, "status: the daemon sent no metrics");
    return cli_fail (&err);
  }
  print_reply (reply);
  return CLI_DONE;
}

static const struct cli_option options[] = {
  CLI_OPTION_CONTROL (&control_path),
  CLI_OPTION_JSON (&json),
  { .name = "metrics",
    .help = "print the counters, as Prometheus reads them",
    .flag = &metrics },
  { 0 },
};

const struct command cmd_status = {
  .name = "status",
  .synopsis = "[--control=PATH] [--json | --metrics]",
  .summary = "what the running daemon does",
  .options = options,
  .run = run,
};
