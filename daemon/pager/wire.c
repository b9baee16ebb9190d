/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Connections to the driver, over libnbd's asynchronous calls.
 *
 * Negotiation runs in option mode, because a URI carries an export name
 * of its own that has to be replaced, and so that a refused export can be
 * told from a lost connection.  Structured replies are off: simple ones
 * cost the client less.  Buffers are not cleared before a read, since
 * nothing looks at them before they are verified.  libnbd is told to send
 * what it is given: the size and the alignment that the driver names in
 * the negotiation are its word, and no reason to refuse a command here.
 */
#include <config.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libnbd.h>

#include "daemon/pager/wire.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/session-proto.h"

enum {
  MAX_RECEIVED = 16
}; /* Replies, before anything else is done. */

void
event_fd_signal (int event_fd)
{
  const uint64_t one = 1;
  ssize_t r;

  do
    r = write (event_fd, &one, sizeof one);
  while (r == -1 && errno == EINTR);
  /* EAGAIN: the counter is full, so it is readable already. */
  assert (r == sizeof one || errno == EAGAIN);
}

void
event_fd_drain (int event_fd)
{
  uint64_t count;
  ssize_t r;

  do
    r = read (event_fd, &count, sizeof count);
  while (r == -1 && errno == EINTR);
  assert (r == sizeof count || errno == EAGAIN);
}

/* ---- Commands ---- */

static void
complete (struct command *command, int error)
{
  struct wire *wire = command->wire;

  if (command->is_completed)
    return;
  command->is_completed = true;
  command->error = error;
  TAILQ_REMOVE (&wire->in_flight, command, link);
  TAILQ_INSERT_TAIL (&wire->completed, command, link);
}

/* libnbd's completion callback: under its lock, so nothing more than this.
 * Returning 1 retires the command.
 */
static int
command_completed (void *opaque, int *error)
{
  complete (opaque, -*error);
  return 1;
}

static void
start (struct wire *wire, struct command *command)
{
  command->wire = wire;
  command->error = 0;
  command->is_completed = false;
  TAILQ_INSERT_TAIL (&wire->in_flight, command, link);
}

/* libnbd did not take the command.  Even if it has no reason to end the
 * connection, there is one: it would refuse the next command, too, and
 * whoever sends it again at once would never stop.
 */
static void
give_up (struct wire *wire, struct command *command)
{
  wire->is_broken = true;
  complete (command, -ENOTCONN);
}

void
wire_read (struct wire *wire, struct command *command, void *buf, size_t len,
           uint64_t offset)
{
  const nbd_completion_callback callback = {
    .callback = command_completed,
    .user_data = command,
  };

  start (wire, command);
  if (nbd_aio_pread (wire->nbd, buf, len, offset, callback, 0) == -1)
    give_up (wire, command);
}

uint64_t
wire_request (struct wire *wire, struct command *command,
              const uint8_t *bytes, size_t len)
{
  const nbd_completion_callback callback = {
    .callback = command_completed,
    .user_data = command,
  };
  const uint64_t number = wire->next_request++;

  start (wire, command);
  if (nbd_aio_pwrite (wire->nbd, bytes, len, bp_control_offset (number),
                      callback, 0) == -1)
    give_up (wire, command);
  return number;
}

size_t
wire_dispatch (struct wire *wire)
{
  struct command *command;
  size_t count = 0;

  while ((command = TAILQ_FIRST (&wire->completed)) != NULL) {
    TAILQ_REMOVE (&wire->completed, command, link);
    command->answered (command, command->error);
    count++;
  }
  return count;
}

/* ---- Waiting ---- */

static bool
has_ended (struct wire *wire)
{
  return wire->is_broken || nbd_aio_is_dead (wire->nbd) == 1 ||
         nbd_aio_is_closed (wire->nbd) == 1;
}

/* A reply a call: go on while there is more, so that a busy connection
 * does not go around for each.  libnbd must not be told to read when there
 * is nothing: it would wait for a reply, and issue no command until it has
 * come.
 */
static void
receive (struct wire *wire, int fd)
{
  struct pollfd pollfd = { .fd = fd, .events = POLLIN };

  for (int i = 0; i < MAX_RECEIVED; i++)
    if (nbd_aio_notify_read (wire->nbd) == -1 ||
        poll (&pollfd, 1, 0) != 1 || !(pollfd.revents & POLLIN))
      return;
}

int
wire_poll (struct wire *wire, int event_fd, int timeout_ms)
{
  const unsigned direction = nbd_aio_get_direction (wire->nbd);
  struct pollfd fds[2] = {
    { .fd = nbd_aio_get_fd (wire->nbd) },
    { .fd = event_fd, .events = POLLIN },
  };

  if (has_ended (wire))
    return -ENOTCONN;
  if (direction & LIBNBD_AIO_DIRECTION_READ)
    fds[0].events |= POLLIN;
  if (direction & LIBNBD_AIO_DIRECTION_WRITE)
    fds[0].events |= POLLOUT;
  if (poll (fds, 2, timeout_ms) == -1)
    return errno == EINTR ? 0 : -errno;

  if (fds[1].revents)
    event_fd_drain (event_fd);
  /* An error or a hang-up shows when the socket is read or written. */
  if (fds[0].revents & (POLLERR | POLLHUP))
    fds[0].revents |= fds[0].events;
  if (fds[0].revents & POLLIN)
    receive (wire, fds[0].fd);
  else if (fds[0].revents & POLLOUT)
    nbd_aio_notify_write (wire->nbd);
  return has_ended (wire) ? -ENOTCONN : 0;
}

/* ---- Life ---- */

/* What negotiation has come to. */
struct negotiation {
  bool is_over;
  int error; /* Negative errno of a refusal. */
};

static int
export_answered (void *opaque, int *error)
{
  struct negotiation *negotiation = opaque;

  negotiation->is_over = true;
  negotiation->error = -*error;
  return 1;
}

/* What libnbd says of the failure.  Its codes are many, and -ENOENT among
 * them means a missing socket, not a refused export: one stands for all.
 */
static int
libnbd_error (struct bp_error *err)
{
  const char *text = nbd_get_error ();

  return bp_error_set (err, -ENOTCONN, "%s", text ? text : "connection lost");
}

static int
begin_connect (struct wire *wire, const struct wire_target *target,
               struct bp_error *err)
{
  int r;

  wire->nbd = nbd_create ();
  if (wire->nbd == NULL)
    return bp_error_set (err, -ENOMEM, "libnbd: out of memory");
  if (nbd_set_opt_mode (wire->nbd, true) == -1 ||
      nbd_set_request_structured_replies (wire->nbd, false) == -1 ||
      nbd_set_pread_initialize (wire->nbd, false) == -1 ||
      nbd_set_strict_mode (wire->nbd, 0) == -1 ||
      nbd_set_uri_allow_local_file (wire->nbd, true) == -1)
    return libnbd_error (err);
  if (target->socket)
    r = nbd_aio_connect_unix (wire->nbd, target->socket);
  else
    r = nbd_aio_connect_uri (wire->nbd, target->uri);
  return r == -1 ? libnbd_error (err) : 0;
}

/* One step of waiting for the peer. */
static int
wait_for_peer (struct wire *wire, const struct wire_wait *wait,
               struct bp_error *err)
{
  const uint64_t now = now_ns ();
  uint64_t left_ms;
  int r;

  if (wait->is_cancelled (wait->opaque))
    return bp_error_set (err, -ECANCELED, "cancelled");
  if (now >= wait->deadline_ns)
    return bp_error_set (err, -ETIMEDOUT, "no answer in time");
  left_ms = (wait->deadline_ns - now) / NS_PER_MS + 1;
  r = wire_poll (wire, wait->event_fd,
                 left_ms < 1000 ? (int) left_ms : 1000);
  return r < 0 ? libnbd_error (err) : 0;
}

/* To the state where options can be sent. */
static int
await_server (struct wire *wire, const struct wire_wait *wait,
              struct bp_error *err)
{
  int r;

  while (nbd_aio_is_negotiating (wire->nbd) != 1) {
    if (nbd_aio_is_ready (wire->nbd) == 1)
      return bp_error_set (err, -EPROTO, "an NBD server of the old style");
    r = wait_for_peer (wire, wait, err);
    if (r < 0)
      return r;
  }
  return 0;
}

/* The server does not let us have the export.  libnbd has one code for
 * "TLS is required" and for what no server without it says of GO.
 */
static int
refused (struct wire *wire, const char *export,
         const struct negotiation *negotiation, struct bp_error *err)
{
  if (negotiation->error == -ENOTSUP &&
      nbd_get_tls_negotiated (wire->nbd) == 0)
    return bp_error_set (err, -ENOENT,
                         "the driver requires TLS: use nbds://");
  return bp_error_set (err, -ENOENT, "the driver refuses export '%s'",
                       strncmp (export, "session/", 8) ? export : "session/…");
}

static int
open_export (struct wire *wire, const char *export,
             const struct wire_wait *wait, struct bp_error *err)
{
  struct negotiation negotiation = { 0 };
  const nbd_completion_callback callback = {
    .callback = export_answered,
    .user_data = &negotiation,
  };
  int r;

  if (nbd_set_export_name (wire->nbd, export) == -1 ||
      nbd_aio_opt_go (wire->nbd, callback) == -1)
    return libnbd_error (err);
  while (!negotiation.is_over) {
    r = wait_for_peer (wire, wait, err);
    /* The callback has been called if the connection ended. */
    if (r < 0) {
      nbd_close (steal_ptr (&wire->nbd));
      return r;
    }
  }
  if (negotiation.error == 0 && nbd_aio_is_ready (wire->nbd) == 1)
    return 0;
  if (has_ended (wire))
    return libnbd_error (err);
  return refused (wire, export, &negotiation, err);
}

/* A peer that vanishes without a word is noticed by the kernel.  These do
 * not apply to Unix sockets, where it cannot happen.
 */
static void
watch_peer (struct wire *wire, unsigned timeout_s)
{
  const int fd = nbd_aio_get_fd (wire->nbd);
  const int on = 1, idle = 5, interval = 5;
  const unsigned timeout_ms = timeout_s * 1000;

  if (setsockopt (fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) == -1)
    return;
  setsockopt (fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt (fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
              sizeof timeout_ms);
}

int
wire_open (struct wire **ret_wire, const struct wire_target *target,
           const char *export, const struct wire_wait *wait,
           struct bp_error *err)
{
  struct wire *wire = calloc (1, sizeof *wire);
  int r;

  if (wire == NULL)
    return bp_error_set (err, -ENOMEM, "out of memory");
  TAILQ_INIT (&wire->in_flight);
  TAILQ_INIT (&wire->completed);
  r = begin_connect (wire, target, err);
  if (r == 0)
    r = await_server (wire, wait, err);
  if (r == 0)
    r = open_export (wire, export, wait, err);
  if (r < 0) {
    wire_close (wire);
    return r;
  }
  watch_peer (wire, target->timeout_s);
  *ret_wire = wire;
  return 0;
}

void
wire_close (struct wire *wire)
{
  struct command *command;

  if (wire == NULL)
    return;
  if (wire->nbd && nbd_aio_is_ready (wire->nbd) == 1)
    nbd_aio_disconnect (wire->nbd, 0); /* A courtesy; it may fail. */
  nbd_close (wire->nbd);
  wire->nbd = NULL;
  while ((command = TAILQ_FIRST (&wire->in_flight)) != NULL)
    complete (command, -ENOTCONN);
  wire_dispatch (wire);
  free (wire);
}
