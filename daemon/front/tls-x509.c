/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Certificates, in the files that nbdkit and qemu take:
 *
 *   DIR/server-cert.pem   ours, and those between it and its CA
 *   DIR/server-key.pem    its key, without a passphrase
 *   DIR/ca-cert.pem       whose certificates clients must have
 *   DIR/ca-crl.pem        which of those no longer count; may be absent
 *
 * The last two are for --tls-verify-peer alone.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#include "lib/base/cleanup.h"
#include "daemon/log.h"
#include "daemon/front/tls-internal.h"

struct path {
  char text[4096];
};

/* Make the path of NAME, and see that it can be read: OpenSSL's own words
 * about that are many.
 */
static int
find_file (struct path *path, const struct tls_config *config,
           const char *name, struct bp_error *err)
{
  CLEANUP_CLOSE int fd = -1;

  if ((size_t) snprintf (path->text, sizeof path->text, "%s/%s",
                         config->certificates, name) >= sizeof path->text)
    return bp_error_set (err, -ENAMETOOLONG, "%s: %m", name);
  fd = open (path->text, O_RDONLY | O_CLOEXEC);
  if (fd == -1)
    return bp_error_set (err, -errno, "%s: %m", path->text);
  return 0;
}

/* OpenSSL does not like what is in PATH. */
static int
refuse_file (const struct path *path, struct bp_error *err)
{
  const char *why = ERR_reason_error_string (ERR_peek_error ());

  ERR_clear_error ();
  return bp_error_set (err, -EINVAL, "%s: %s", path->text,
                       why ? why : "no certificate or key");
}

/* Called for a key that needs a passphrase: nobody is there to ask. */
static int
refuse_passphrase (char *buf, int size, int is_written, void *opaque)
{
  bool *was_asked = opaque;

  (void) buf;
  (void) size;
  (void) is_written;
  *was_asked = true;
  return -1;
}

/* SSL_CTX_use_PrivateKey_file. */
static int
use_key (SSL_CTX *context, const char *path, bool *ret_is_encrypted)
{
  int r;

  *ret_is_encrypted = false;
  SSL_CTX_set_default_passwd_cb (context, refuse_passphrase);
  SSL_CTX_set_default_passwd_cb_userdata (context, ret_is_encrypted);
  r = SSL_CTX_use_PrivateKey_file (context, path, SSL_FILETYPE_PEM);
  SSL_CTX_set_default_passwd_cb (context, NULL);
  SSL_CTX_set_default_passwd_cb_userdata (context, NULL);
  return r;
}

/* Old certificates are refused by clients only, and only they say so. */
static void
warn_if_expired (SSL_CTX *context, const struct path *path)
{
  const X509 *cert = SSL_CTX_get0_certificate (context);

  if (X509_cmp_current_time (X509_get0_notAfter (cert)) < 0)
    log_warn ("%s: expired, clients will not connect", path->text);
}

static int
load_certificate (SSL_CTX *context, const struct tls_config *config,
                  struct bp_error *err)
{
  struct path path;
  int r;

  r = find_file (&path, config, "server-cert.pem", err);
  if (r < 0)
    return r;
  if (SSL_CTX_use_certificate_chain_file (context, path.text) != 1)
    return refuse_file (&path, err);
  warn_if_expired (context, &path);
  return 0;
}

static int
load_key (SSL_CTX *context, const struct tls_config *config,
          struct bp_error *err)
{
  struct path path;
  bool is_encrypted;
  int r;

  r = find_file (&path, config, "server-key.pem", err);
  if (r < 0)
    return r;
  tls_warn_if_exposed (path.text);
  r = use_key (context, path.text, &is_encrypted);
  if (is_encrypted) {
    ERR_clear_error ();
    return bp_error_set (err, -EINVAL, "%s: needs a passphrase; decrypt it",
                         path.text);
  }
  if (r != 1 && ERR_GET_LIB (ERR_peek_error ()) != ERR_LIB_X509)
    return refuse_file (&path, err);
  if (r != 1 || SSL_CTX_check_private_key (context) != 1) {
    ERR_clear_error ();
    return bp_error_set (err, -EINVAL,
                         "%s: not the key of server-cert.pem", path.text);
  }
  return 0;
}

static int
load_ca (SSL_CTX *context, const struct tls_config *config,
         struct bp_error *err)
{
  STACK_OF (X509_NAME) * names;
  struct path path;
  int r;

  r = find_file (&path, config, "ca-cert.pem", err);
  if (r < 0)
    return r;
  names = SSL_load_client_CA_file (path.text);
  if (names == NULL || SSL_CTX_load_verify_file (context, path.text) != 1) {
    sk_X509_NAME_pop_free (names, X509_NAME_free);
    return refuse_file (&path, err);
  }
  SSL_CTX_set_client_CA_list (context, names); /* Takes them over. */
  SSL_CTX_set_verify (context,
                      SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                      NULL);
  return 0;
}

static int
load_crl (SSL_CTX *context, const struct tls_config *config,
          struct bp_error *err)
{
  X509_STORE *store = SSL_CTX_get_cert_store (context);
  X509_LOOKUP *lookup = X509_STORE_add_lookup (store, X509_LOOKUP_file ());
  struct path path;
  int r;

  r = find_file (&path, config, "ca-crl.pem", err);
  if (r == -ENOENT)
    return 0;
  if (r < 0)
    return r;
  if (lookup == NULL ||
      X509_load_crl_file (lookup, path.text, X509_FILETYPE_PEM) < 1)
    return refuse_file (&path, err);
  X509_STORE_set_flags (store, X509_V_FLAG_CRL_CHECK);
  return 0;
}

int
tls_load_certificates (SSL_CTX *context, const struct tls_config *config,
                       struct bp_error *err)
{
  int r;

  r = load_certificate (context, config, err);
  if (r == 0)
    r = load_key (context, config, err);
  if (r == 0 && config->verify_peer)
    r = load_ca (context, config, err);
  if (r == 0 && config->verify_peer)
    r = load_crl (context, config, err);
  return r;
}
