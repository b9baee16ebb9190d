/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The driver thread: it keeps the captive nbdkit running, makes sessions,
 * and serves slow requests on the control connection.
 *
 *   no session ── connect, HELLO ──▶ session ── lost ──▶ all lanes leave,
 *       ▲                                                keys forgotten,
 *       └────────────── back-off ◀────────────────────── observer told
 *
 * The control connection may end while the session lives on, because lanes
 * hold it: then another one is opened to the same session.  If that is
 * refused, or a lane was, the session is lost.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/pager/driver-internal.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/session-proto.h"

enum {
  FIRST_PAUSE_MS = 10, /* Between tries to make a session. */
  MAX_PAUSE_MS = 1000,
  SOCKET_PAUSE_MS = 5, /* While the captive nbdkit starts. */
  CONNECT_TIMEOUT_S = 10,
  LANES_WAIT_MS = 1000, /* At the start, for lanes to connect. */
};

bool
driver_is_stopping (struct driver *driver)
{
  LOCKED (&driver->lock);

  return driver->is_stopping;
}

/* Sleep, unless the program ends. */
static void
pause_ms (struct driver *driver, unsigned ms)
{
  const uint64_t until = now_ns () + ms * NS_PER_MS;
  struct pollfd pollfd = { .fd = driver->event_fd, .events = POLLIN };
  uint64_t now;

  while ((now = now_ns ()) < until && !driver_is_stopping (driver)) {
    poll (&pollfd, 1, (int) ((until - now) / NS_PER_MS) + 1);
    if (pollfd.revents)
      event_fd_drain (driver->event_fd);
  }
}

/* ---- Making a session ---- */

static bool
connect_is_cancelled (void *opaque)
{
  return driver_is_stopping (opaque);
}

static int
connect_control (struct driver *driver, const char *export,
                 struct bp_error *err)
{
  const unsigned timeout_s = driver->target.timeout_s < CONNECT_TIMEOUT_S
                               ? driver->target.timeout_s
                               : CONNECT_TIMEOUT_S;
  const struct wire_wait wait = {
    .event_fd = driver->event_fd,
    .is_cancelled = connect_is_cancelled,
    .opaque = driver,
    .deadline_ns = now_ns () + timeout_s * NS_PER_SEC,
  };

  return wire_open (&driver->control, &driver->target, export, &wait, err);
}

/* Start nbdkit unless it runs, and connect as soon as it listens. */
static int
connect_captive (struct driver *driver, struct bp_error *err)
{
  const uint64_t deadline = now_ns () + CONNECT_TIMEOUT_S * NS_PER_SEC;
  int r = 0;

  if (!captive_is_running (driver->captive))
    r = captive_start (driver->captive, err);
  while (r == 0) {
    r = connect_control (driver, "session", err);
    if (r != -ENOTCONN || now_ns () > deadline ||
        driver_is_stopping (driver))
      break;
    pause_ms (driver, SOCKET_PAUSE_MS);
    r = captive_is_running (driver->captive)
          ? 0
          : bp_error_set (err, -ENOTCONN, "captive nbdkit: not running");
  }
  /* One that runs and does not let us in is of no use. */
  if (r == -ENOTCONN || r == -ETIMEDOUT)
    captive_stop (driver->captive);
  return r;
}

static int
make_session (struct driver *driver, struct bp_error *err)
{
  struct bp_hello_reply hello;
  int r;

  r = driver->captive ? connect_captive (driver, err)
                      : connect_control (driver, "session", err);
  if (r == 0)
    r = driver_say_hello (driver, &hello, err);
  if (r < 0)
    return r;
  METRIC_ADD (driver_sessions, 1);
  session_begin (&driver->gate, &hello);
  if (session_wait (&driver->gate, &driver->session))
    log_info ("driver: session %llu with %s",
              (unsigned long long) driver->session.epoch, driver->uri);
  driver->logged[0] = '\0';
  return 0;
}

/* Say so once for each reason, and keep it for who waits. */
static void
note_failure (struct driver *driver, const struct bp_error *err)
{
  pthread_mutex_lock (&driver->lock);
  driver->last_error = *err;
  pthread_mutex_unlock (&driver->lock);
  if (err->code == -ECANCELED || strcmp (err->msg, driver->logged) == 0)
    return;
  memcpy (driver->logged, err->msg, sizeof driver->logged);
  log_error ("driver: %s: %s, trying again", driver->uri, err->msg);
}

/* ---- A session ---- */

/* The control connection has ended, or is stuck: another one. */
static bool
replace_control (struct driver *driver)
{
  struct bp_error err;

  wire_close (steal_ptr (&driver->control));
  if (connect_control (driver, driver->session.export, &err) == 0)
    return true;
  log_debug ("driver: control connection: %s", err.msg);
  return false;
}

/* Serve until the session is lost, or the program ends. */
static void
serve (struct driver *driver)
{
  int r;

  while (!driver_is_stopping (driver) &&
         !session_is_doubtful (&driver->gate)) {
    slow_request_start_next (driver);
    r = wire_poll (driver->control, driver->event_fd,
                   TAILQ_EMPTY (&driver->control->completed)
                     ? slow_request_timeout_ms (driver)
                     : 0);
    wire_dispatch (driver->control);
    if ((r < 0 || slow_request_is_stuck (driver)) &&
        !replace_control (driver))
      return;
  }
}

static void
end_session (struct driver *driver)
{
  session_end (&driver->gate);
  fetcher_kick_all (driver->fetcher);
  wire_close (steal_ptr (&driver->control));
  session_wait_empty (&driver->gate);
  fetcher_session_lost (driver->fetcher);
  if (driver_is_stopping (driver))
    return;
  log_warn ("driver: session %llu is lost, making another one",
            (unsigned long long) driver->session.epoch);
  observing_session_lost (&driver->fetcher->observing);
}

static void *
driver_main (void *opaque)
{
  struct driver *driver = opaque;
  unsigned ms = FIRST_PAUSE_MS;
  struct bp_error err;

  while (!driver_is_stopping (driver)) {
    if (make_session (driver, &err) == 0) {
      serve (driver);
      end_session (driver);
      ms = FIRST_PAUSE_MS;
    }
    else if (!driver_is_stopping (driver))
      note_failure (driver, &err);
    pause_ms (driver, ms);
    ms = ms * 2 < MAX_PAUSE_MS ? ms * 2 : MAX_PAUSE_MS;
  }
  /* By the thread that started it: see captive.h. */
  if (driver->captive)
    captive_stop (driver->captive);
  return NULL;
}

/* ---- Life ---- */

/* URI without what stands before an @: it may name a person, or hold a
 * password.
 */
static char *
uri_for_people (const char *uri)
{
  const char *host = strstr (uri, "://");
  const char *at;
  char *copy;

  if (host == NULL)
    return strdup (uri);
  host += 3;
  at = memchr (host, '@', strcspn (host, "/?"));
  if (at == NULL)
    return strdup (uri);
  if (asprintf (&copy, "%.*s%s", (int) (host - uri), uri, at + 1) == -1)
    return NULL;
  return copy;
}

static int
set_target (struct driver *driver, const struct driver_config *config,
            struct bp_error *err)
{
  int r;

  driver->target.timeout_s = config->timeout_s;
  if (config->store) {
    r = captive_new (&driver->captive, config->store, err);
    if (r < 0)
      return r;
    driver->target.socket = captive_socket (driver->captive);
    if (asprintf (&driver->uri, "nbd+unix:///session?socket=%s",
                  driver->target.socket) == -1)
      driver->uri = NULL;
  }
  else {
    driver->target.uri = config->uri;
    driver->uri = uri_for_people (config->uri);
  }
  return driver->uri ? 0 : bp_error_set (err, -ENOMEM, "driver: out of memory");
}

static void
init_locks (struct driver *driver)
{
  pthread_condattr_t attr;

  pthread_mutex_init (&driver->lock, NULL);
  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&driver->changed, &attr);
  pthread_condattr_destroy (&attr);
}

/* No thread of it runs. */
static void
destroy (struct driver *driver)
{
  captive_free (driver->captive);
  session_gate_done (&driver->gate);
  pthread_cond_destroy (&driver->changed);
  pthread_mutex_destroy (&driver->lock);
  if (driver->event_fd >= 0)
    close (driver->event_fd);
  free (driver->uri);
  free (driver);
}

static void
stop (struct driver *driver)
{
  pthread_mutex_lock (&driver->lock);
  driver->is_stopping = true;
  pthread_cond_broadcast (&driver->changed);
  pthread_mutex_unlock (&driver->lock);
  session_stop (&driver->gate);
  event_fd_signal (driver->event_fd);
}

static int
start (struct driver *driver, struct bp_error *err)
{
  int r;

  r = fetcher_new (&driver->fetcher, &driver->gate, &driver->target, err);
  if (r < 0)
    return r;
  r = pthread_create (&driver->thread, NULL, driver_main, driver);
  if (r == 0)
    return 0;
  stop (driver);
  fetcher_shut_down (driver->fetcher);
  fetcher_free (driver->fetcher);
  return bp_error_set (err, -r, "driver: thread: %m");
}

int
driver_new (struct driver **ret_driver, const struct driver_config *config,
            struct bp_error *err)
{
  struct driver *driver = calloc (1, sizeof *driver);
  int r;

  if (driver == NULL)
    return bp_error_set (err, -ENOMEM, "driver: out of memory");
  TAILQ_INIT (&driver->queue);
  init_locks (driver);
  driver->event_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  r = driver->event_fd < 0 ? bp_error_set (err, -errno, "driver: eventfd: %m")
                           : 0;
  session_gate_init (&driver->gate, driver->event_fd);
  if (r == 0)
    r = set_target (driver, config, err);
  if (r == 0)
    r = start (driver, err);
  if (r < 0) {
    destroy (driver);
    return r;
  }
  *ret_driver = driver;
  return 0;
}

void
driver_observe (struct driver *driver,
                const struct driver_observer *observer)
{
  observing_set (&driver->fetcher->observing, observer);
}

int
driver_wait_ready (struct driver *driver, unsigned timeout_s,
                   struct bp_error *err)
{
  struct session session;
  int r;

  r = session_wait_until (&driver->gate,
                          now_ns () + timeout_s * NS_PER_SEC, &session);
  if (r == 0) {
    /* One lane is enough to serve, but those that are on their way are
     * waited for: so --check leaves no half-made connection behind.
     */
    session_wait_lanes (&driver->gate, NR_LANES,
                        now_ns () + LANES_WAIT_MS * NS_PER_MS);
    return 0;
  }
  if (r == -ESHUTDOWN)
    return bp_error_set (err, r, "driver: shutting down");
  pthread_mutex_lock (&driver->lock);
  if (err)
    *err = driver->last_error;
  r = driver->last_error.code;
  pthread_mutex_unlock (&driver->lock);
  if (r == 0)
    return bp_error_set (err, -ETIMEDOUT, "driver: %s: no answer in time",
                         driver->uri);
  return bp_error_wrap (err, r, "driver: %s", driver->uri);
}

void
driver_shut_down (struct driver *driver)
{
  stop (driver);
  fetcher_shut_down (driver->fetcher);
  observing_set (&driver->fetcher->observing, NULL);
}

/* Nobody is inside a slow request any more. */
static void
wait_for_callers (struct driver *driver)
{
  LOCKED (&driver->lock);

  while (driver->nr_callers > 0)
    pthread_cond_wait (&driver->changed, &driver->lock);
}

void
driver_free (struct driver *driver)
{
  if (driver == NULL)
    return;
  driver_shut_down (driver);
  pthread_join (driver->thread, NULL);
  wait_for_callers (driver);
  fetcher_free (driver->fetcher);
  destroy (driver);
}

struct fetcher *
driver_fetcher (struct driver *driver)
{
  return driver->fetcher;
}

const char *
driver_uri (const struct driver *driver)
{
  return driver->uri;
}

bool
driver_is_connected (struct driver *driver)
{
  struct session session;

  return session_wait_until (&driver->gate, 0, &session) == 0;
}
