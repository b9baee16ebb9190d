/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Accepting clients, and dealing them out to the shards. */
#ifndef BP_ACCEPTOR_H
#define BP_ACCEPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/front/listener.h"
#include "daemon/front/loop.h"

struct clients;
struct shard;

/* Belongs to the thread of its loop from acceptor_start on. */
struct acceptor {
  const struct front_limits *limits;
  struct clients *clients;
  struct loop *loop; /* That accepts: of the first shard. */
  struct shard *const *shards;
  unsigned nr_shards;
  unsigned next_shard;
  struct listeners listeners;    /* Owned. */
  struct accept_source *sources; /* One for each listener. */
  struct timer_queue *pause_queue;
  struct timer pause; /* Armed: no descriptors left, not watching. */
  bool is_watching;
  uint64_t quiet_until_ns; /* No line in the log before. */
};

/* Takes LISTENERS over, on success. */
int acceptor_init (struct acceptor *acceptor,
                   const struct front_limits *limits,
                   struct listeners *listeners, struct shard *const *shards,
                   unsigned nr_shards, struct clients *clients,
                   struct bp_error *err);

/* In the loop's thread: */
void acceptor_start (struct acceptor *acceptor);
void acceptor_stop (struct acceptor *acceptor);

/* Accept those who wait, unless it has paused or stopped. */
void acceptor_accept (struct acceptor *acceptor);

/* Serve the connected socket FD, which is taken over, unless there are too
 * many clients.  POLICY outlives it.
 */
void acceptor_welcome (struct acceptor *acceptor, int fd,
                       const struct client_policy *policy);

/* Closes the listeners. */
void acceptor_done (struct acceptor *acceptor);

#endif /* BP_ACCEPTOR_H */
