/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* How an OpenSSL context is made, from its parts. */
#ifndef BP_TLS_INTERNAL_H
#define BP_TLS_INTERNAL_H

#include <openssl/ssl.h>

#include "daemon/front/tls.h"

/* Read what CONFIG names into a context of its own. */
int tls_context_new (SSL_CTX **ret_context, const struct tls_config *config,
                     struct bp_error *err);

/* An SSL that waits for a client; NULL: no memory.  Threads: any. */
SSL *tls_server_accept (struct tls_server *server);

/* Certificate, key, and what clients' certificates are checked with. */
int tls_load_certificates (SSL_CTX *context,
                           const struct tls_config *config,
                           struct bp_error *err);

/* Say so if others may read PATH, which holds a secret. */
void tls_warn_if_exposed (const char *path);

#endif /* BP_TLS_INTERNAL_H */
