/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The front's fixture.  Sockets have a time-out, so a server that does not
 * answer fails the test instead of hanging it.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/range.h"
#include "daemon/front/front.h"
#include "daemon/options.h"
#include "harness/check.h"
#include "harness/front-client.h"

enum {
  TIMEOUT_S = 10
};

void
fixture_start (struct front_fixture *fixture)
{
  struct listen_option listen = {
    .mode = 0600,
    .gid = (gid_t) -1,
    .clients = fixture->clients,
  };
  const struct options options = {
    .listens = &listen,
    .nr_listens = 1,
    .clients.tls = fixture->tls_mode,
    .tls.psk = fixture->tls ? "read already" : NULL,
    .exit_when_idle = fixture->exit_when_idle,
  };
  struct bp_error err;

  if (fixture->limits.max_clients == 0)
    fixture->limits = default_front_limits;
  strcpy (fixture->dir, "/tmp/bp-front.XXXXXX");
  CHECK (mkdtemp (fixture->dir) != NULL);
  snprintf (fixture->path, sizeof fixture->path, "%s/sock", fixture->dir);
  listen.path = fixture->path;
  fixture->pager = fake_pager_new ();
  CHECK_EQ (front_new_limited (&fixture->front, &options, fixture->pager,
                               fixture->tls, &fixture->limits, &err),
            0);
  front_run (fixture->front);
}

void
fixture_stop (struct front_fixture *fixture)
{
  front_stop (fixture->front, 0, -1);
  front_free (fixture->front);
  fake_pager_free (fixture->pager);
  CHECK_EQ (rmdir (fixture->dir), 0); /* The socket has gone. */
}

int
client_connect (const struct front_fixture *fixture)
{
  return client_connect_to (fixture->path, TIMEOUT_S);
}

int
client_greeted (const struct front_fixture *fixture)
{
  const int fd = client_connect (fixture);

  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  return fd;
}

static int
attach (const struct front_fixture *fixture, const char *name,
        bool is_structured)
{
  const int fd = client_connect (fixture);

  client_negotiate (fd, name, is_structured);
  return fd;
}

int
client_attach (const struct front_fixture *fixture, const char *name)
{
  return attach (fixture, name, false);
}

int
client_attach_structured (const struct front_fixture *fixture,
                          const char *name)
{
  return attach (fixture, name, true);
}

void
client_recv_bytes (const struct front_fixture *fixture, int fd,
                   uint64_t offset, uint32_t len)
{
  uint8_t buf[65536];
  uint32_t n;

  for (; len > 0; offset += n, len -= n) {
    n = MIN (len, sizeof buf);
    client_recv (fd, buf, n);
    CHECK (memcmp (buf, fake_pager_bytes (fixture->pager, offset), n) == 0);
  }
}

void
client_expect_bytes (const struct front_fixture *fixture, int fd,
                     uint64_t offset, uint32_t len)
{
  CHECK_EQ (client_request (fd, 0, NBD_CMD_READ, offset, len), 0);
  client_recv_bytes (fixture, fd, offset, len);
}

void
client_expect_goes_on (const struct front_fixture *fixture, int fd)
{
  client_send_info (fd, NBD_OPT_GO, "mixed");
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
  client_expect_bytes (fixture, fd, 4095, 2);
  close (fd);
}
