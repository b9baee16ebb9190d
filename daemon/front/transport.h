/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The byte stream of a connection, between its socket and the protocol.
 *
 * Everything that a client sends or is sent passes here, so that what
 * lies below is this file's business alone.  Both calls are made for each
 * batch and cost nothing over the system call they make.
 *
 * Belongs to the thread of the connection's loop.
 */
#ifndef BP_TRANSPORT_H
#define BP_TRANSPORT_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

struct transport {
  int fd; /* Borrowed from the connection, which closes it. */
};

/* Receive at most LEN bytes (at least 1), without waiting.  As recv:
 * 0 is the end of the stream; -1 and EAGAIN or EINTR: nothing now.
 */
static inline ssize_t
transport_recv (struct transport *transport, void *buf, size_t len)
{
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

  return sendmsg (transport->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

#endif /* BP_TRANSPORT_H */
