/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the command line says of TLS. */
#ifndef BP_TLS_CONFIG_H
#define BP_TLS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

struct tls_config {
  const char *certificates; /* Directory, argv's; or NULL. */
  const char *psk;          /* File, argv's; or NULL. */
  bool verify_peer;         /* Clients must have a certificate, too. */
};

/* Can a client be served over TLS? */
static inline bool
tls_config_has_credentials (const struct tls_config *config)
{
  return config->certificates != NULL || config->psk != NULL;
}

#endif /* BP_TLS_CONFIG_H */
