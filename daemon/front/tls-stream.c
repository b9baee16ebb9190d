/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* TLS streams.
 *
 * What OpenSSL writes goes into a buffer (tls-bio.c) that is sent when a
 * few records have come together.  So a write never finds the socket full
 * in the middle of a record, there is nothing that has to be presented
 * again later, and one system call sends several records.  Records are
 * made of the caller's bytes where they lie if they are large, and of a
 * copy where small pieces (headers, the ends of replies) share a record.
 *
 * What a peer can cost in one call is bounded: MAX_RECVS reads of the
 * socket, MAX_CALL_BYTES encrypted.  It can make us write (key updates)
 * and not read that only as far as there is room in the buffer; then the
 * connection fails.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "daemon/front/tls-internal.h"
#include "daemon/front/tls-stream.h"
#include "daemon/front/transport.h"

enum {
  MAX_RECVS = 4,
  MAX_CALL_BYTES = 256 << 10,
  MAX_RECORD = SSL3_RT_MAX_PLAIN_LENGTH,
  /* For what MAX_RECORD bytes become, should the client have asked for
   * the smallest records there are; and for what OpenSSL writes of its
   * own accord.
   */
  RECORD_ROOM = MAX_RECORD + 32 * 128,
  OWN_ROOM = 4 << 10,
};

/* ---- Life ---- */

int
transport_start_tls (struct transport *transport, struct tls_server *server,
                     struct tls_pool *pool)
{
  struct tls_stream *tls = calloc (1, sizeof *tls);
  SSL *ssl = tls_server_accept (server);
  BIO *bio = tls_bio_new (transport);

  assert (transport->tls == NULL);
  if (tls == NULL || ssl == NULL || bio == NULL) {
    free (tls);
    SSL_free (ssl);
    BIO_free (bio);
    return -ENOMEM;
  }
  SSL_set_bio (ssl, bio, bio);
  tls->ssl = ssl;
  tls->pool = pool;
  transport->tls = tls;
  return 0;
}

const char *
transport_why (const struct transport *transport)
{
  return transport->tls ? transport->tls->why : NULL;
}

bool
transport_is_established (const struct transport *transport)
{
  return transport->tls == NULL || transport->tls->is_established;
}

void
transport_done (struct transport *transport)
{
  struct tls_stream *tls = transport->tls;

  if (tls == NULL)
    return;
  (void) tls_end (transport);
  SSL_free (tls->ssl);
  if (tls->unsent)
    tls_pool_give (tls->pool, tls->unsent);
  free (tls);
  transport->tls = NULL;
  transport->has_input = transport->has_unsent = false;
}

/* ---- Failures ---- */

/* What OpenSSL says of it: the outermost of its errors, save that one
 * which says that a key is unknown is the cause of all behind it.
 */
static const char *
reason (const struct tls_stream *tls)
{
  unsigned long error = ERR_peek_error ();
  const char *text;

  if (ERR_GET_REASON (error) != SSL_R_PSK_IDENTITY_NOT_FOUND)
    error = ERR_peek_last_error ();
  if (ERR_GET_REASON (error) == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return X509_verify_cert_error_string (SSL_get_verify_result (tls->ssl));
  text = ERR_reason_error_string (error);
  return text ? text : "the connection failed";
}

/* An SSL call returned RESULT, which is no success.  Returns -EAGAIN; 0:
 * the client has ended the stream; -EPROTO: it is broken.
 */
static int
examine (struct tls_stream *tls, int result)
{
  const int error = SSL_get_error (tls->ssl, result);

  if (error == SSL_ERROR_WANT_READ)
    return -EAGAIN;
  if (error == SSL_ERROR_ZERO_RETURN || tls->has_ended)
    return 0;
  METRIC_ADD (client_tls_failures, !tls->is_established);
  tls->why = reason (tls);
  ERR_clear_error ();
  return -EPROTO;
}

/* ---- Sending ---- */

int
tls_flush (struct transport *transport)
{
  struct tls_stream *tls = transport->tls;
  struct tls_buffer *unsent = tls->unsent;
  ssize_t n;

  while (unsent && unsent->start < unsent->end) {
    n = send (transport->fd, unsent->data + unsent->start,
              unsent->end - unsent->start, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n == -1 && errno == EINTR)
      continue;
    if (n == -1)
      return -errno;
    unsent->start += (size_t) n;
  }
  if (unsent)
    tls_pool_give (tls->pool, unsent);
  tls->unsent = NULL;
  transport->has_unsent = false;
  return 0;
}

int
tls_end (struct transport *transport)
{
  struct tls_stream *tls = transport->tls;

  if (tls->why == NULL && !tls->is_ending && tls->is_established) {
    ERR_clear_error ();
    (void) SSL_shutdown (tls->ssl); /* If it fails, it is not said. */
    tls->is_ending = true;
  }
  return tls_flush (transport);
}

/* Is there room for another record? */
static bool
has_room (const struct tls_stream *tls)
{
  return tls->unsent == NULL ||
         sizeof tls->unsent->data - tls->unsent->end >=
           RECORD_ROOM + OWN_ROOM;
}

/* Where in an iovec we are. */
struct cursor {
  const struct iovec *iov;
  size_t count;
  size_t skip; /* Bytes of the first that are done. */
};

/* At most LEN bytes of the first iovec, which has some. */
static size_t
take (struct cursor *cursor, const uint8_t **ret_data, size_t len)
{
  const size_t n = MIN (len, cursor->iov->iov_len - cursor->skip);

  *ret_data = (const uint8_t *) cursor->iov->iov_base + cursor->skip;
  cursor->skip += n;
  if (cursor->skip == cursor->iov->iov_len) {
    cursor->iov++;
    cursor->count--;
    cursor->skip = 0;
  }
  return n;
}

/* The next record's bytes, which are not copied if they lie together.
 * Returns how many they are; 0: there are no more.
 */
static size_t
next_record (struct cursor *cursor, uint8_t *copy, const uint8_t **ret_data)
{
  size_t len = 0, n;

  while (cursor->count > 0 && len < MAX_RECORD) {
    n = take (cursor, ret_data, MAX_RECORD - len);
    if (len == 0 && (n == MAX_RECORD || cursor->count == 0))
      return n;
    memcpy (copy + len, *ret_data, n);
    len += n;
  }
  *ret_data = copy;
  return len;
}

/* LEN bytes more have been encrypted: a key is good for so many.  TLS 1.2
 * has none but the first.
 */
static void
count_bytes (struct tls_stream *tls, size_t len)
{
  tls->nr_bytes += len;
  if (tls->nr_bytes < tls->pool->rekey_bytes ||
      SSL_version (tls->ssl) < TLS1_3_VERSION)
    return;
  /* With the next record. */
  if (SSL_key_update (tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
    tls->nr_bytes = 0;
}

/* Encrypt as much as there is room for, at most MAX_BYTES and a record.
 * Returns how much, or a negative errno.
 */
static ssize_t
encrypt (struct tls_stream *tls, struct cursor *cursor, size_t max_bytes)
{
  uint8_t copy[MAX_RECORD];
  const uint8_t *data;
  size_t len, written, total = 0;
  int r;

  while (has_room (tls) && total < max_bytes &&
         (len = next_record (cursor, copy, &data)) > 0) {
    ERR_clear_error ();
    r = SSL_write_ex (tls->ssl, data, len, &written);
    if (r != 1)
      return examine (tls, r) == 0 ? -EPIPE : -EPROTO;
    assert (written == len);
    count_bytes (tls, len);
    total += len;
  }
  return (ssize_t) total;
}

ssize_t
tls_sendmsg (struct transport *transport, const struct iovec *iov,
             size_t count)
{
  struct cursor cursor = { .iov = iov, .count = count };
  size_t total = 0;
  ssize_t r;

  do {
    r = tls_flush (transport);
    if (r == 0)
      r = encrypt (transport->tls, &cursor, MAX_CALL_BYTES - total);
    total += r > 0 ? (size_t) r : 0;
  } while (r > 0 && total < MAX_CALL_BYTES);
  if (r >= 0)
    r = tls_flush (transport);
  if (total > 0 || r == 0)
    return (ssize_t) total; /* A failure shows again. */
  errno = (int) -r;
  return -1;
}

/* ---- Receiving ---- */

ssize_t
tls_recv (struct transport *transport, void *buf, size_t len)
{
  struct tls_stream *tls = transport->tls;
  size_t got = 0, n;
  int r = tls->why ? -EPROTO : 1;

  tls->nr_recvs = MAX_RECVS;
  while (r == 1 && got < len) {
    ERR_clear_error ();
    r = SSL_read_ex (tls->ssl, (uint8_t *) buf + got, len - got, &n);
    if (r == 1)
      got += n;
    else
      r = examine (tls, r);
  }
  if (!tls->is_established && SSL_is_init_finished (tls->ssl)) {
    tls->is_established = true;
    METRIC_ADD (client_tls_connections, 1);
  }
  /* It may have answered.  Should that fail, sending shows it. */
  (void) transport_flush (transport);
  transport->has_input = got > 0 && r != -EAGAIN;
  if (got > 0 || r == 0)
    return (ssize_t) got;
  errno = -r;
  return -1;
}
