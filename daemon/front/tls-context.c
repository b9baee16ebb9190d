/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* OpenSSL contexts.
 *
 * Ciphers, curves, key sizes and versions are the business of the
 * system's OpenSSL configuration; all that is done here is to raise the
 * lowest version to TLS 1.2.  There are no session tickets and no session
 * cache: connections last, and a client whose certificate was revoked must
 * not come back with a session from before.
 *
 * A context owns its table of pre-shared keys.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/tls1.h>

#include "daemon/log.h"
#include "daemon/front/tls-internal.h"
#include "daemon/front/tls-psk.h"

void
tls_warn_if_exposed (const char *path)
{
  struct stat st;

  if (stat (path, &st) == 0 && (st.st_mode & S_IROTH))
    log_warn ("%s: everybody on this host may read it; chmod o-r", path);
}

/* ---- Pre-shared keys ---- */

static int table_index = -1; /* Of a context's table. */

static void
free_table (void *parent, void *table, CRYPTO_EX_DATA *data, int index,
            long arg, void *opaque)
{
  (void) parent;
  (void) data;
  (void) index;
  (void) arg;
  (void) opaque;
  psk_table_free (table);
}

static void
make_table_index (void)
{
  table_index =
    SSL_CTX_get_ex_new_index (0, NULL, NULL, NULL, free_table);
}

/* The key of USER: TLS 1.2 and 1.3.  Returns its length; 0: unknown. */
static unsigned
find_key (SSL *ssl, const char *user, unsigned char *key, unsigned max_len)
{
  const struct psk_table *table =
    SSL_CTX_get_ex_data (SSL_get_SSL_CTX (ssl), table_index);
  const uint8_t *found;
  size_t len = 0;

  found = user ? psk_table_find (table, user, &len) : NULL;
  if (found == NULL || len > max_len) {
    ERR_raise (ERR_LIB_SSL, SSL_R_PSK_IDENTITY_NOT_FOUND);
    return 0;
  }
  memcpy (key, found, len);
  return (unsigned) len;
}

static int
load_keys (SSL_CTX *context, const struct tls_config *config,
           struct bp_error *err)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  struct psk_table *table;
  int r;

  pthread_once (&once, make_table_index);
  r = psk_table_load (&table, config->psk, err);
  if (r < 0)
    return r;
  tls_warn_if_exposed (config->psk);
  if (SSL_CTX_set_ex_data (context, table_index, table) != 1) {
    psk_table_free (table);
    return bp_error_set (err, -ENOMEM, "TLS: out of memory");
  }
  SSL_CTX_set_psk_server_callback (context, find_key);
  return 0;
}

/* With TLS 1.3 a pre-shared key goes with SHA-256 only, and a server that
 * has a certificate, too, may choose a cipher with another hash before it
 * looks at the key.  So a client that offers a key gets a server without.
 */
static int
choose_credentials (SSL *ssl, int *alert, void *opaque)
{
  const unsigned char *data;
  size_t len;

  (void) alert;
  (void) opaque;
  if (SSL_client_hello_get0_ext (ssl, TLSEXT_TYPE_psk, &data, &len))
    SSL_certs_clear (ssl);
  return SSL_CLIENT_HELLO_SUCCESS;
}

/* ---- Contexts ---- */

static bool
set_up (SSL_CTX *context)
{
  static const unsigned char name[] = "blobpagerd";

  SSL_CTX_set_options (context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                                  SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode (context, SSL_SESS_CACHE_OFF);
  /* An idle connection keeps no buffers. */
  SSL_CTX_set_mode (context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead (context, 1);
  /* OpenSSL takes a pre-shared key for a session, and those must belong
   * to something where certificates are asked for.
   */
  return SSL_CTX_set_session_id_context (context, name, sizeof name) == 1 &&
         SSL_CTX_set_num_tickets (context, 0) == 1 &&
         SSL_CTX_set_dh_auto (context, 1) == 1 &&
         (SSL_CTX_get_min_proto_version (context) >= TLS1_2_VERSION ||
          SSL_CTX_set_min_proto_version (context, TLS1_2_VERSION) == 1);
}

int
tls_context_new (SSL_CTX **ret_context, const struct tls_config *config,
                 struct bp_error *err)
{
  SSL_CTX *context = SSL_CTX_new (TLS_server_method ());
  int r = 0;

  if (context == NULL || !set_up (context))
    r = bp_error_set (err, -ENOMEM, "TLS: OpenSSL cannot be set up: %s",
                      ERR_reason_error_string (ERR_peek_error ()));
  if (r == 0 && config->certificates)
    r = tls_load_certificates (context, config, err);
  if (r == 0 && config->psk)
    r = load_keys (context, config, err);
  if (r < 0) {
    SSL_CTX_free (context);
    return r;
  }
  if (config->certificates && config->psk)
    SSL_CTX_set_client_hello_cb (context, choose_credentials, NULL);
  *ret_context = context;
  return 0;
}
