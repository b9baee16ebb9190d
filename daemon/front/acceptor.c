/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The acceptor lives in the first shard's loop and hands each client to
 * the next shard in turn.
 *
 * When no descriptor is left, accept would fail again at once for ever,
 * so listening pauses; clients wait in the backlog.
 */
#include <config.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/front/acceptor.h"
#include "daemon/front/clients.h"
#include "daemon/front/shard.h"

enum {
  ACCEPTS_PER_EVENT = 64,
  LOG_INTERVAL_S = 10,
};

struct accept_source {
  struct event_source source;
  struct acceptor *acceptor;
  const struct listener *listener;
};

/* A client on its way to its shard. */
struct handover {
  struct loop_work work;
  struct shard *shard;
  int fd;
  const struct client_policy *policy; /* The listener's. */
};

static void
take_client (struct loop_work *work)
{
  struct handover *handover = container_of (work, struct handover, work);

  shard_adopt (handover->shard, handover->fd, handover->policy);
  free (handover);
}

/* Give FD to a shard. */
static int
hand_over (struct acceptor *acceptor, int fd,
           const struct client_policy *policy)
{
  struct handover *handover = malloc (sizeof *handover);

  if (handover == NULL)
    return -ENOMEM;
  *handover = (struct handover){
    .work.run = take_client,
    .shard = acceptor->shards[acceptor->next_shard],
    .fd = fd,
    .policy = policy,
  };
  acceptor->next_shard = (acceptor->next_shard + 1) % acceptor->nr_shards;
  clients_enter (acceptor->clients);
  METRIC_ADD (client_connections, 1);
  loop_post (&handover->shard->loop, &handover->work);
  return 0;
}

/* Say that clients are kept out, now and then. */
static void
log_kept_out (struct acceptor *acceptor, const char *what)
{
  if (acceptor->loop->now_ns < acceptor->quiet_until_ns)
    return;
  acceptor->quiet_until_ns =
    acceptor->loop->now_ns + LOG_INTERVAL_S * NS_PER_SEC;
  log_warn ("clients are kept out: %s", what);
}

/* Only for speed: what fails is as it was.  TCP grows its buffers by
 * itself.
 */
static void
set_up_socket (int fd, const struct front_limits *limits)
{
  const int one = 1, size = (int) limits->send_buffer;
  socklen_t len = sizeof (int);
  int domain;

  if (getsockopt (fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == -1)
    return;
  if (domain != AF_UNIX)
    (void) setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  else if (size > 0)
    (void) setsockopt (fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

void
acceptor_welcome (struct acceptor *acceptor, int fd,
                  const struct client_policy *policy)
{
  const unsigned clients = atomic_load_explicit (
    &acceptor->clients->count, memory_order_relaxed);

  if (clients >= acceptor->limits->max_clients) {
    log_kept_out (acceptor, "too many of them");
    close (fd);
    return;
  }
  set_up_socket (fd, acceptor->limits);
  if (hand_over (acceptor, fd, policy) < 0) {
    log_kept_out (acceptor, "out of memory");
    close (fd);
  }
}

static void
set_watching (struct acceptor *acceptor, bool watching)
{
  size_t i;

  if (acceptor->is_watching == watching)
    return;
  acceptor->is_watching = watching;
  for (i = 0; i < acceptor->listeners.count; i++)
    loop_rewatch (acceptor->loop, acceptor->sources[i].listener->fd,
                  &acceptor->sources[i].source, watching ? EPOLLIN : 0);
}

static void
pause_is_over (struct timer *timer)
{
  set_watching (container_of (timer, struct acceptor, pause), true);
}

/* accept failed with ERROR: is it the end of this round? */
static bool
accept_failed (struct acceptor *acceptor, int error)
{
  switch (error) {
  case EAGAIN: return true;
  case EMFILE:
  case ENFILE:
  case ENOBUFS:
  case ENOMEM:
    log_kept_out (acceptor, error == EMFILE || error == ENFILE
                              ? "too many open files"
                              : "out of memory");
    set_watching (acceptor, false);
    timer_arm (acceptor->loop, acceptor->pause_queue, &acceptor->pause);
    return true;
  default: return false; /* That client has gone already. */
  }
}

static void
clients_wait (struct event_source *source, uint32_t events)
{
  struct accept_source *self =
    container_of (source, struct accept_source, source);
  struct acceptor *acceptor = self->acceptor;
  unsigned i;
  int fd;

  (void) events;
  for (i = 0; i < ACCEPTS_PER_EVENT && acceptor->is_watching; i++) {
    fd = accept4 (self->listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
      acceptor_welcome (acceptor, fd, &self->listener->policy);
    else if (accept_failed (acceptor, errno))
      break;
  }
}

int
acceptor_init (struct acceptor *acceptor, const struct front_limits *limits,
               struct listeners *listeners, struct shard *const *shards,
               unsigned nr_shards, struct clients *clients,
               struct bp_error *err)
{
  struct accept_source *sources;
  size_t i;
  int r;

  sources = calloc (listeners->count + 1, sizeof *sources);
  if (sources == NULL)
    return bp_error_set (err, -ENOMEM, "listen: out of memory");
  *acceptor = (struct acceptor){
    .limits = limits,
    .clients = clients,
    .loop = &shards[0]->loop,
    .shards = shards,
    .nr_shards = nr_shards,
    .sources = sources,
    .pause_queue =
      loop_add_queue (&shards[0]->loop, limits->accept_pause_ns),
    .pause.fire = pause_is_over,
  };
  for (i = 0; i < listeners->count; i++) {
    sources[i] = (struct accept_source){
      .source.ready = clients_wait,
      .acceptor = acceptor,
      .listener = &listeners->list[i],
    };
    r = loop_watch (acceptor->loop, listeners->list[i].fd,
                    &sources[i].source, 0);
    if (r < 0) {
      free (sources);
      return bp_error_set (err, r, "listen: epoll_ctl: %m");
    }
  }
  acceptor->listeners = *listeners;
  *listeners = (struct listeners){ 0 };
  return 0;
}

void
acceptor_start (struct acceptor *acceptor)
{
  set_watching (acceptor, true);
}

void
acceptor_stop (struct acceptor *acceptor)
{
  timer_disarm (&acceptor->pause);
  set_watching (acceptor, false);
}

void
acceptor_accept (struct acceptor *acceptor)
{
  size_t i;

  for (i = 0; i < acceptor->listeners.count; i++)
    clients_wait (&acceptor->sources[i].source, EPOLLIN);
}

void
acceptor_done (struct acceptor *acceptor)
{
  listeners_close (&acceptor->listeners);
  free (acceptor->sources);
  acceptor->sources = NULL;
}
