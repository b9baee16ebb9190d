/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The control socket's loop.
 *
 * One thread polls the listener and a fixed table of connections, and
 * runs the commands that do not wait; those that do get a thread each
 * (peer.c), at most one a connection.  Only the daemon's own user
 * and root may connect.
 *
 * When the table is full the connection that has been idle longest makes
 * room; one that runs a command or owns a recording never does.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/control/commands.h"
#include "daemon/control/peer.h"
#include "daemon/control/control.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/unix-socket.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

enum {
  MAX_PEERS = 32,
  STUCK_CHECK_MS = 5000, /* How often replies are looked at that nobody
                            takes. */
  ACCEPT_PAUSE_MS = 100, /* After accept has failed for want of memory or
                            descriptors. */
};

struct control {
  struct control_context context;
  struct unix_socket listener;
  int wake_fd;            /* eventfd: a job is done, or the end has come. */
  _Atomic bool is_ending; /* Read by the loop when it is woken. */
  pthread_t thread;
  bool accept_failed;           /* Do not poll the listener this time. */
  struct peer peers[MAX_PEERS]; /* The loop's. */
};

/* ---- Accepting ---- */

static bool
is_allowed (int fd)
{
  struct ucred cred;
  socklen_t len = sizeof cred;

  if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1) {
    log_warn ("control: SO_PEERCRED: %m; connection refused");
    return false;
  }
  if (cred.uid == 0 || cred.uid == geteuid ())
    return true;
  log_warn ("control: connection of user %u refused", (unsigned) cred.uid);
  return false;
}

/* A free slot, or that of the connection that was idle longest, closed;
 * NULL if every one is busy.
 */
static struct peer *
find_slot (struct control *control)
{
  struct peer *oldest = NULL;

  for (size_t i = 0; i < MAX_PEERS; i++) {
    struct peer *peer = &control->peers[i];

    if (!peer->is_used)
      return peer;
    if (peer_is_idle (peer) &&
        (oldest == NULL || peer->active_ns < oldest->active_ns))
      oldest = peer;
  }
  if (oldest != NULL)
    peer_close (oldest);
  return oldest;
}

static void
accept_one (struct control *control)
{
  CLEANUP_CLOSE int fd = accept4 (control->listener.fd, NULL, NULL,
                                  SOCK_CLOEXEC | SOCK_NONBLOCK);
  struct peer *peer;

  if (fd == -1) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      log_warn ("control: accept: %m; trying again");
      control->accept_failed = true;
    }
    return;
  }
  if (!is_allowed (fd))
    return;
  peer = find_slot (control);
  if (peer == NULL)
    log_warn ("control: %d commands under way; connection refused",
              (int) MAX_PEERS);
  else if (peer_open (peer, fd))
    steal_fd (&fd);
  else
    log_warn ("control: out of memory; connection refused");
}

/* ---- The loop ---- */

/* FDS[0] is the eventfd, [1] the listener, [2 + i] connection i.  Returns
 * how long poll may wait.
 */
static int
fill_pollfds (const struct control *control, struct pollfd *fds)
{
  int timeout_ms = control->accept_failed ? ACCEPT_PAUSE_MS : -1;

  fds[0] = (struct pollfd){ .fd = control->wake_fd, .events = POLLIN };
  fds[1] = (struct pollfd){
    .fd = control->accept_failed ? -1 : control->listener.fd,
    .events = POLLIN,
  };
  for (size_t i = 0; i < MAX_PEERS; i++) {
    const struct peer *peer = &control->peers[i];

    fds[2 + i] = (struct pollfd){ .fd = -1 };
    if (!peer->is_used)
      continue;
    fds[2 + i].fd = peer->fd;
    fds[2 + i].events = peer_events (peer);
    if (peer->out != NULL && timeout_ms == -1)
      timeout_ms = STUCK_CHECK_MS;
  }
  return timeout_ms;
}

/* A recording that one connection's request has started or ended is no
 * longer another's to abort.
 */
static void
share_news (struct control *control, struct peer *from)
{
  char name[BP_NAME_SIZE];

  peer_take_news (from, name);
  if (name[0] == '\0')
    return;
  for (size_t i = 0; i < MAX_PEERS; i++)
    if (&control->peers[i] != from)
      peer_disown (&control->peers[i], name);
}

static void
serve (struct control *control, const struct pollfd *fds)
{
  uint64_t count;

  if ((fds[0].revents & POLLIN) != 0 &&
      read (control->wake_fd, &count, sizeof count) == -1)
    log_error ("control: eventfd: %m");
  for (size_t i = 0; i < MAX_PEERS; i++) {
    struct peer *peer = &control->peers[i];

    if (!peer->is_used)
      continue;
    peer_advance (peer, fds[2 + i].revents);
    share_news (control, peer);
    if (peer->is_used && peer_is_stuck (peer)) {
      log_info ("control: a client does not take its reply; closed");
      peer_close (peer);
    }
  }
  control->accept_failed = false;
  if ((fds[1].revents & POLLIN) != 0)
    accept_one (control);
}

static void *
control_thread (void *opaque)
{
  struct control *control = opaque;
  struct pollfd fds[2 + MAX_PEERS];

  for (;;) {
    const int timeout_ms = fill_pollfds (control, fds);

    if (poll (fds, 2 + MAX_PEERS, timeout_ms) == -1) {
      if (errno == EINTR)
        continue;
      log_error ("control: poll: %m; the control socket is closed");
      break;
    }
    if (atomic_load (&control->is_ending))
      break;
    serve (control, fds);
  }
  return NULL;
}

/* ---- Start and end ---- */

/* The directory of the default path belongs to nobody else who would make
 * it.
 */
static int
make_directory (const char *path, struct bp_error *err)
{
  CLEANUP_FREE char *dir = strdup (path);
  char *slash;

  if (dir == NULL)
    return bp_error_set (err, -ENOMEM, "'%s': %m", path);
  slash = strrchr (dir, '/');
  if (slash == NULL || slash == dir)
    return 0;
  *slash = '\0';
  if (mkdir (dir, 0755) == -1 && errno != EEXIST)
    return bp_error_set (err, -errno, "'%s': mkdir: %m", dir);
  return 0;
}

int
control_new (struct control **ret_control, const struct options *options,
             struct bp_error *err)
{
  struct control *control = calloc (1, sizeof *control);
  int r = 0;

  if (control == NULL)
    return bp_error_set (err, -ENOMEM, "control: %m");
  control->listener.fd = -1;
  control->wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (control->wake_fd == -1)
    r = bp_error_set (err, -errno, "control: eventfd: %m");
  if (r == 0 && options->control_is_default)
    r = make_directory (options->control, err);
  if (r == 0)
    r = unix_socket_listen (&control->listener, options->control, 0600,
                            (gid_t) -1, err);
  if (r < 0) {
    control_free (control);
    return bp_error_wrap (err, r, "control socket");
  }
  *ret_control = control;
  return 0;
}

int
control_run (struct control *control, struct pager *pager,
             struct profiles *profiles, struct driver *driver,
             struct bp_error *err)
{
  int r;

  control->context = (struct control_context){
    .pager = pager,
    .profiles = profiles,
    .driver = driver,
    .started_ns = now_ns (),
  };
  for (size_t i = 0; i < MAX_PEERS; i++)
    control->peers[i] = (struct peer){
      .fd = -1,
      .context = &control->context,
      .wake_fd = control->wake_fd,
    };
  r = -pthread_create (&control->thread, NULL, control_thread, control);
  if (r < 0)
    return bp_error_set (err, r, "control: pthread_create: %m");
  return 0;
}

void
control_stop (struct control *control)
{
  const uint64_t one = 1;

  atomic_store (&control->is_ending, true);
  if (write (control->wake_fd, &one, sizeof one) == -1)
    log_error ("control: wake: %m");
  pthread_join (control->thread, NULL);
  for (size_t i = 0; i < MAX_PEERS; i++)
    if (control->peers[i].is_used)
      peer_destroy (&control->peers[i]);
}

void
control_free (struct control *control)
{
  if (control == NULL)
    return;
  unix_socket_close (&control->listener);
  if (control->wake_fd != -1)
    close (control->wake_fd);
  free (control);
}
