/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* TLS with OpenSSL. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "conform/check.h"
#include "conform/tls.h"
#include "conform/uri.h"
#include "lib/base/range.h"

/* Anonymous key exchange is below what OpenSSL deems secure. */
#define CIPHERS "ALL:aNULL:!PSK:@SECLEVEL=0"
#define PSK_CIPHERS "kDHEPSK:kECDHEPSK:kPSK:@SECLEVEL=0"

enum {
  MAX_KEY = 64, /* Bytes of a pre-shared key. */
};

struct tls {
  SSL *ssl;
  short wanted; /* Of poll. */
  char why[200];
};

static void
set_why (struct tls *tls, const char *what)
{
  const unsigned long error = ERR_get_error ();
  char reason[120] = "the connection was closed";

  if (error != 0)
    ERR_error_string_n (error, reason, sizeof reason);
  snprintf (tls->why, sizeof tls->why, "%s: %s", what, reason);
}

/* ---- Who we are ---- */

static void
use_certificate (SSL_CTX *ctx, const char *dir)
{
  char cert[PATH_MAX], key[PATH_MAX];

  if (snprintf (cert, sizeof cert, "%s/client-cert.pem", dir) >= PATH_MAX ||
      snprintf (key, sizeof key, "%s/client-key.pem", dir) >= PATH_MAX)
    fail ("'%s': too long", dir);
  if (SSL_CTX_use_certificate_chain_file (ctx, cert) != 1)
    fail ("'%s': no certificate that can be used", cert);
  if (SSL_CTX_use_PrivateKey_file (ctx, key, SSL_FILETYPE_PEM) != 1)
    fail ("'%s': no key that can be used", key);
}

/* The one of this process; OpenSSL asks for it in a callback. */
static struct {
  char user[128];
  unsigned char key[MAX_KEY];
  unsigned len;
} psk;

/* The user of the URI, or the first, of lines USER:HEX. */
static void
read_psk (const char *path, const char *user)
{
  char line[512], *colon;
  FILE *fp = fopen (path, "re");
  long len = 0;

  if (fp == NULL)
    fail ("'%s': %m", path);
  while (psk.len == 0 && fgets (line, sizeof line, fp)) {
    line[strcspn (line, "\r\n")] = '\0';
    colon = strchr (line, ':');
    if (colon == NULL || line[0] == '#')
      continue;
    *colon = '\0';
    if (user[0] != '\0' && strcmp (user, line) != 0)
      continue;
    unsigned char *key = OPENSSL_hexstr2buf (colon + 1, &len);
    if (key == NULL || len < 1 || len > MAX_KEY ||
        strlen (line) >= sizeof psk.user)
      fail ("'%s': the key of '%s' is not well-formed", path, line);
    strcpy (psk.user, line);
    memcpy (psk.key, key, (size_t) len);
    psk.len = (unsigned) len;
    OPENSSL_free (key);
  }
  fclose (fp);
  if (psk.len == 0)
    fail ("'%s': no key of user '%s'", path, user);
}

static unsigned
give_psk (SSL *ssl, const char *hint, char *user, unsigned max_user,
          unsigned char *key, unsigned max_key)
{
  (void) ssl;
  (void) hint;
  if (strlen (psk.user) >= max_user || psk.len > max_key)
    return 0;
  strcpy (user, psk.user);
  memcpy (key, psk.key, psk.len);
  return psk.len;
}

/* ---- The connection ---- */

struct tls *
tls_new (int fd, const struct uri *uri, int max_version)
{
  struct tls *tls = take_memory (sizeof *tls);
  SSL_CTX *ctx = SSL_CTX_new (TLS_client_method ());
  const char *ciphers = uri->psk_file[0] != '\0' ? PSK_CIPHERS : CIPHERS;

  if (ctx == NULL || SSL_CTX_set_cipher_list (ctx, ciphers) != 1 ||
      SSL_CTX_set_max_proto_version (ctx, max_version) != 1)
    fail ("OpenSSL cannot be set up");
  SSL_CTX_set_verify (ctx, SSL_VERIFY_NONE, NULL);
  SSL_CTX_set_mode (ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                           SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (uri->certificates[0] != '\0')
    use_certificate (ctx, uri->certificates);
  if (uri->psk_file[0] != '\0') {
    read_psk (uri->psk_file, uri->user);
    SSL_CTX_set_psk_client_callback (ctx, give_psk);
  }
  tls->ssl = SSL_new (ctx);
  if (tls->ssl == NULL || SSL_set_fd (tls->ssl, fd) != 1)
    fail ("OpenSSL cannot be set up");
  SSL_set_connect_state (tls->ssl);
  return tls;
}

/* After a call of OpenSSL that returned R <= 0: -EAGAIN, 0 at the end of
 * the connection, or -EPROTO.
 */
static int
classify (struct tls *tls, int r, const char *what)
{
  switch (SSL_get_error (tls->ssl, r)) {
  case SSL_ERROR_WANT_READ: tls->wanted = POLLIN; return -EAGAIN;
  case SSL_ERROR_WANT_WRITE: tls->wanted = POLLOUT; return -EAGAIN;
  case SSL_ERROR_ZERO_RETURN: return 0;
  default: set_why (tls, what); return -EPROTO;
  }
}

int
tls_shake_hands (struct tls *tls)
{
  int r;

  ERR_clear_error ();
  r = SSL_do_handshake (tls->ssl);
  if (r == 1)
    return 0;
  r = classify (tls, r, "TLS handshake");
  return r == 0 ? -EPROTO : r;
}

ssize_t
tls_recv (struct tls *tls, void *data, size_t len)
{
  int r;

  ERR_clear_error ();
  r = SSL_read (tls->ssl, data, (int) MIN (len, (size_t) INT_MAX));
  if (r > 0)
    return r;
  r = classify (tls, r, "TLS read");
  return r == -EAGAIN ? -EAGAIN : 0;
}

ssize_t
tls_send (struct tls *tls, const void *data, size_t len)
{
  int r;

  ERR_clear_error ();
  r = SSL_write (tls->ssl, data, (int) MIN (len, (size_t) INT_MAX));
  if (r > 0)
    return r;
  r = classify (tls, r, "TLS write");
  return r == -EAGAIN ? -EAGAIN : -EPIPE;
}

short
tls_wanted (const struct tls *tls)
{
  return tls->wanted;
}

const char *
tls_why (const struct tls *tls)
{
  return tls->why;
}

const char *
tls_version (const struct tls *tls)
{
  return SSL_get_version (tls->ssl);
}

bool
tls_was_closed (const struct tls *tls)
{
  return SSL_get_shutdown (tls->ssl) & SSL_RECEIVED_SHUTDOWN;
}
