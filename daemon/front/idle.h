/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Ending when there has been no client for a while (--exit-when-idle).
 *
 * Belongs to the thread of the acceptor's loop, so that nobody is accepted
 * between the look that finds no client and the end of accepting.
 */
#ifndef BP_IDLE_H
#define BP_IDLE_H

#include <stdint.h>

#include "daemon/front/loop.h"

struct acceptor;
struct clients;

struct idle {
  struct acceptor *acceptor;
  const struct clients *clients;
  uint64_t limit_ns;         /* 0: never. */
  struct timer_queue *queue; /* Of this timer alone. */
  struct timer timer;
  int end_fd; /* Borrowed: an eventfd, written when it is time. */
};

/* ACCEPTOR's loop does not run yet. */
void idle_init (struct idle *idle, struct acceptor *acceptor,
                const struct clients *clients, uint64_t limit_ns,
                int end_fd);

/* In the loop's thread: */
void idle_start (struct idle *idle);
void idle_stop (struct idle *idle);

#endif /* BP_IDLE_H */
