/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpagerd's command line.
 *
 * One table names every option; parsing, --help and --long-options are
 * made from it, and tests/check-docs.sh compares it with blobpagerd(8).
 * The synopsis that --help prints is man/synopsis-blobpagerd.txt, which
 * the manual page includes.
 *
 * An option is written --name=VALUE or --name VALUE, in full.  A command
 * line that is wrong costs one line on standard error and exit status 2.
 *
 * Threads: main only, before any other starts.
 */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/control-path.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/synopsis.h"
#include "daemon/systemd.h"
#include "lib/base/range.h"

#define DEFAULT_CACHE_BYTES (UINT64_C (256) << 20)

enum {
  DEFAULT_DRIVER_TIMEOUT = 30, /* Seconds. */
  DEFAULT_DRAIN = 5,           /* Seconds. */
  DEFAULT_MAX_CLIENTS = 4096,
  EXIT_USAGE = 2,
};

static void __attribute__ ((format (printf, 1, 2), noreturn))
usage_error (const char *fmt, ...)
{
  va_list args;

  fputs ("blobpagerd: ", stderr);
  va_start (args, fmt);
  vfprintf (stderr, fmt, args);
  va_end (args);
  fputs ("; see blobpagerd --help\n", stderr);
  exit (EXIT_USAGE);
}

static int print_help (struct options *options, const char *value,
                       struct bp_error *err);
static int print_version (struct options *options, const char *value,
                          struct bp_error *err);
static int print_long_options (struct options *options, const char *value,
                               struct bp_error *err);

/* A row without help is hidden. */
/* clang-format off */
static const struct option_row rows[] = {
  { "store", "DIR",
    "serve the images of this store, through an nbdkit of our own",
    set_store },
  { "driver", "URI",
    "serve the images of an nbdkit-blobpager-plugin that runs elsewhere",
    set_driver },
  { "listen", "ADDRESS",
    "serve NBD clients on unix:PATH or tcp:HOST:PORT; may be repeated",
    set_listen },
  { "stdio", NULL,
    "serve one NBD client on standard input and output, and end with it",
    set_stdio },
  { "allow-export", "GLOB",
    "serve only exports whose name matches; may be repeated",
    set_allow_export },
  { "allow", "WHAT",
    "of list,blob,residency, or none: what clients may do [unix: all]",
    set_allow },
  { "tls", "require|on|off",
    "whether clients must, may or cannot use TLS [TCP to others: require]",
    set_tls },
  { "tls-certificates", "DIR",
    "server-cert.pem and server-key.pem for TLS",
    set_tls_certificates },
  { "tls-verify-peer", NULL,
    "clients need a certificate that DIR/ca-cert.pem has issued",
    set_tls_verify_peer },
  { "tls-psk", "FILE",
    "pre-shared keys for TLS, as psktool writes them",
    set_tls_psk },
  { "insecure", NULL,
    "allow plain text over the network, from clients and to the driver",
    set_insecure },
  { "control", "PATH",
    "the control socket, for blobpager status and blobpager profile",
    set_control },
  { "cache-size", "SIZE",
    "memory for verified bytes, at least 64M [256M]",
    set_cache_size },
  { "profile", "auto|off",
    "record and replay what each image reads at its start [auto]",
    set_profile },
  { "replay-rate", "SIZE",
    "bytes a second that replay may fetch, 0 for no limit [0]",
    set_replay_rate },
  { "driver-timeout", "SECONDS",
    "how long a client waits for the driver before it gets an error [30]",
    set_driver_timeout },
  { "drain", "SECONDS",
    "how long a daemon that stops finishes what is in flight [5]",
    set_drain },
  { "exit-when-idle", "SECONDS",
    "end when no client has been connected for that long",
    set_exit_when_idle },
  { "sha256", "auto|openssl",
    "what verifies: the fastest there is, or OpenSSL alone [auto]",
    set_sha256 },
  { "max-clients", "NUMBER",
    "connections at a time; one more is closed at once [4096]",
    set_max_clients },
  { "pin", "TAG=ROOT",
    "serve TAG only while it names this image root; may be repeated",
    set_pin },
  { "pidfile", "PATH",
    "written when ready to serve, removed on exit",
    set_pidfile },
  { "check", NULL,
    "read the configuration, open the store or driver, and exit",
    set_check },
  { "verbose", NULL, "log what happens, not only what fails", set_verbose },
  { "help", NULL, "print this text and exit", print_help },
  { "version", NULL, "print the version and exit", print_version },
  { "long-options", NULL, NULL, print_long_options },
};
/* clang-format on */

static int __attribute__ ((noreturn))
print_help (struct options *options, const char *value, struct bp_error *err)
{
  char left[32];

  (void) options;
  (void) value;
  (void) err;
  printf ("Serve disk images over NBD, every byte verified.\n\n%s\n"
          "Options:\n\n",
          blobpagerd_synopsis);
  for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
    if (rows[i].help == NULL)
      continue;
    snprintf (left, sizeof left, "--%s%s%s", rows[i].name,
              rows[i].arg != NULL ? "=" : "",
              rows[i].arg != NULL ? rows[i].arg : "");
    printf ("  %-24s  %s\n", left, rows[i].help);
  }
  puts ("\nExamples:\n\n"
        "  blobpager import --store=/var/lib/images --name=debian disk.img\n"
        "  blobpagerd --store=/var/lib/images"
        " --listen=unix:/tmp/blobpager.sock\n"
        "  nbdinfo 'nbd+unix:///debian?socket=/tmp/blobpager.sock'\n"
        "  blobpager status\n\n"
        "Please read the blobpagerd(8) manual page for the rest.");
  exit (EXIT_SUCCESS);
}

static int __attribute__ ((noreturn))
print_version (struct options *options, const char *value,
               struct bp_error *err)
{
  (void) options;
  (void) value;
  (void) err;
  puts ("blobpagerd " PACKAGE_VERSION);
  exit (EXIT_SUCCESS);
}

static int __attribute__ ((noreturn))
print_long_options (struct options *options, const char *value,
                    struct bp_error *err)
{
  (void) options;
  (void) value;
  (void) err;
  for (size_t i = 0; i < ARRAY_LEN (rows); i++)
    if (rows[i].help != NULL)
      printf ("--%s\n", rows[i].name);
  exit (EXIT_SUCCESS);
}

/* The row of the option that ARG (behind its dashes) names up to "=". */
static const struct option_row *
find_row (const char *arg)
{
  const size_t len = strcspn (arg, "=");

  for (size_t i = 0; i < ARRAY_LEN (rows); i++)
    if (strlen (rows[i].name) == len && memcmp (rows[i].name, arg, len) == 0)
      return &rows[i];
  return NULL;
}

/* Parse the option at ARGV[0]; NEXT may be its value.  Returns how many
 * words it took.
 */
static int
parse_option (struct options *options, const char *arg, const char *next)
{
  const struct option_row *row =
    strncmp (arg, "--", 2) == 0 ? find_row (arg + 2) : NULL;
  const char *equals = strchr (arg, '=');
  const char *value = equals != NULL ? equals + 1 : NULL;
  struct bp_error err = { 0 };
  int words = 1;

  if (row == NULL)
    usage_error ("unknown %s '%s'",
                 arg[0] == '-' ? "option" : "argument", arg);
  if (row->arg == NULL && value != NULL)
    usage_error ("--%s: takes no value", row->name);
  if (row->arg != NULL && value == NULL) {
    if (next == NULL)
      usage_error ("--%s: needs a value, %s", row->name, row->arg);
    value = next;
    words = 2;
  }
  if (row->set (options, value, &err) < 0) {
    if (err.msg[0] != '\0')
      usage_error ("--%s: %s", row->name, err.msg);
    usage_error ("--%s: could not parse '%s' as %s", row->name, value,
                 row->arg);
  }
  return words;
}

/* Who is started with a listening socket need not look for its client at
 * standard input, even if told --stdio.
 */
static void
complete_listens (struct options *options)
{
  options->nr_systemd_fds = systemd_take_fds ();
  if (options->ends_with_client) {
    if (options->nr_listens > 0)
      usage_error ("--stdio and --listen exclude each other");
    if (!systemd_fd_listens (SYSTEMD_FIRST_FD))
      options->nr_systemd_fds = 0;
    options->use_stdio = options->nr_systemd_fds == 0;
  }
  else if (options->nr_listens == 0 && options->nr_systemd_fds == 0)
    usage_error ("--listen is needed: nobody could connect");
}

static void
complete_control (struct options *options)
{
  if (options->control != NULL || options->ends_with_client)
    return;
  options->control = control_default_path ();
  options->control_is_default = true;
  if (options->control == NULL)
    usage_error ("--control is needed: neither RUNTIME_DIRECTORY nor "
                 "XDG_RUNTIME_DIR is set");
}

/* What no option says, and what must not be said together. */
static void
complete_options (struct options *options)
{
  struct bp_error err;

  if ((options->store != NULL) == (options->driver_uri != NULL))
    usage_error ("exactly one of --store and --driver is needed");
  complete_listens (options);
  if (check_driver (options, &err) < 0)
    usage_error ("--driver: %s", err.msg);
  if (options->tls.verify_peer && options->tls.certificates == NULL)
    usage_error ("--tls-verify-peer needs --tls-certificates");
  complete_control (options);
}

void
options_free (struct options *options)
{
  for (size_t i = 0; i < options->nr_listens; i++)
    listen_option_free (&options->listens[i]);
  free (options->listens);
  free (options->clients.export_globs);
  for (size_t i = 0; i < options->nr_pins; i++)
    free (options->pins[i].tag);
  free (options->pins);
  if (options->control_is_default)
    free ((char *) options->control);
}

void
options_parse (struct options *options, int argc, char *argv[])
{
  *options = (struct options){
    .cache_bytes = DEFAULT_CACHE_BYTES,
    .profile_auto = true,
    .driver_timeout = DEFAULT_DRIVER_TIMEOUT,
    .drain = DEFAULT_DRAIN,
    .max_clients = DEFAULT_MAX_CLIENTS,
  };
  for (int i = 1; i < argc;)
    i += parse_option (options, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
  complete_options (options);
}
