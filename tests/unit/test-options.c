/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* daemon/options: the command line of blobpagerd.  What exits is run in a
 * child, whose standard output and error are read back.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/front/limits.h"
#include "daemon/options.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"

#define CLEANUP_OPTIONS __attribute__ ((cleanup (options_free)))

#define LISTEN "--listen=unix:/tmp/s"
#define SEE_HELP "; see blobpagerd --help\n"
#define ROOT_A \
  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

enum {
  MAX_WORDS = 80
};

/* WORDS, which end with NULL, as an argv.  Returns argc. */
static int
make_argv (const char *const *words, char **argv)
{
  int argc = 0;

  argv[argc++] = (char *) "blobpagerd";
  for (; *words != NULL; words++) {
    cr_assert (argc < MAX_WORDS - 1);
    argv[argc++] = (char *) *words;
  }
  argv[argc] = NULL;
  return argc;
}

static struct options
parse (const char *const *words)
{
  struct options options;
  char *argv[MAX_WORDS];

  options_parse (&options, make_argv (words, argv), argv);
  return options;
}
#define PARSE(...) parse ((const char *const[]){ __VA_ARGS__, NULL })

/* A child ends here, before a sanitizer would look for leaks in it: it has
 * a thread of its parent's, and would say so.
 */
static void
leave_at_once (int status, void *opaque)
{
  (void) opaque;
  fflush (NULL);
  _exit (status);
}

/* The exit status of a child that parses WORDS (100 if it got through);
 * what it wrote is in OUT, of LEN bytes.
 */
static int
parse_in_child (const char *const *words, char *out, size_t len)
{
  int fds[2], status;
  size_t n = 0;
  ssize_t r;
  pid_t pid;

  cr_assert_eq (pipe (fds), 0);
  pid = fork ();
  cr_assert_neq (pid, -1);
  if (pid == 0) {
    dup2 (fds[1], STDOUT_FILENO);
    dup2 (fds[1], STDERR_FILENO);
    on_exit (leave_at_once, NULL);
    parse (words);
    _exit (100);
  }
  close (fds[1]);
  while (n < len - 1 && (r = read (fds[0], out + n, len - 1 - n)) > 0)
    n += (size_t) r;
  out[n] = '\0';
  close (fds[0]);
  cr_assert_eq (waitpid (pid, &status, 0), pid);
  cr_assert (WIFEXITED (status), "the child died: %d", status);
  return WEXITSTATUS (status);
}

static void
assert_usage_error (const char *const *words, const char *wanted)
{
  char out[4096];
  const int status = parse_in_child (words, out, sizeof out);

  cr_assert_eq (status, 2, "status %d: %s", status, out);
  cr_assert_str_eq (out, wanted);
}
#define ASSERT_USAGE_ERROR(wanted, ...) \
  assert_usage_error ((const char *const[]){ __VA_ARGS__, NULL }, wanted)

/* One line, and exit status 2; what it says is not looked at. */
static void
assert_refused (const char *option)
{
  const char *const words[] = { "--store=/s", LISTEN, option, NULL };
  char out[4096];
  const int status = parse_in_child (words, out, sizeof out);

  cr_assert_eq (status, 2, "%s: status %d: %s", option, status, out);
  cr_assert (strncmp (out, "blobpagerd: --", 14) == 0, "%s: %s", option,
             out);
  cr_assert_eq (strchr (out, '\n'), out + strlen (out) - 1, "%s: %s",
                option, out);
}

Test (options, defaults_are_those_of_the_manual)
{
  CLEANUP_OPTIONS struct options options = PARSE ("--store=/s", LISTEN);

  cr_assert_str_eq (options.store, "/s");
  cr_assert_null (options.driver_uri);
  cr_assert_eq (options.cache_bytes, UINT64_C (256) << 20);
  cr_assert (options.profile_auto);
  cr_assert_eq (options.replay_rate, 0);
  cr_assert_eq (options.driver_timeout, 30);
  cr_assert_eq (options.drain, 5);
  cr_assert_eq (options.max_clients, default_front_limits.max_clients);
  cr_assert_eq (options.sha256, BP_SHA256_AUTO);
  cr_assert_eq (options.nr_pins, 0);
  cr_assert_null (options.pidfile);
  cr_assert (!options.check);
  cr_assert (!options.verbose);
}

Test (options, value_may_be_the_next_word)
{
  CLEANUP_OPTIONS struct options options =
    PARSE ("--store", "/s", "--listen", "unix:/tmp/s", "--cache-size", "1G",
           "--profile=off", "--replay-rate=10M", "--driver-timeout", "7",
           "--drain=0", "--exit-when-idle=9",
           "--max-clients=3", "--sha256=openssl",
           "--pidfile=/p", "--control=/c", "--check", "--verbose");

  cr_assert_str_eq (options.store, "/s");
  cr_assert_eq (options.cache_bytes, UINT64_C (1) << 30);
  cr_assert (!options.profile_auto);
  cr_assert_eq (options.replay_rate, 10 << 20);
  cr_assert_eq (options.driver_timeout, 7);
  cr_assert_eq (options.drain, 0);
  cr_assert_eq (options.exit_when_idle, 9);
  cr_assert_eq (options.max_clients, 3);
  cr_assert_eq (options.sha256, BP_SHA256_OPENSSL);
  cr_assert_str_eq (options.pidfile, "/p");
  cr_assert_str_eq (options.control, "/c");
  cr_assert (!options.control_is_default);
  cr_assert (options.check);
  cr_assert (options.verbose);
}

Test (options, listens_are_kept_in_order)
{
  CLEANUP_OPTIONS struct options options =
    PARSE ("--store=/s", "--listen=unix:/a", "--listen=tcp:localhost:10809",
           "--listen=unix:/b,mode=0660,group=0",
           "--listen=tcp:[::1]:nbd");
  const struct listen_option *listens = options.listens;

  cr_assert_eq (options.nr_listens, 4);
  cr_assert_str_eq (listens[0].path, "/a");
  cr_assert_eq (listens[0].mode, 0600);
  cr_assert_eq (listens[0].gid, (gid_t) -1);
  cr_assert_null (listens[1].path);
  cr_assert_str_eq (listens[1].host, "localhost");
  cr_assert_str_eq (listens[1].port, "10809");
  cr_assert_str_eq (listens[2].path, "/b");
  cr_assert_eq (listens[2].mode, 0660);
  cr_assert_eq (listens[2].gid, 0);
  cr_assert_str_eq (listens[3].host, "::1");
  cr_assert_str_eq (listens[3].port, "nbd");
}

Test (options, what_is_said_of_clients_is_of_the_listener_before_it)
{
  CLEANUP_OPTIONS struct options options =
    PARSE ("--store=/s", "--allow-export=x", "--allow=none",
           "--listen=unix:/a", "--listen=tcp:localhost:1",
           "--allow-export=y*", "--allow-export", "z@*",
           "--allow=list,residency", "--allow=blob", "--listen=unix:/b");
  const struct client_settings *first = &options.listens[0].clients;
  const struct client_settings *second = &options.listens[1].clients;

  cr_assert_eq (options.clients.nr_export_globs, 1);
  cr_assert_str_eq (options.clients.export_globs[0], "x");
  cr_assert (options.clients.has_allow && !options.clients.may_list);
  cr_assert_eq (first->nr_export_globs, 0);
  cr_assert (!first->has_allow);
  cr_assert_eq (second->nr_export_globs, 2);
  cr_assert_str_eq (second->export_globs[0], "y*");
  cr_assert_str_eq (second->export_globs[1], "z@*");
  cr_assert (second->has_allow && second->may_list &&
             second->may_open_blobs && second->may_see_residency);
  cr_assert_eq (options.listens[2].clients.nr_export_globs, 0);
}

Test (options, pins_are_kept)
{
  CLEANUP_OPTIONS struct options options =
    PARSE ("--store=/s", LISTEN, "--pin=a=" ROOT_A, "--pin=b:1=" ROOT_A);

  cr_assert_eq (options.nr_pins, 2);
  cr_assert_str_eq (options.pins[0].tag, "a");
  cr_assert_str_eq (options.pins[1].tag, "b:1");
  cr_assert_eq (options.pins[1].root.bytes[31], 0xaa);
}

Test (options, driver_export_may_only_be_the_session)
{
  static const char *const good[] = {
    "nbd://host", "nbd://host/", "nbd://host:10809/session",
    "nbd+unix:///?socket=/s", "nbd+unix:///session?socket=/a/b",
    "nbds://host/session"
  };

  for (size_t i = 0; i < ARRAY_LEN (good); i++) {
    CLEANUP_OPTIONS struct options options =
      PARSE ("--driver", good[i], LISTEN, "--insecure");

    cr_assert_str_eq (options.driver_uri, good[i]);
  }
  ASSERT_USAGE_ERROR ("blobpagerd: --driver: export 'debian': the name must "
                      "be empty or 'session'" SEE_HELP,
                      "--driver=nbd://host/debian", LISTEN);
}

Test (options, bad_value_is_named_in_one_line)
{
  ASSERT_USAGE_ERROR (
    "blobpagerd: --cache-size: could not parse '12Q' as SIZE" SEE_HELP,
    "--store=/s", LISTEN, "--cache-size=12Q");
}

Test (options, every_value_out_of_range_is_refused)
{
  static const char *const bad[] = {
    "--store=",
    "--control=",
    "--pidfile=",
    "--cache-size=",
    "--cache-size=63M",
    "--cache-size=-1",
    "--cache-size=99999999999T",
    "--profile=on",
    "--replay-rate=fast",
    "--driver-timeout=0",
    "--driver-timeout=1.5",
    "--driver-timeout=99999999",
    "--drain=",
    "--drain=-1",
    "--drain=86401",
    "--exit-when-idle=0",
    "--max-clients=0",
    "--max-clients=1000001",
    "--exit-when-idle=soon",
    "--sha256=sha-ni",
    "--sha256=",
    "--listen=",
    "--listen=/tmp/s",
    "--listen=unix:",
    "--listen=unix:,mode=0600",
    "--listen=unix:/s,mode=0999",
    "--listen=unix:/s,mode=01777",
    "--listen=unix:/s,mode=",
    "--listen=unix:/s,group=no-such-group-here",
    "--listen=unix:/s,owner=0",
    "--listen=tcp:",
    "--listen=tcp:host",
    "--listen=tcp:host:",
    "--listen=tcp::10809",
    "--listen=tcp:::1:10809",
    "--listen=tcp:[::1:10809",
    "--driver=http://host",
    "--driver=host",
    "--pin=a",
    "--pin=a=aa",
    "--pin==" ROOT_A,
    "--pin=../x=" ROOT_A,
    "--pin=session=" ROOT_A,
    "--allow-export=",
    "--allow=",
    "--allow=all",
    "--allow=list,",
    "--allow=list,none",
    "--check=yes",
    "--verbose=1",
  };

  for (size_t i = 0; i < ARRAY_LEN (bad); i++)
    assert_refused (bad[i]);
}

Test (options, socket_path_that_no_socket_can_have_is_refused)
{
  char option[200];

  memset (option, 'x', sizeof option);
  memcpy (option, "--listen=unix:/", 15);
  option[sizeof option - 1] = '\0';
  assert_refused (option);
}

Test (options, tag_pinned_twice_is_refused)
{
  ASSERT_USAGE_ERROR ("blobpagerd: --pin: 'a' is pinned twice" SEE_HELP,
                      "--store=/s", LISTEN, "--pin=a=" ROOT_A,
                      "--pin=a=" ROOT_A);
}

Test (options, unknown_option_and_argument_are_refused)
{
  ASSERT_USAGE_ERROR (
    "blobpagerd: unknown option '--cache'" SEE_HELP,
    "--store=/s", LISTEN, "--cache");
  ASSERT_USAGE_ERROR (
    "blobpagerd: unknown option '-x'" SEE_HELP,
    "-x");
  ASSERT_USAGE_ERROR (
    "blobpagerd: unknown argument 'disk.img'" SEE_HELP,
    "disk.img");
  ASSERT_USAGE_ERROR ("blobpagerd: --store: needs a value, DIR" SEE_HELP,
                      "--store");
}

Test (options, exactly_one_source_and_a_listener_are_needed)
{
  ASSERT_USAGE_ERROR (
    "blobpagerd: exactly one of --store and --driver is needed" SEE_HELP,
    LISTEN);
  ASSERT_USAGE_ERROR (
    "blobpagerd: exactly one of --store and --driver is needed" SEE_HELP,
    "--store=/s", "--driver=nbd://host", LISTEN);
  ASSERT_USAGE_ERROR (
    "blobpagerd: --listen is needed: nobody could connect" SEE_HELP,
    "--store=/s");
}

Test (options, stdio_needs_neither_listener_nor_control_socket)
{
  CLEANUP_OPTIONS struct options options = PARSE ("--store=/s", "--stdio");

  cr_assert (options.use_stdio);
  cr_assert (options.ends_with_client);
  cr_assert_null (options.control);
  ASSERT_USAGE_ERROR (
    "blobpagerd: --stdio and --listen exclude each other" SEE_HELP,
    "--store=/s", "--stdio", LISTEN);
}

Test (options, sockets_for_another_process_do_not_count)
{
  setenv ("LISTEN_PID", "1", 1);
  setenv ("LISTEN_FDS", "1", 1);
  ASSERT_USAGE_ERROR (
    "blobpagerd: --listen is needed: nobody could connect" SEE_HELP,
    "--store=/s");
}

/* In a child: descriptor 3 is Criterion's here. */
Test (options, socket_from_systemd_is_a_listener)
{
  char text[16];
  int status;
  const pid_t pid = fork ();

  cr_assert_neq (pid, -1);
  if (pid == 0) {
    snprintf (text, sizeof text, "%d", (int) getpid ());
    setenv ("LISTEN_PID", text, 1);
    setenv ("LISTEN_FDS", "1", 1);
    dup2 (STDIN_FILENO, 3);
    CLEANUP_OPTIONS struct options options = PARSE ("--store=/s");

    _exit (options.nr_systemd_fds == 1 && getenv ("LISTEN_FDS") == NULL);
  }
  cr_assert_eq (waitpid (pid, &status, 0), pid);
  cr_assert (WIFEXITED (status) && WEXITSTATUS (status) == 1, "%d", status);
}

Test (options, control_socket_is_in_the_runtime_directory)
{
  setenv ("RUNTIME_DIRECTORY", "/run/one:/run/two", 1);
  CLEANUP_OPTIONS struct options options = PARSE ("--store=/s", LISTEN);

  cr_assert_str_eq (options.control, "/run/one/control.sock");
  cr_assert (options.control_is_default);
}

Test (options, help_and_version_exit_0_and_help_names_every_option)
{
  static const char *const help[] = { "--help", NULL };
  static const char *const version[] = { "--version", NULL };
  static const char *const list[] = { "--long-options", NULL };
  char text[8192], names[2048];
  char *rest = names;
  const char *name;

  cr_assert_eq (parse_in_child (help, text, sizeof text), 0);
  cr_assert_eq (parse_in_child (list, names, sizeof names), 0);
  cr_assert (strlen (names) > 50, "%s", names);
  while ((name = strsep (&rest, "\n")) != NULL)
    cr_assert_not_null (strstr (text, name), "--help lacks %s", name);
  cr_assert_eq (parse_in_child (version, text, sizeof text), 0);
  cr_assert_str_eq (text, "blobpagerd " PACKAGE_VERSION "\n");
}

Test (options, plain_text_goes_to_a_driver_on_this_host_only)
{
  static const char *const here[] = {
    "nbd://localhost", "nbd://LOCALHOST:10809/session", "nbd://",
    "nbd:///session", "nbd://127.0.0.1", "nbd://127.9.9.9:1/?x=y",
    "nbd://[::1]:10809", "nbd://me@localhost/", "nbd+unix:///?socket=/s",
    "nbd+vsock://2/", "nbds://images.example.com",
    "nbds://192.0.2.1/session?tls-verify-peer=true"
  };
  static const char *const elsewhere[][2] = {
    { "nbd://images.example.com/session", "images.example.com" },
    { "nbd://192.0.2.1:10809", "192.0.2.1" },
    { "nbd://[2001:db8::1]:10809", "2001:db8::1" },
    { "nbd://localhost.example.com", "localhost.example.com" },
    { "nbd://localhost@images", "images" },
    { "nbd://a@localhost@images", "images" },
    { "nbd://128.0.0.1", "128.0.0.1" },
    { "nbd://0.0.0.0", "0.0.0.0" },
    { "nbd://2130706433", "2130706433" },
    { "nbd://images?host=localhost", "images" },
    { "nbd://images#@localhost", "images" },
  };
  char text[300];

  for (size_t i = 0; i < ARRAY_LEN (here); i++) {
    CLEANUP_OPTIONS struct options options =
      PARSE ("--driver", here[i], LISTEN);

    cr_assert_str_eq (options.driver_uri, here[i]);
  }
  for (size_t i = 0; i < ARRAY_LEN (elsewhere); i++) {
    CLEANUP_OPTIONS struct options options =
      PARSE ("--driver", elsewhere[i][0], LISTEN, "--insecure");

    cr_assert (options.is_insecure);
    snprintf (text, sizeof text,
              "blobpagerd: --driver: '%s' is another host: use nbds:// for "
              "TLS, or --insecure for plain text" SEE_HELP,
              elsewhere[i][1]);
    ASSERT_USAGE_ERROR (text, "--driver", elsewhere[i][0], LISTEN);
  }
}

Test (options, tls_is_said_for_all_listeners_or_for_one)
{
  CLEANUP_OPTIONS struct options options =
    PARSE ("--store=/s", "--tls=on", LISTEN, "--listen=tcp:localhost:1",
           "--tls=require", "--listen=tcp:localhost:2", "--tls", "off",
           "--tls-certificates=/c", "--tls-psk=/p", "--tls-verify-peer");

  cr_assert_eq (options.clients.tls, TLS_ON);
  cr_assert_eq (options.listens[0].clients.tls, TLS_UNSAID);
  cr_assert_eq (options.listens[1].clients.tls, TLS_REQUIRE);
  cr_assert_eq (options.listens[2].clients.tls, TLS_OFF);
  cr_assert_str_eq (options.tls.certificates, "/c");
  cr_assert_str_eq (options.tls.psk, "/p");
  cr_assert (options.tls.verify_peer);
  assert_refused ("--tls=yes");
  assert_refused ("--tls=");
  assert_refused ("--tls-certificates=");
  assert_refused ("--tls-psk=");
  ASSERT_USAGE_ERROR ("blobpagerd: --tls-verify-peer needs "
                      "--tls-certificates" SEE_HELP,
                      "--store=/s", LISTEN, "--tls-verify-peer",
                      "--tls-psk=/p");
}
