/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The byte stream of a connection, between its socket and the protocol:
 * plain, or TLS once the client has asked for it.
 *
 *   protocol ─▶ transport_sendmsg ─┬───────────────▶ sendmsg
 *                                  └▶ SSL ─▶ unsent ─▶ send
 *   protocol ◀─ transport_recv ◀───┬──────────────── recv
 *                                  └─ SSL ◀────────── recv
 *
 * Two things are true of TLS alone.  Bytes that were taken from us may
 * not have reached the socket yet (has_unsent): they leave with
 * transport_flush, and what must be on the wire before the socket is
 * closed waits for that.  And bytes may be had although the socket has
 * none (has_input), so epoll does not tell.
 *
 * A plain stream costs nothing over its system calls.  Belongs to the
 * thread of the connection's loop.
 */
#ifndef BP_TRANSPORT_H
#define BP_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

struct tls_pool;
struct tls_server;
struct tls_stream;

struct transport {
  int fd; /* Borrowed from the connection, which closes it. */
  bool has_input;
  bool has_unsent;
  struct tls_stream *tls; /* NULL: plain. */
};

/* The same over TLS, in tls-stream.c. */
ssize_t tls_recv (struct transport *transport, void *buf, size_t len);
ssize_t tls_sendmsg (struct transport *transport, const struct iovec *iov,
                     size_t count);
int tls_flush (struct transport *transport);
int tls_end (struct transport *transport);

/* Receive at most LEN bytes (at least 1), without waiting.  As recv:
 * 0 is the end of the stream; -1 and EAGAIN or EINTR: nothing now.
 */
static inline ssize_t
transport_recv (struct transport *transport, void *buf, size_t len)
{
  if (__builtin_expect (transport->tls != NULL, false))
    return tls_recv (transport, buf, len);
  return recv (transport->fd, buf, len, MSG_DONTWAIT);
}

/* Send the bytes at IOV, without waiting.  As sendmsg: how many were
 * taken, or -1 and EAGAIN or EINTR: none now.
 */
static inline ssize_t
transport_sendmsg (struct transport *transport, struct iovec *iov,
                   size_t count)
{
  const struct msghdr msg = { .msg_iov = iov, .msg_iovlen = count };

  if (__builtin_expect (transport->tls != NULL, false))
    return tls_sendmsg (transport, iov, count);
  return sendmsg (transport->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Send what is unsent.  0: nothing is left; -EAGAIN: the socket is full;
 * or another negative errno.
 */
static inline int
transport_flush (struct transport *transport)
{
  return transport->has_unsent ? tls_flush (transport) : 0;
}

/* Say that nothing more will be sent; may be called again.  0: it is said,
 * and nothing is unsent; else as transport_flush.
 */
static inline int
transport_end (struct transport *transport)
{
  return transport->tls ? tls_end (transport) : 0;
}

/* Go on in TLS, as the server: its handshake is part of the calls above,
 * before the first byte.  POOL is that of the calling thread; both are
 * borrowed.
 */
int transport_start_tls (struct transport *transport,
                         struct tls_server *server, struct tls_pool *pool);

/* Why the last call failed, if TLS knows better than errno, or NULL.
 * Static.
 */
const char *transport_why (const struct transport *transport);

/* The peer has proven to be whom it must be: true of plain streams. */
bool transport_is_established (const struct transport *transport);

/* Say that nothing more will be sent, if the socket has room for that, and
 * free everything.
 */
void transport_done (struct transport *transport);

#endif /* BP_TRANSPORT_H */
