/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A server that ends when nobody is connected: not before its time, not
 * while somebody is there, and not in the face of somebody who waits to be
 * accepted.
 */
#include <config.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "daemon/front/acceptor.h"
#include "daemon/front/clients.h"
#include "daemon/front/front.h"
#include "daemon/front/idle.h"
#include "daemon/front/shard.h"
#include "daemon/options.h"
#include "harness/check.h"
#include "harness/front-client.h"

static bool
is_readable (int fd, int timeout_ms)
{
  struct pollfd pollfd = { .fd = fd, .events = POLLIN };

  return poll (&pollfd, 1, timeout_ms) == 1;
}

static void
it_ends_when_nobody_has_been_there_for_the_time (void)
{
  struct front_fixture fixture = { .exit_when_idle = 1 };
  uint64_t start_ns = now_ns ();
  int fd, end_fd;

  fixture_start (&fixture);
  end_fd = front_end_fd (fixture.front);
  fd = client_connect (&fixture);
  CHECK (!is_readable (end_fd, 2500)); /* Somebody is connected. */
  start_ns = now_ns ();
  close (fd);
  CHECK (is_readable (end_fd, 10000));
  CHECK (now_ns () - start_ns >= NS_PER_SEC);
  fixture_stop (&fixture);
}

static void
it_ends_when_nobody_has_ever_come (void)
{
  struct front_fixture fixture = { .exit_when_idle = 1 };

  fixture_start (&fixture);
  CHECK (is_readable (front_end_fd (fixture.front), 10000));
  fixture_stop (&fixture);
}

/* An acceptor, the shard whose loop it lives in, and no thread. */
struct scene {
  struct front_fixture fixture;
  struct listen_option listen;
  struct clients clients;
  struct shard *shard;
  struct acceptor acceptor;
  struct idle idle;
};

static void
set_scene (struct scene *scene)
{
  struct front_fixture *fixture = &scene->fixture;
  const struct options options = { .listens = &scene->listen,
                                   .nr_listens = 1 };
  struct listeners listeners;
  struct bp_error err;

  *scene = (struct scene){
    .fixture.dir = "/tmp/bp-front.XXXXXX",
    .listen = { .mode = 0600, .gid = (gid_t) -1 },
  };
  CHECK (mkdtemp (fixture->dir) != NULL);
  snprintf (fixture->path, sizeof fixture->path, "%s/sock", fixture->dir);
  scene->listen.path = fixture->path;
  clients_init (&scene->clients, -1);
  scene->shard = calloc (1, sizeof *scene->shard);
  CHECK_EQ (shard_init (scene->shard, &default_front_limits, NULL, NULL,
                        &scene->clients, &err),
            0);
  CHECK_EQ (listeners_open (&listeners, &options, &err), 0);
  CHECK_EQ (acceptor_init (&scene->acceptor, &default_front_limits,
                           &listeners, &scene->shard, 1, &scene->clients,
                           &err),
            0);
  acceptor_start (&scene->acceptor);
  idle_init (&scene->idle, &scene->acceptor, &scene->clients, 1,
             eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK));
}

static void
strike_scene (struct scene *scene)
{
  idle_stop (&scene->idle);
  acceptor_done (&scene->acceptor);
  shard_stop (scene->shard);
  shard_give_up (scene->shard);
  while (shard_run_once (scene->shard)) {
  }
  shard_done (scene->shard);
  free (scene->shard);
  close (scene->idle.end_fd);
  CHECK_EQ (rmdir (scene->fixture.dir), 0);
}

static void
who_waits_when_time_is_up_has_come_in_time (void)
{
  struct scene scene;
  int fd;

  set_scene (&scene);
  fd = client_connect (&scene.fixture);
  scene.idle.timer.fire (&scene.idle.timer);
  CHECK (!is_readable (scene.idle.end_fd, 0));
  CHECK_EQ (scene.clients.count, 1);
  CHECK (scene.acceptor.is_watching);
  close (fd);
  strike_scene (&scene);
}

static void
who_comes_later_is_left_in_the_backlog (void)
{
  struct scene scene;
  int fd;

  set_scene (&scene);
  scene.idle.timer.fire (&scene.idle.timer);
  CHECK (is_readable (scene.idle.end_fd, 0));
  fd = client_connect (&scene.fixture);
  acceptor_accept (&scene.acceptor);
  CHECK_EQ (scene.clients.count, 0);
  close (fd);
  strike_scene (&scene);
}

int
main (void)
{
  RUN (it_ends_when_nobody_has_been_there_for_the_time);
  RUN (it_ends_when_nobody_has_ever_come);
  RUN (who_waits_when_time_is_up_has_come_in_time);
  RUN (who_comes_later_is_left_in_the_backlog);
  return EXIT_SUCCESS;
}
