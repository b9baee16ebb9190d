/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* TLS of the clients: who we are and whom we believe.
 *
 *   files ─▶ tls_server ─▶ SSL_CTX ─▶ one SSL for each connection
 *              reload ───▶ another    (which keeps the context it began
 *                                      with)
 */
#ifndef BP_TLS_H
#define BP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "daemon/front/tls-config.h"

struct tls_server;

/* Read the files that CONFIG (borrowed) names.  *RET_SERVER is NULL if it
 * names none.
 */
int tls_server_new (struct tls_server **ret_server,
                    const struct tls_config *config, struct bp_error *err);

/* Read them again, for connections that begin from now on; on failure
 * everything stays as it is.  Threads: any.
 */
int tls_server_reload (struct tls_server *server, struct bp_error *err);

/* No connection is left.  NULL is fine. */
void tls_server_free (struct tls_server *server);

/* ---- Memory of streams ---- */

enum {
  TLS_BUFFER_SIZE = 96 << 10,
  TLS_MAX_SPARE = 4,
};

/* What is encrypted and not yet sent, of one connection. */
struct tls_buffer {
  struct tls_buffer *next; /* In the pool. */
  size_t start;            /* Bytes before it are sent, */
  size_t end;              /* those before it are to be. */
  uint8_t data[TLS_BUFFER_SIZE];
};

/* What the streams of a loop's thread share, above all buffers that no
 * connection has at the moment: only one whose socket is full keeps one
 * between events.
 */
struct tls_pool {
  uint64_t rekey_bytes; /* Of front_limits; const. */
  struct tls_buffer *spare;
  unsigned nr_spare; /* At most TLS_MAX_SPARE. */
};

/* NULL: no memory. */
struct tls_buffer *tls_pool_take (struct tls_pool *pool);
void tls_pool_give (struct tls_pool *pool, struct tls_buffer *buffer);
void tls_pool_done (struct tls_pool *pool);

#endif /* BP_TLS_H */
