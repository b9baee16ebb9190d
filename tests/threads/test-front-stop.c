/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The end of the server: what is under way is answered, the rest is closed
 * without an answer, and it does not take longer than it was given.
 */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "daemon/front/front.h"
#include "daemon/options.h"
#include "daemon/systemd.h"
#include "harness/check.h"
#include "harness/front-client.h"

static void
wait_for_waiting (const struct front_fixture *fixture, unsigned count)
{
  const uint64_t end = now_ns () + 10 * NS_PER_SEC;

  while (fake_pager_counts (fixture->pager).waiting != count) {
    CHECK (now_ns () < end);
    poll (NULL, 0, 1);
  }
}

static void *
let_go_soon (void *opaque)
{
  poll (NULL, 0, 100);
  fake_pager_let_go (opaque);
  return NULL;
}

static void
reads_under_way_are_answered_within_the_grace (void)
{
  struct front_fixture fixture = { 0 };
  pthread_t thread;
  uint64_t cookie;
  int fd;

  fixture_start (&fixture);
  fd = client_attach (&fixture, "held");
  client_send_request (fd, 0, NBD_CMD_READ, 9, 1000, 5000);
  wait_for_waiting (&fixture, 1);
  CHECK_EQ (pthread_create (&thread, NULL, let_go_soon, fixture.pager), 0);
  front_stop (fixture.front, 10, -1);
  pthread_join (thread, NULL);
  CHECK_EQ (client_recv_reply (fd, &cookie), 0);
  CHECK_EQ (cookie, 9);
  client_recv_bytes (&fixture, fd, 1000, 5000);
  client_expect_closed (fd);
  fixture_stop (&fixture);
}

static void
reads_that_do_not_come_are_closed_without_an_answer (void)
{
  struct front_fixture fixture = { 0 };
  uint64_t started_ns;
  int fd;

  fixture_start (&fixture);
  fd = client_attach (&fixture, "held");
  client_send_request (fd, 0, NBD_CMD_READ, 9, 1000, 5000);
  wait_for_waiting (&fixture, 1);
  started_ns = now_ns ();
  front_stop (fixture.front, 1, -1);
  CHECK (now_ns () - started_ns >= NS_PER_SEC);
  CHECK (now_ns () - started_ns < 5 * NS_PER_SEC);
  client_expect_closed (fd);
  fixture_stop (&fixture);
}

static void
whoever_is_in_a_hurry_does_not_wait (void)
{
  struct front_fixture fixture = { 0 };
  int fd, hurry_fd;

  fixture_start (&fixture);
  fd = client_attach (&fixture, "held");
  client_send_request (fd, 0, NBD_CMD_READ, 9, 1000, 5000);
  wait_for_waiting (&fixture, 1);
  hurry_fd = eventfd (1, EFD_CLOEXEC);
  CHECK (hurry_fd >= 0);
  front_stop (fixture.front, 86400, hurry_fd);
  close (hurry_fd);
  client_expect_closed (fd);
  fixture_stop (&fixture);
}

/* Idle, in the middle of an option, and waiting for an export. */
static void
clients_that_wait_for_nothing_do_not_delay_the_end (void)
{
  struct front_fixture fixture = { 0 };
  uint64_t started_ns;
  int idle, half, opening;

  fixture_start (&fixture);
  idle = client_attach (&fixture, "fast");
  half = client_connect (&fixture);
  client_greet (half, NBD_FLAG_FIXED_NEWSTYLE);
  client_send (half, "IHAVEOPT", 8);
  opening = client_connect (&fixture);
  client_greet (opening, NBD_FLAG_FIXED_NEWSTYLE);
  client_send_info (opening, NBD_OPT_GO, "late");
  wait_for_waiting (&fixture, 1);
  started_ns = now_ns ();
  front_stop (fixture.front, 30, -1);
  CHECK (now_ns () - started_ns < 10 * NS_PER_SEC);
  client_expect_closed (idle);
  client_expect_closed (half);
  client_expect_closed (opening);
  fixture_stop (&fixture);
}

static void
a_server_that_never_ran_stops (void)
{
  struct front_fixture fixture = { 0 };
  const struct options options = { 0 };
  struct bp_error err;

  fixture.pager = fake_pager_new ();
  CHECK_EQ (front_new (&fixture.front, &options, fixture.pager, NULL, &err), 0);
  front_stop (fixture.front, 1, -1);
  front_free (fixture.front);
  fake_pager_free (fixture.pager);
}

/* ---- Listeners ---- */

/* A free TCP port; it may be taken by somebody else meanwhile, but is not
 * likely to be.
 */
static void
find_port (char *ret_port, size_t len)
{
  struct sockaddr_in addr = {
    .sin_family = AF_INET,
    .sin_addr.s_addr = htonl (INADDR_LOOPBACK),
  };
  socklen_t addr_len = sizeof addr;
  const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  CHECK_EQ (bind (fd, (struct sockaddr *) &addr, sizeof addr), 0);
  CHECK_EQ (getsockname (fd, (struct sockaddr *) &addr, &addr_len), 0);
  snprintf (ret_port, len, "%u", ntohs (addr.sin_port));
  close (fd);
}

static int
connect_tcp (const char *port)
{
  const struct sockaddr_in addr = {
    .sin_family = AF_INET,
    .sin_port = htons ((uint16_t) atoi (port)),
    .sin_addr.s_addr = htonl (INADDR_LOOPBACK),
  };
  const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  CHECK_EQ (connect (fd, (const struct sockaddr *) &addr, sizeof addr), 0);
  return fd;
}

static void
tcp_clients_are_served_by_name_and_by_wildcard (void)
{
  static char *const hosts[] = { "localhost", "127.0.0.1", "" };
  struct front_fixture fixture = { 0 };
  char port[8];
  struct listen_option listen = { .port = port };
  const struct options options = {
    .listens = &listen,
    .nr_listens = 1,
    .is_insecure = true,
  };
  struct bp_error err;
  size_t i;
  int fd;

  fixture.pager = fake_pager_new ();
  for (i = 0; i < 3; i++) {
    find_port (port, sizeof port);
    listen.host = hosts[i];
    CHECK_EQ (front_new (&fixture.front, &options, fixture.pager, NULL,
                         &err),
              0);
    front_run (fixture.front);
    fd = connect_tcp (port);
    client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE);
    client_send_info (fd, NBD_OPT_GO, "mixed");
    CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
    client_expect_bytes (&fixture, fd, 0, 8 << 20);
    close (fd);
    front_stop (fixture.front, 0, -1);
    front_free (fixture.front);
  }
  fake_pager_free (fixture.pager);
}

/* Descriptor 3 is ours: RUN this before anything else is open. */
static void
a_socket_from_systemd_is_served_and_left_in_place (void)
{
  struct front_fixture fixture = { .dir = "/tmp/bp-front.XXXXXX" };
  const struct options options = { .nr_systemd_fds = 1 };
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  struct bp_error err;
  int fd, client;

  CHECK (mkdtemp (fixture.dir) != NULL);
  snprintf (fixture.path, sizeof fixture.path, "%s/sock", fixture.dir);
  strcpy (addr.sun_path, fixture.path);
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK_EQ (fd, SYSTEMD_FIRST_FD);
  CHECK_EQ (bind (fd, (struct sockaddr *) &addr, sizeof addr), 0);
  fixture.pager = fake_pager_new ();
  CHECK_EQ (front_new (&fixture.front, &options, fixture.pager, NULL, &err),
            -EINVAL); /* It does not listen. */
  CHECK_EQ (listen (fd, 5), 0);
  CHECK_EQ (front_new (&fixture.front, &options, fixture.pager, NULL, &err), 0);
  front_run (fixture.front);
  client = client_attach (&fixture, "fast");
  client_expect_bytes (&fixture, client, 0, 4096);
  close (client);
  front_stop (fixture.front, 0, -1);
  front_free (fixture.front);
  fake_pager_free (fixture.pager);
  CHECK_EQ (unlink (fixture.path), 0); /* It is systemd's. */
  CHECK_EQ (rmdir (fixture.dir), 0);
}

static void
a_listener_that_cannot_be_had_is_one_error (void)
{
  struct front_fixture fixture = { 0 };
  struct listen_option listens[2] = {
    { .host = "127.0.0.1", .port = "0" },
    { .mode = 0600, .gid = (gid_t) -1, .path = "/nowhere/at/all" },
  };
  const struct options options = { .listens = listens, .nr_listens = 2 };
  struct bp_error err = { 0 };
  struct front *front = NULL;

  fixture.pager = fake_pager_new ();
  CHECK_EQ (front_new (&front, &options, fixture.pager, NULL, &err), -ENOENT);
  CHECK (strstr (err.msg, "/nowhere/at/all") != NULL);
  CHECK (front == NULL);
  listens[1] = (struct listen_option){ .host = "host.invalid", .port = "1" };
  CHECK (front_new (&front, &options, fixture.pager, NULL, &err) < 0);
  CHECK (strstr (err.msg, "host.invalid") != NULL);
  fake_pager_free (fixture.pager);
}

int
main (void)
{
  RUN (a_socket_from_systemd_is_served_and_left_in_place);
  RUN (reads_under_way_are_answered_within_the_grace);
  RUN (reads_that_do_not_come_are_closed_without_an_answer);
  RUN (whoever_is_in_a_hurry_does_not_wait);
  RUN (clients_that_wait_for_nothing_do_not_delay_the_end);
  RUN (a_server_that_never_ran_stops);
  RUN (tcp_clients_are_served_by_name_and_by_wildcard);
  RUN (a_listener_that_cannot_be_had_is_one_error);
  return EXIT_SUCCESS;
}
