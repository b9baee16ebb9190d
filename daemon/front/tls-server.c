/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The context that new connections take, and its replacement. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "daemon/front/tls-internal.h"

struct tls_server {
  struct tls_config config;
  pthread_mutex_t lock; /* Held for a few instructions; innermost. */
  SSL_CTX *context;     /* Lock.  Each SSL holds a reference. */
};

int
tls_server_new (struct tls_server **ret_server,
                const struct tls_config *config, struct bp_error *err)
{
  struct tls_server *server;
  int r;

  *ret_server = NULL;
  if (!tls_config_has_credentials (config))
    return 0;
  server = calloc (1, sizeof *server);
  if (server == NULL)
    return bp_error_set (err, -ENOMEM, "TLS: out of memory");
  server->config = *config;
  r = tls_context_new (&server->context, config, err);
  if (r < 0) {
    free (server);
    return r;
  }
  pthread_mutex_init (&server->lock, NULL);
  *ret_server = server;
  return 0;
}

int
tls_server_reload (struct tls_server *server, struct bp_error *err)
{
  SSL_CTX *fresh, *old;
  int r;

  r = tls_context_new (&fresh, &server->config, err);
  if (r < 0)
    return r;
  {
    LOCKED (&server->lock);
    old = server->context;
    server->context = fresh;
  }
  SSL_CTX_free (old);
  return 0;
}

SSL *
tls_server_accept (struct tls_server *server)
{
  SSL_CTX *context;
  SSL *ssl;

  {
    LOCKED (&server->lock);
    context = server->context;
    SSL_CTX_up_ref (context);
  }
  ssl = SSL_new (context); /* Takes a reference of its own. */
  SSL_CTX_free (context);
  if (ssl)
    SSL_set_accept_state (ssl);
  return ssl;
}

void
tls_server_free (struct tls_server *server)
{
  if (server == NULL)
    return;
  SSL_CTX_free (server->context);
  pthread_mutex_destroy (&server->lock);
  free (server);
}
