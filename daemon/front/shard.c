/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Shards: who is served by a loop, and how that ends.
 *
 * After each round of events the dirty connections are pumped, so that
 * all reads which came back in it are answered together, and the dead
 * ones are freed, since no event of that round can name them any more.
 */
#include <config.h>

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/front/clients.h"
#include "daemon/front/conn.h"
#include "daemon/front/shard.h"

/* Requests kept for reuse: enough for a few deep queues. */
enum {
  MAX_SPARE_REQUESTS = 2048
};

static void
close_all (struct shard *shard)
{
  struct conn *conn, *next;

  for (conn = TAILQ_FIRST (&shard->conns); conn; conn = next) {
    next = TAILQ_NEXT (conn, entry);
    conn_close (conn, "the time to finish is over");
  }
}

int
shard_init (struct shard *shard, const struct front_limits *limits,
            struct pager *pager, struct tls_server *tls,
            struct clients *clients, struct bp_error *err)
{
  int r;

  r = loop_init (&shard->loop, err);
  if (r < 0)
    return r;
  shard->limits = limits;
  shard->pager = pager;
  shard->tls = tls;
  shard->tls_pool.rekey_bytes = limits->tls_rekey_bytes;
  shard->clients = clients;
  TAILQ_INIT (&shard->conns);
  TAILQ_INIT (&shard->dirty);
  TAILQ_INIT (&shard->dead);
  TAILQ_INIT (&shard->spare_requests);
  shard->handshake_queue =
    loop_add_queue (&shard->loop, limits->handshake_ns);
  shard->stall_queue = loop_add_queue (&shard->loop, limits->stall_ns);
  return 0;
}

void
shard_done (struct shard *shard)
{
  struct request *request;

  assert (TAILQ_EMPTY (&shard->conns));
  assert (TAILQ_EMPTY (&shard->dead));
  while ((request = TAILQ_FIRST (&shard->spare_requests)) != NULL) {
    TAILQ_REMOVE (&shard->spare_requests, request, entry);
    free (request);
  }
  tls_pool_done (&shard->tls_pool);
  loop_done (&shard->loop);
}

static void
pump_dirty (struct shard *shard)
{
  struct conn *conn;

  while ((conn = TAILQ_FIRST (&shard->dirty)) != NULL) {
    TAILQ_REMOVE (&shard->dirty, conn, dirty_entry);
    conn->is_dirty = false;
    conn_pump (conn);
  }
}

static void
free_dead (struct shard *shard)
{
  struct conn *conn;

  while ((conn = TAILQ_FIRST (&shard->dead)) != NULL) {
    TAILQ_REMOVE (&shard->dead, conn, entry);
    free (conn);
  }
}

bool
shard_run_once (struct shard *shard)
{
  loop_run_once (&shard->loop);
  if (atomic_load_explicit (&shard->giving_up, memory_order_relaxed))
    close_all (shard);
  pump_dirty (shard);
  free_dead (shard);
  return !shard->stopping || !TAILQ_EMPTY (&shard->conns) ||
         shard->nr_late > 0;
}

void
shard_adopt (struct shard *shard, int fd,
             const struct client_policy *policy)
{
  const int r = conn_new (shard, fd, policy);

  if (r == 0)
    return;
  clients_leave (shard->clients);
  log_debug ("client dropped: %s", strerror (-r));
}

void
shard_stop (struct shard *shard)
{
  struct conn *conn, *next;

  shard->stopping = true;
  for (conn = TAILQ_FIRST (&shard->conns); conn; conn = next) {
    next = TAILQ_NEXT (conn, entry);
    conn_drain (conn);
  }
}

void
shard_give_up (struct shard *shard)
{
  atomic_store_explicit (&shard->giving_up, true, memory_order_relaxed);
  loop_wake (&shard->loop);
}

struct request *
shard_take_request (struct shard *shard, struct conn *conn)
{
  struct request *request = TAILQ_FIRST (&shard->spare_requests);

  if (request) {
    TAILQ_REMOVE (&shard->spare_requests, request, entry);
    shard->nr_spare--;
  }
  else {
    request = malloc (sizeof *request);
    if (request == NULL)
      return NULL;
  }
  *request = (struct request){ .conn = conn };
  return request;
}

void
shard_give_request (struct shard *shard, struct request *request)
{
  if (shard->nr_spare >= MAX_SPARE_REQUESTS) {
    free (request);
    return;
  }
  /* The last one used is the one in the CPU's cache. */
  TAILQ_INSERT_HEAD (&shard->spare_requests, request, entry);
  shard->nr_spare++;
}
