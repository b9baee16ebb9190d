/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Sending and receiving on a socket that never blocks, against the check's
 * deadline.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "conform/channel.h"
#include "conform/check.h"
#include "conform/dial.h"
#include "conform/target.h"
#include "conform/tls.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"

enum {
  READ_SIZE = 256 << 10,      /* Bytes asked of the socket at a time. */
  MAX_WAITING = 512 << 20,    /* Received and not taken: a flood. */
  SLOW_PAUSE_NS = 200 * 1000, /* Between the bytes of a slow client. */
};

/* Wait for EVENTS; returns those that came. */
static short
wait_for (const struct channel *channel, short events, const char *what)
{
  const uint64_t now = now_ns (), deadline = check_deadline_ns ();
  struct pollfd pollfd = { .fd = channel->fd, .events = events };
  int n = 0;

  if (now < deadline)
    n = poll (&pollfd, 1, (int) ((deadline - now) / NS_PER_MS) + 1);
  if (n < 0 && errno != EINTR)
    fail ("poll: %m");
  if (n == 0)
    fail ("timed out waiting for %s", what);
  return n < 0 ? 0 : pollfd.revents;
}

void
channel_open (struct channel *channel, const struct target *target)
{
  *channel = (struct channel){ .fd = -1 };
  channel->fd = dial (target->uri);
  if (fcntl (channel->fd, F_SETFL, O_NONBLOCK) < 0)
    fail ("fcntl: %m");
}

bool
channel_start_tls (struct channel *channel, const struct target *target,
                   int max_version)
{
  int r;

  if (channel->in_len > 0)
    fail ("expected nothing between the end of the plain text and TLS, "
          "got %zu bytes",
          channel->in_len);
  channel->tls = tls_new (channel->fd, target->uri, max_version);
  while ((r = tls_shake_hands (channel->tls)) == -EAGAIN)
    wait_for (channel, tls_wanted (channel->tls), "the TLS handshake");
  trace ("-- TLS handshake: %s",
         r < 0 ? tls_why (channel->tls) : tls_version (channel->tls));
  return r == 0;
}

/* Returns bytes received, 0 at the end, or -EAGAIN. */
static ssize_t
receive_now (struct channel *channel, void *data, size_t len)
{
  ssize_t n;

  if (channel->tls)
    return tls_recv (channel->tls, data, len);
  do
    n = recv (channel->fd, data, len, 0);
  while (n < 0 && errno == EINTR);
  if (n < 0)
    return errno == EAGAIN ? -EAGAIN : 0; /* A reset is an end, too. */
  return n;
}

static void
make_room (struct channel *channel)
{
  const size_t end = channel->in_start + channel->in_len;

  if (channel->in_start > 0 && channel->in_len == 0)
    channel->in_start = 0;
  else if (channel->in_size - end < READ_SIZE) {
    if (channel->in_len > MAX_WAITING)
      fail ("the server floods us: %zu bytes nobody asked for",
            channel->in_len);
    channel->in_size = 2 * channel->in_size + READ_SIZE;
    channel->in = realloc (channel->in, channel->in_size);
    if (channel->in == NULL)
      fail ("out of memory");
  }
}

/* Take in what has arrived. */
static void
absorb (struct channel *channel)
{
  ssize_t n;

  while (!channel->has_ended) {
    make_room (channel);
    n = receive_now (channel,
                     channel->in + channel->in_start + channel->in_len,
                     READ_SIZE);
    if (n == -EAGAIN)
      break;
    channel->has_ended = n == 0;
    channel->in_len += (size_t) n;
  }
}

/* Returns bytes sent, -EAGAIN, or another negative errno. */
static ssize_t
send_now (struct channel *channel, const void *data, size_t len)
{
  ssize_t n;

  if (channel->tls)
    return tls_send (channel->tls, data, len);
  n = send (channel->fd, data, len, MSG_NOSIGNAL);
  return n < 0 ? -errno : n;
}

void
channel_send (struct channel *channel, const void *data, size_t len)
{
  const uint8_t *p = data;

  while (len > 0 && !channel->is_refused) {
    const ssize_t n = send_now (channel, p, len);

    if (n == -EAGAIN) {
      const short events =
        channel->has_ended ? POLLOUT : (POLLIN | POLLOUT);

      if (wait_for (channel, events, "the server to read on") & POLLIN)
        absorb (channel);
    }
    else if (n == -EPIPE || n == -ECONNRESET)
      channel->is_refused = true;
    else if (n < 0 && n != -EINTR)
      fail ("send: %s", strerror ((int) -n));
    else if (n > 0) {
      p += n;
      len -= (size_t) n;
    }
  }
}

void
channel_send_slowly (struct channel *channel, const void *data, size_t len)
{
  const struct timespec pause = { .tv_nsec = SLOW_PAUSE_NS };
  const uint8_t *p = data;

  for (size_t i = 0; i < len; i++) {
    channel_send (channel, p + i, 1);
    nanosleep (&pause, NULL);
  }
}

size_t
channel_recv_some (struct channel *channel, void *data, size_t len,
                   const char *what)
{
  uint8_t *p = data;
  size_t have = 0;

  while (have < len) {
    const size_t n = MIN (len - have, channel->in_len);

    if (n > 0)
      memcpy (p + have, channel->in + channel->in_start, n);
    channel->in_start += n;
    channel->in_len -= n;
    have += n;
    if (have == len || channel->has_ended)
      break;
    absorb (channel);
    if (channel->in_len == 0 && !channel->has_ended)
      wait_for (channel, channel->tls ? tls_wanted (channel->tls) : POLLIN,
                what);
  }
  return have;
}

bool
channel_recv_or_end (struct channel *channel, void *data, size_t len,
                     const char *what)
{
  const size_t have = channel_recv_some (channel, data, len, what);

  if (have > 0 && have < len)
    fail ("expected %zu bytes of %s, got %zu and the end of the connection",
          len, what, have);
  if (have < len)
    trace ("<- the end of the connection");
  return have == len;
}

void
channel_recv (struct channel *channel, void *data, size_t len,
              const char *what)
{
  if (!channel_recv_or_end (channel, data, len, what) && len > 0)
    fail ("expected %s, got the end of the connection", what);
}

void
channel_expect_end (struct channel *channel, const char *what)
{
  uint8_t byte;

  if (channel_recv_some (channel, &byte, 1, what) > 0)
    fail ("expected %s, got %zu bytes or more, the first 0x%02x", what,
          1 + channel->in_len, byte);
  trace ("<- the end of the connection");
}

void
channel_drain (struct channel *channel, const char *what)
{
  uint8_t bytes[4096];

  while (channel_recv_some (channel, bytes, sizeof bytes, what) > 0)
    ;
  trace ("<- the end of the connection");
}

void
channel_close (struct channel *channel)
{
  trace ("-> the end of the connection");
  close (channel->fd);
  channel->fd = -1;
}
