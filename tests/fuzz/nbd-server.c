/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A shard without a thread.  The loop is run only when it has something to
 * do, so it never waits for long: there is input that it has not read, or
 * a read or an attachment that the fake pager's thread completes, or the
 * end of the connection.
 */
#include <config.h>

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/front/clients.h"
#include "daemon/front/conn.h"
#include "daemon/front/policy.h"
#include "daemon/front/shard.h"
#include "fuzz/fuzz.h"
#include "fuzz/nbd-server.h"
#include "harness/fake-pager.h"

static const struct client_policy policy = {
  .may_list = true,
  .may_open_blobs = true,
  .may_see_residency = true,
};
static struct shard shard;
static struct pager *pager;
static struct clients clients;

static void
start (void)
{
  if (pager)
    return;
  pager = fake_pager_new ();
  fake_pager_let_go (pager);
  clients_init (&clients, -1);
  MUST (shard_init (&shard, &default_front_limits, pager, NULL, &clients,
                    NULL) == 0);
}

const uint8_t *
nbd_server_image (void)
{
  start ();
  return fake_pager_bytes (pager, 0);
}

/* Send what fits; a server that has hung up takes all. */
static size_t
send_some (int fd, const uint8_t *data, size_t size)
{
  const ssize_t n = send (fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

  if (n >= 0)
    return (size_t) n;
  if (errno == EAGAIN)
    return 0;
  MUST (errno == EPIPE || errno == ECONNRESET);
  return size;
}

static void
receive_all (int fd, nbd_output_fn output, void *opaque)
{
  static uint8_t buf[256 << 10];
  ssize_t n;

  while ((n = recv (fd, buf, sizeof buf, MSG_DONTWAIT)) > 0)
    output (opaque, buf, (size_t) n);
  MUST (n == 0 || errno == EAGAIN || errno == ECONNRESET);
}

/* The connection has read all that there is, and waits for nobody. */
static bool
is_idle (const struct conn *conn)
{
  int unread = 0;

  MUST (ioctl (conn->fd, FIONREAD, &unread) == 0);
  return unread == 0 && conn->attach == NULL && !conn->is_blocked &&
         TAILQ_EMPTY (&conn->reading);
}

void
nbd_server_converse (const uint8_t *data, size_t size, nbd_output_fn output,
                     void *opaque)
{
  const struct conn *conn;
  int fds[2];

  start ();
  MUST (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  clients_enter (&clients);
  shard_adopt (&shard, fds[0], &policy);
  while ((conn = TAILQ_FIRST (&shard.conns)) != NULL) {
    if (size > 0) {
      const size_t n = send_some (fds[1], data, size);

      data += n;
      size -= n;
    }
    if (size == 0 && (conn->state == CONN_CLOSED || is_idle (conn)))
      shutdown (fds[1], SHUT_WR);
    shard_run_once (&shard);
    receive_all (fds[1], output, opaque);
  }
  receive_all (fds[1], output, opaque);
  close (fds[1]);
  MUST (clients.count == 0);
  MUST (fake_pager_wait_idle (pager));
}
