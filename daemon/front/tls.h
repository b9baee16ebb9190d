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

#endif /* BP_TLS_H */
