/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpagerd: serve disk images over NBD, every byte verified.
 *
 * The daemon is a stack of stages, listed in one table: started from the
 * first to the last, stopped from the last to the first.
 *
 *   signals   blocked in every thread; taken here, one at a time
 *   limits    as many open files as we may have
 *   stdio     standard input and output are the client's (--stdio only);
 *             its stop lets what was sent be written
 *   control   the control socket is ours
 *   tls       certificates and keys are read
 *   store     there, and a store (--store only): a clear error, early
 *   driver    the captive nbdkit or --driver, lanes, verifier
 *   pager     cache, exports, reads
 *   profiles  recording and replay
 *   commands  the control socket is served
 *   requests  nothing to start; its stop makes whoever still waits for
 *             the driver or a replay give up, so that the stages under it
 *             can join their threads
 *   front     listeners and event loops; its stop lets what is in flight
 *             be answered for --drain seconds, or until the next signal
 *   session   wait until the driver answers (--store: it must)
 *   pidfile   and the word to systemd: ready
 *
 * SIGTERM and SIGINT stop it, SIGHUP makes it look tags up afresh.
 *
 * Threads: this file is the main thread.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/control/control.h"
#include "daemon/descriptors.h"
#include "daemon/front/front.h"
#include "daemon/front/listener.h"
#include "daemon/front/tls.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/pager.h"
#include "daemon/pidfile.h"
#include "daemon/profile/profile.h"
#include "daemon/signals.h"
#include "daemon/stdio-client.h"
#include "daemon/systemd.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "lib/sha256.h"
#include "lib/store.h"

enum {
  REMOTE_DRIVER_WAIT_S = 2, /* Before we serve without a session. */
};

struct daemon {
  struct options options;
  struct signals signals;
  uint64_t drain_end_ns; /* Once it stops. */
  struct stdio_client stdio;
  struct driver *driver;
  struct pager *pager;
  struct profiles *profiles;
  struct control *control;
  struct tls_server *tls; /* NULL: there are no credentials. */
  struct front *front;
};

/* Clients that come from now on meet the certificates and keys of now. */
static void
reload_tls (const struct daemon *daemon)
{
  struct bp_error err;

  if (daemon->tls == NULL)
    return;
  if (tls_server_reload (daemon->tls, &err) == 0)
    log_info ("SIGHUP: certificates and keys are read again");
  else
    log_error ("%s; going on with what was read before", err.msg);
}

/* Heed what signals say.  Returns true if it is to end. */
static bool
heed_signals (struct daemon *daemon)
{
  int sig;

  while ((sig = signals_take (&daemon->signals)) == SIGHUP) {
    pager_forget_tags (daemon->pager);
    log_info ("SIGHUP: exports opened from now on look their tags up "
              "afresh");
    reload_tls (daemon);
  }
  if (sig != 0)
    log_info ("%s: stopping", sig == SIGTERM ? "SIGTERM" : "SIGINT");
  return sig != 0;
}

/* Nobody is there to be served. */
static void
log_end (const struct options *options)
{
  if (options->ends_with_client)
    log_debug ("the client has gone: stopping");
  else
    log_info ("no client for %u seconds: stopping",
              options->exit_when_idle);
}

/* Until a signal ends it or there is nobody to serve. */
static void
run (struct daemon *daemon)
{
  struct pollfd fds[] = {
    { .fd = daemon->signals.fd, .events = POLLIN },
    { .fd = front_end_fd (daemon->front), .events = POLLIN },
  };

  while (!heed_signals (daemon)) {
    if (fds[1].revents != 0) {
      log_end (&daemon->options);
      return;
    }
    poll (fds, ARRAY_LEN (fds), -1);
  }
}

/* ---- Stages ---- */

static int
start_signals (struct daemon *daemon, struct bp_error *err)
{
  return signals_init (&daemon->signals, err);
}

static void
stop_signals (struct daemon *daemon)
{
  signals_done (&daemon->signals);
}

static int
start_tls (struct daemon *daemon, struct bp_error *err)
{
  return tls_server_new (&daemon->tls, &daemon->options.tls, err);
}

/* Instead of opening them. */
static int
check_listeners (struct daemon *daemon, struct bp_error *err)
{
  return listeners_check (&daemon->options, err);
}

static void
stop_tls (struct daemon *daemon)
{
  tls_server_free (daemon->tls);
}

/* The captive nbdkit would say the same, but again and again. */
static int
check_store (struct daemon *daemon, struct bp_error *err)
{
  struct bp_store *store = NULL;
  int r;

  if (daemon->options.store == NULL)
    return 0;
  r = bp_store_open (&store, daemon->options.store, BP_STORE_READ, err);
  if (r == 0)
    bp_store_close (store);
  return r;
}

static int
start_driver (struct daemon *daemon, struct bp_error *err)
{
  const struct driver_config config = {
    .store = daemon->options.store,
    .uri = daemon->options.driver_uri,
    .timeout_s = daemon->options.driver_timeout,
  };

  return driver_new (&daemon->driver, &config, err);
}

static void
stop_driver (struct daemon *daemon)
{
  driver_free (daemon->driver);
}

static int
start_pager (struct daemon *daemon, struct bp_error *err)
{
  return pager_new (&daemon->pager, &daemon->options, daemon->driver, err);
}

static void
stop_pager (struct daemon *daemon)
{
  pager_free (daemon->pager);
}

static int
start_profiles (struct daemon *daemon, struct bp_error *err)
{
  return profiles_new (&daemon->profiles, &daemon->options, daemon->pager,
                       daemon->driver, err);
}

static void
stop_profiles (struct daemon *daemon)
{
  profiles_free (daemon->profiles);
}

static int
raise_limits (struct daemon *daemon, struct bp_error *err)
{
  (void) err;
  descriptors_allow (daemon->options.max_clients);
  return 0;
}

static int
start_stdio (struct daemon *daemon, struct bp_error *err)
{
  daemon->stdio = (struct stdio_client) STDIO_NONE;
  return daemon->options.use_stdio ? stdio_take (&daemon->stdio, err) : 0;
}

static void
stop_stdio (struct daemon *daemon)
{
  stdio_done (&daemon->stdio, daemon->drain_end_ns, daemon->signals.end_fd);
}

/* With --stdio there may be none. */
static int
start_control (struct daemon *daemon, struct bp_error *err)
{
  if (daemon->options.control == NULL)
    return 0;
  return control_new (&daemon->control, &daemon->options, err);
}

static void
stop_control (struct daemon *daemon)
{
  if (daemon->control != NULL)
    control_free (daemon->control);
}

static int
start_commands (struct daemon *daemon, struct bp_error *err)
{
  if (daemon->control == NULL)
    return 0;
  return control_run (daemon->control, daemon->pager, daemon->profiles,
                      daemon->driver, err);
}

static void
stop_commands (struct daemon *daemon)
{
  if (daemon->control != NULL)
    control_stop (daemon->control);
}

static void
stop_requests (struct daemon *daemon)
{
  profiles_shut_down (daemon->profiles);
  driver_shut_down (daemon->driver);
}

static int
start_front (struct daemon *daemon, struct bp_error *err)
{
  const struct options *options = &daemon->options;
  int fd, r;

  r = front_new (&daemon->front, options, daemon->pager, daemon->tls, err);
  if (r < 0 || !options->use_stdio)
    return r;
  r = stdio_connect (&daemon->stdio, &fd, err);
  if (r == 0)
    r = front_add_client (daemon->front, options, fd,
                          daemon->stdio.is_bridged, err);
  if (r < 0) {
    front_stop (daemon->front, 0, -1);
    front_free (daemon->front);
  }
  return r;
}

static void
stop_front (struct daemon *daemon)
{
  front_stop (daemon->front, daemon->options.drain,
              daemon->signals.end_fd);
  front_free (daemon->front);
}

/* Wait for the first session, a second at a time so that a signal is not
 * kept waiting.
 */
static int
wait_for_session (struct daemon *daemon, unsigned timeout_s,
                  struct bp_error *err)
{
  int r;

  do {
    if (signals_take_end (&daemon->signals))
      return bp_error_set (err, -ECANCELED, "told to end while starting");
    r = driver_wait_ready (daemon->driver, 1, err);
  } while (r < 0 && --timeout_s > 0);
  return r;
}

static int
start_session (struct daemon *daemon, struct bp_error *err)
{
  const struct options *options = &daemon->options;
  int r;

  if (options->store != NULL || options->check)
    return wait_for_session (daemon, options->driver_timeout, err);

  r = wait_for_session (daemon, REMOTE_DRIVER_WAIT_S, err);
  if (r == 0 || r == -ECANCELED)
    return r;
  log_warn ("%s; serving without it, clients wait", err->msg);
  return 0;
}

static int
start_pidfile (struct daemon *daemon, struct bp_error *err)
{
  int r = 0;

  front_run (daemon->front);
  if (daemon->options.pidfile != NULL)
    r = pidfile_write (daemon->options.pidfile, err);
  if (r < 0)
    return r;
  log_info ("ready");
  systemd_notify ("READY=1");
  return 0;
}

static void
stop_pidfile (struct daemon *daemon)
{
  systemd_notify ("STOPPING=1");
  if (daemon->options.pidfile != NULL)
    pidfile_remove (daemon->options.pidfile);
}

struct stage {
  /* NULL: nothing to do.  START returns 0 or a negative errno. */
  int (*start) (struct daemon *daemon, struct bp_error *err);
  void (*stop) (struct daemon *daemon);
};

/* clang-format off */
static const struct stage serve_stages[] = {
  { start_signals,  stop_signals },
  { raise_limits,   NULL },
  { start_stdio,    stop_stdio },
  { start_control,  stop_control },
  { start_tls,      stop_tls },
  { check_store,    NULL },
  { start_driver,   stop_driver },
  { start_pager,    stop_pager },
  { start_profiles, stop_profiles },
  { start_commands, stop_commands },
  { NULL,           stop_requests },
  { start_front,    stop_front },
  { start_session,  NULL },
  { start_pidfile,  stop_pidfile },
};

static const struct stage check_stages[] = {
  { start_signals,  stop_signals },
  { check_listeners, NULL },
  { start_tls,      stop_tls },
  { check_store,    NULL },
  { start_driver,   stop_driver },
  { start_session,  NULL },
};
/* clang-format on */

/* Start COUNT stages.  Returns 0, or a negative errno; *RET_STARTED says
 * how many are to be stopped.
 */
static int
start_stages (struct daemon *daemon, const struct stage *stages,
              size_t count, size_t *ret_started, struct bp_error *err)
{
  int r = 0;
  size_t i;

  for (i = 0; i < count; i++) {
    if (stages[i].start != NULL)
      r = stages[i].start (daemon, err);
    if (r < 0)
      break;
  }
  *ret_started = i;
  return r;
}

static void
stop_stages (struct daemon *daemon, const struct stage *stages, size_t count)
{
  while (count-- > 0)
    if (stages[count].stop != NULL)
      stages[count].stop (daemon);
}

static int
serve (struct daemon *daemon)
{
  struct bp_error err = { 0 };
  size_t nr_started;
  const int r = start_stages (daemon, serve_stages, ARRAY_LEN (serve_stages),
                              &nr_started, &err);

  if (r == 0)
    run (daemon);
  else
    log_error ("%s", err.msg);
  daemon->drain_end_ns = now_ns () + daemon->options.drain * NS_PER_SEC;
  stop_stages (daemon, serve_stages, nr_started);
  return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int
check (struct daemon *daemon)
{
  struct bp_error err = { 0 };
  size_t nr_started;
  const int r = start_stages (daemon, check_stages, ARRAY_LEN (check_stages),
                              &nr_started, &err);

  if (r == 0)
    puts ("configuration OK");
  else
    log_error ("%s", err.msg);
  stop_stages (daemon, check_stages, nr_started);
  return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main (int argc, char *argv[])
{
  static struct daemon daemon;
  int status, r;

  options_parse (&daemon.options, argc, argv);
  log_init ("blobpagerd", daemon.options.verbose);
  r = bp_sha256_use (daemon.options.sha256);
  assert (r == 0); /* What it may be works on every CPU. */
  log_debug ("SHA-256: %s", bp_sha256_name ());
  status = daemon.options.check ? check (&daemon) : serve (&daemon);
  options_free (&daemon.options);
  return status;
}
