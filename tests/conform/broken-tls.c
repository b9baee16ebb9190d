/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The broken server's TLS, with a certificate that it makes for itself. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include <openssl/ec.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "conform/broken.h"
#include "conform/protocol.h"

enum {
  VALID_S = 24 * 60 * 60,
};

bool
has_tls (void)
{
  return has_bug (BUG_OVER_TLS) || has_bug (BUG_OVER_TLS_SECOND_TAKEN) ||
         has_bug (BUG_OVER_TLS_NOT_CLOSED) ||
         has_bug (BUG_OVER_TLS_STATE_KEPT) ||
         has_bug (BUG_OVER_TLS_1_3_ALONE) ||
         has_bug (BUG_OVER_TLS_ANSWERS_PLAIN) ||
         has_bug (BUG_OVER_TLS_PLAIN_KEPT);
}

static X509 *
make_certificate (EVP_PKEY *key)
{
  X509 *cert = X509_new ();
  X509_NAME *name = X509_get_subject_name (cert);

  ASN1_INTEGER_set (X509_get_serialNumber (cert), 1);
  X509_gmtime_adj (X509_getm_notBefore (cert), 0);
  X509_gmtime_adj (X509_getm_notAfter (cert), VALID_S);
  X509_NAME_add_entry_by_txt (name, "CN", MBSTRING_ASC,
                              (const unsigned char *) "broken", -1, -1, 0);
  X509_set_issuer_name (cert, name);
  X509_set_pubkey (cert, key);
  X509_sign (cert, key, EVP_sha256 ());
  return cert;
}

static SSL_CTX *
make_context (void)
{
  SSL_CTX *ctx = SSL_CTX_new (TLS_server_method ());
  EVP_PKEY *key = EVP_EC_gen ("P-256");

  if (ctx == NULL || key == NULL ||
      SSL_CTX_use_certificate (ctx, make_certificate (key)) != 1 ||
      SSL_CTX_use_PrivateKey (ctx, key) != 1)
    abort ();
  if (has_bug (BUG_OVER_TLS_1_3_ALONE))
    SSL_CTX_set_min_proto_version (ctx, TLS1_3_VERSION);
  return ctx;
}

void
begin_tls (struct client *client)
{
  SSL *ssl = SSL_new (make_context ());

  if (ssl == NULL || SSL_set_fd (ssl, client->fd) != 1 ||
      SSL_accept (ssl) != 1)
    client_leave ();
  client->ssl = ssl;
  if (!has_bug (BUG_OVER_TLS_STATE_KEPT)) {
    client->is_structured = false;
    memset (client->is_selected, 0, sizeof client->is_selected);
  }
}

void
end_tls (struct client *client)
{
  if (client->ssl && !has_bug (BUG_OVER_TLS_NOT_CLOSED))
    SSL_shutdown (client->ssl);
}
