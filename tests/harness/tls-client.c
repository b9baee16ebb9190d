/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A TLS client, and relays.  A relay keeps one piece of bytes for each
 * direction and goes around until neither side has anything for it; then
 * it waits for both.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "daemon/front/tls.h"
#include "harness/check.h"
#include "harness/tls-client.h"

/* Bytes on their way: END of them, of which START are through. */
struct piece {
  uint8_t data[16 << 10];
  size_t start, end;
};

struct relay {
  int plain; /* Non-blocking, as is fd. */
  int fd;
  SSL *ssl;
  unsigned nr_rekeyed;   /* Key updates received. */
  struct piece up, down; /* To the server, from it. */
  bool is_full;          /* The socket of the server took nothing. */
  bool has_ended;
  bool was_notified;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_ended = PTHREAD_COND_INITIALIZER;
static struct tls_relay_counts counts; /* Lock. */

static char key_path[64]; /* Main's.  Empty: not made yet. */

void
tls_test_write_keys (const char *text)
{
  FILE *fp;

  if (key_path[0] == '\0') {
    strcpy (key_path, "/tmp/bp-psk.XXXXXX");
    close (mkstemp (key_path));
  }
  fp = fopen (key_path, "w");
  CHECK (fp != NULL);
  CHECK (fputs (text, fp) >= 0);
  CHECK_EQ (fclose (fp), 0);
}

struct tls_server *
tls_test_server (void)
{
  const struct tls_config config = { .psk = key_path };
  struct tls_server *server;
  struct bp_error err;

  if (key_path[0] == '\0')
    tls_test_write_keys (TLS_TEST_USER ":" TLS_TEST_KEY "\n");
  CHECK_EQ (tls_server_new (&server, &config, &err), 0);
  return server;
}

void
tls_test_remove_keys (void)
{
  CHECK_EQ (unlink (key_path), 0);
}

/* ---- Clients ---- */

static unsigned
tell_key (SSL *ssl, const char *hint, char *user, unsigned max_user,
          unsigned char *key, unsigned max_key)
{
  const struct tls_client *client = SSL_get_app_data (ssl);
  size_t len;

  (void) hint;
  CHECK ((size_t) snprintf (user, max_user, "%s",
                            client->user ? client->user : TLS_TEST_USER) <
         max_user);
  CHECK_EQ (OPENSSL_hexstr2buf_ex (key, max_key, &len,
                                   client->key ? client->key : TLS_TEST_KEY,
                                   '\0'),
            1);
  return (unsigned) len;
}

SSL *
tls_client_new (int fd, const struct tls_client *client)
{
  SSL_CTX *context = SSL_CTX_new (TLS_client_method ());
  SSL *ssl;

  CHECK (context != NULL);
  SSL_CTX_set_psk_client_callback (context, tell_key);
  if (client->version)
    CHECK (SSL_CTX_set_min_proto_version (context, client->version) == 1 &&
           SSL_CTX_set_max_proto_version (context, client->version) == 1);
  if (client->ciphers)
    CHECK_EQ (SSL_CTX_set_cipher_list (context, client->ciphers), 1);
  if (client->max_fragment_code)
    CHECK_EQ (SSL_CTX_set_tlsext_max_fragment_length (
                context, client->max_fragment_code),
              1);
  ssl = SSL_new (context);
  SSL_CTX_free (context);
  CHECK (ssl != NULL && SSL_set_fd (ssl, fd) == 1);
  SSL_set_app_data (ssl, (void *) client);
  SSL_set_connect_state (ssl);
  return ssl;
}

void
tls_client_start (int fd)
{
  client_send_option (fd, NBD_OPT_STARTTLS, NULL, 0);
  CHECK_EQ (client_end_option (fd, NBD_OPT_STARTTLS), NBD_REP_ACK);
}

/* ---- Relays ---- */

static bool
is_empty (const struct piece *piece)
{
  return piece->start == piece->end;
}

static void
see_message (int is_sent, int version, int type, const void *data,
             size_t len, SSL *ssl, void *opaque)
{
  struct relay *relay = opaque;

  (void) version;
  (void) ssl;
  if (!is_sent && type == SSL3_RT_HANDSHAKE && len > 0 &&
      *(const uint8_t *) data == SSL3_MT_KEY_UPDATE)
    relay->nr_rekeyed++;
}

/* SSL returned RESULT: is it only that it has to wait? */
static bool
must_wait (struct relay *relay, int result)
{
  const int error = SSL_get_error (relay->ssl, result);

  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
    return true;
  relay->has_ended = true;
  relay->was_notified = error == SSL_ERROR_ZERO_RETURN;
  ERR_clear_error ();
  return false;
}

/* Each moves some bytes and returns true, or false. */
static bool
take_plain (struct relay *relay)
{
  struct piece *up = &relay->up;
  ssize_t n;

  if (!is_empty (up))
    return false;
  n = recv (relay->plain, up->data, sizeof up->data, MSG_DONTWAIT);
  if (n == 0)
    relay->has_ended = true; /* The test has closed it. */
  if (n <= 0)
    return false;
  up->start = 0;
  up->end = (size_t) n;
  return true;
}

static bool
encrypt (struct relay *relay)
{
  struct piece *up = &relay->up;
  size_t n = 0;
  int r;

  if (is_empty (up))
    return false;
  r = SSL_write_ex (relay->ssl, up->data + up->start, up->end - up->start,
                    &n);
  relay->is_full = r != 1 && SSL_want_write (relay->ssl);
  if (r != 1)
    return !must_wait (relay, r);
  up->start += n;
  return true;
}

static bool
decrypt (struct relay *relay)
{
  struct piece *down = &relay->down;
  size_t n = 0;
  int r;

  if (!is_empty (down))
    return false;
  r = SSL_read_ex (relay->ssl, down->data, sizeof down->data, &n);
  if (r != 1)
    return !must_wait (relay, r);
  down->start = 0;
  down->end = n;
  return true;
}

static bool
give_plain (struct relay *relay)
{
  struct piece *down = &relay->down;
  ssize_t n;

  if (is_empty (down))
    return false;
  n = send (relay->plain, down->data + down->start, down->end - down->start,
            MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n > 0)
    down->start += (size_t) n;
  else if (errno != EAGAIN)
    relay->has_ended = true;
  return n > 0;
}

static void
wait_for_either (const struct relay *relay)
{
  struct pollfd fds[2] = {
    { .fd = relay->plain },
    { .fd = relay->fd },
  };

  fds[0].events |= is_empty (&relay->up) ? POLLIN : 0;
  fds[0].events |= is_empty (&relay->down) ? 0 : POLLOUT;
  fds[1].events |= is_empty (&relay->down) ? POLLIN : 0;
  fds[1].events |= relay->is_full ? POLLOUT : 0;
  CHECK (poll (fds, 2, -1) > 0);
}

static void *
run_relay (void *opaque)
{
  struct relay *relay = opaque;
  bool moved;

  while (!relay->has_ended) {
    moved = take_plain (relay);
    moved |= encrypt (relay);
    moved |= decrypt (relay);
    moved |= give_plain (relay);
    if (!moved && !relay->has_ended)
      wait_for_either (relay);
  }
  SSL_free (relay->ssl);
  close (relay->fd);
  close (relay->plain);
  pthread_mutex_lock (&lock);
  counts.running--;
  counts.notified += relay->was_notified;
  counts.cut += !relay->was_notified;
  counts.rekeyed += relay->nr_rekeyed;
  pthread_cond_signal (&one_ended);
  pthread_mutex_unlock (&lock);
  free (relay);
  return NULL;
}

int
tls_client_relay (int fd, const struct tls_client *client)
{
  const struct timeval timeout = { .tv_sec = 10 }; /* As client_connect. */
  struct relay *relay = calloc (1, sizeof *relay);
  pthread_t thread;
  int fds[2];

  CHECK (relay != NULL);
  CHECK_EQ (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  setsockopt (fds[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt (fds[0], SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  CHECK_EQ (fcntl (fd, F_SETFL, O_NONBLOCK), 0);
  relay->plain = fds[1];
  relay->fd = fd;
  relay->ssl = tls_client_new (fd, client);
  SSL_set_msg_callback (relay->ssl, see_message);
  SSL_set_msg_callback_arg (relay->ssl, relay);
  pthread_mutex_lock (&lock);
  counts.running++;
  pthread_mutex_unlock (&lock);
  CHECK_EQ (pthread_create (&thread, NULL, run_relay, relay), 0);
  pthread_detach (thread);
  return fds[0];
}

int
tls_client_connect (const struct front_fixture *fixture,
                    const struct tls_client *client)
{
  const int fd = client_connect (fixture);

  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  tls_client_start (fd);
  return tls_client_relay (fd, client);
}

int
tls_client_attach (const struct front_fixture *fixture,
                   const struct tls_client *client, const char *export)
{
  const int fd = tls_client_connect (fixture, client);

  client_send_info (fd, NBD_OPT_GO, export);
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
  return fd;
}

struct tls_relay_counts
tls_relays_wait (void)
{
  struct tls_relay_counts result;

  pthread_mutex_lock (&lock);
  while (counts.running > 0)
    pthread_cond_wait (&one_ended, &lock);
  result = counts;
  pthread_mutex_unlock (&lock);
  return result;
}
