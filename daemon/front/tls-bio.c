/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Between OpenSSL and the socket: it reads the socket, as often as the
 * stream may in this call, and writes into the stream's buffer.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/bio.h>

#include "daemon/front/tls-stream.h"
#include "daemon/front/tls.h"
#include "daemon/front/transport.h"

static int
bio_read (BIO *bio, char *data, int len)
{
  struct transport *transport = BIO_get_data (bio);
  struct tls_stream *tls = transport->tls;
  ssize_t n;

  BIO_clear_retry_flags (bio);
  if (tls->nr_recvs == 0) {
    BIO_set_retry_read (bio); /* epoll will tell us again. */
    return -1;
  }
  tls->nr_recvs--;
  n = recv (transport->fd, data, (size_t) len, MSG_DONTWAIT);
  if (n == -1 && (errno == EAGAIN || errno == EINTR))
    BIO_set_retry_read (bio);
  tls->has_ended |= n == 0;
  return (int) n;
}

/* All of it or nothing: what cannot be kept is lost, and the connection
 * with it.
 */
static int
bio_write (BIO *bio, const char *data, int len)
{
  struct transport *transport = BIO_get_data (bio);
  struct tls_stream *tls = transport->tls;
  struct tls_buffer *unsent = tls->unsent;
  const size_t n = (size_t) len;

  BIO_clear_retry_flags (bio);
  if (unsent == NULL)
    unsent = tls->unsent = tls_pool_take (tls->pool);
  if (unsent == NULL || sizeof unsent->data - unsent->end < n)
    return -1;
  memcpy (unsent->data + unsent->end, data, n);
  unsent->end += n;
  transport->has_unsent = true;
  return len;
}

static long
bio_ctrl (BIO *bio, int command, long number, void *ptr)
{
  (void) bio;
  (void) number;
  (void) ptr;
  return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method; /* Of the whole process, once it is needed. */

static void
make_bio_method (void)
{
  bio_method =
    BIO_meth_new (BIO_get_new_index () | BIO_TYPE_SOURCE_SINK, "transport");
  if (bio_method) {
    BIO_meth_set_read (bio_method, bio_read);
    BIO_meth_set_write (bio_method, bio_write);
    BIO_meth_set_ctrl (bio_method, bio_ctrl);
  }
}

BIO *
tls_bio_new (struct transport *transport)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  BIO *bio;

  pthread_once (&once, make_bio_method);
  bio = bio_method ? BIO_new (bio_method) : NULL;
  if (bio == NULL)
    return NULL;
  BIO_set_data (bio, transport);
  BIO_set_init (bio, 1);
  return bio;
}
