/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A shard: one event loop and the connections that belong to it.
 *
 * Everything in it belongs to the loop's thread, except what says
 * otherwise.
 */
#ifndef BP_SHARD_H
#define BP_SHARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/front/limits.h"
#include "daemon/front/loop.h"
#include "daemon/front/reply-layout.h"
#include "daemon/front/request.h"
#include "daemon/front/tls.h"

struct client_policy;
struct clients;
struct conn;
struct pager;

TAILQ_HEAD (conn_list, conn);

struct shard {
  struct loop loop;
  const struct front_limits *limits;
  struct pager *pager;
  struct tls_server *tls;  /* Borrowed; NULL: there is none. */
  struct clients *clients; /* Of all shards. */

  struct conn_list conns;
  struct conn_list dirty; /* Have replies to send, or room again. */
  struct conn_list dead;  /* Freed when the current events are done. */
  struct request_list spare_requests;
  unsigned nr_spare;

  uint64_t quiet_until_ns;     /* No line about an export before. */
  uint64_t tls_quiet_until_ns; /* None about a TLS handshake. */
  struct timer_queue *handshake_queue;
  struct timer_queue *stall_queue;
  bool stopping;          /* Answers what is under way, then closes. */
  _Atomic bool giving_up; /* While stopping: closes all.  Any thread sets
                             it (relaxed) before it wakes the loop. */
  unsigned nr_late;       /* Attachments nobody waits for, being posted. */

  struct tls_pool tls_pool;
  struct gather_space gather; /* Of the replies being sent. */
  uint8_t scratch[64 << 10];  /* Payloads that are read over. */
};

int shard_init (struct shard *shard, const struct front_limits *limits,
                struct pager *pager, struct tls_server *tls,
                struct clients *clients, struct bp_error *err);

/* No connection is left (shard_run_once returned false). */
void shard_done (struct shard *shard);

/* Wait for events and handle them.  False when the shard is stopping and
 * its last connection has gone.
 */
bool shard_run_once (struct shard *shard);

/* Serve the connected socket FD, which is taken over whatever happens.
 * POLICY outlives the connection.
 */
void shard_adopt (struct shard *shard, int fd,
                  const struct client_policy *policy);

/* Close each connection as soon as what it asked for is answered. */
void shard_stop (struct shard *shard);

/* SHARD has been told to stop: close all of them now.  Threads: any, also
 * when the shard's has ended.
 */
void shard_give_up (struct shard *shard);

/* A request with its connection, zeroed but for that; NULL: no memory. */
struct request *shard_take_request (struct shard *shard, struct conn *conn);
void shard_give_request (struct shard *shard, struct request *request);

#endif /* BP_SHARD_H */
