/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The timer looks when the time could be over at the earliest: the limit
 * from now while there is a client, what is left of it while there is none.
 *
 * Who waits to be accepted when the time is over has come in time.  Who
 * comes after that look waits in the backlog: with a socket of systemd's,
 * for the next daemon.
 */
#include <config.h>

#include <sys/eventfd.h>

#include "daemon/front/acceptor.h"
#include "daemon/front/clients.h"
#include "daemon/front/idle.h"

static void
look_again (struct idle *idle, uint64_t delay_ns)
{
  idle->queue->delay_ns = delay_ns;
  timer_arm (idle->acceptor->loop, idle->queue, &idle->timer);
}

static void
look (struct timer *timer)
{
  struct idle *idle = container_of (timer, struct idle, timer);
  const uint64_t none_ns = clients_none_ns (idle->clients);

  if (none_ns < idle->limit_ns) {
    look_again (idle, idle->limit_ns - none_ns);
    return;
  }
  acceptor_accept (idle->acceptor);
  if (clients_none_ns (idle->clients) == 0)
    look_again (idle, idle->limit_ns);
  else {
    acceptor_stop (idle->acceptor);
    eventfd_write (idle->end_fd, 1);
  }
}

void
idle_init (struct idle *idle, struct acceptor *acceptor,
           const struct clients *clients, uint64_t limit_ns, int end_fd)
{
  *idle = (struct idle){
    .acceptor = acceptor,
    .clients = clients,
    .limit_ns = limit_ns,
    .queue = loop_add_queue (acceptor->loop, limit_ns),
    .timer.fire = look,
    .end_fd = end_fd,
  };
}

void
idle_start (struct idle *idle)
{
  if (idle->limit_ns > 0)
    look_again (idle, idle->limit_ns);
}

void
idle_stop (struct idle *idle)
{
  timer_disarm (&idle->timer);
}
