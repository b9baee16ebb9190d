/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The broken server's socket. */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "conform/broken.h"
#include "lib/base/range.h"

enum {
  BUFFER = 65536,
};

void
client_leave (void)
{
  _exit (0);
}

void
client_is_lost (struct client *client)
{
  if (has_bug (client->is_transmitting ? BUG_LOST_REQUEST_ENDS_ALL
                                       : BUG_LOST_CLIENT_ENDS_ALL))
    kill (client->server, SIGKILL);
  client_leave ();
}

/* What arrives together is thrown away together. */
static void
recv_and_drop (struct client *client, void *data, size_t len)
{
  static uint8_t buffer[BUFFER];
  ssize_t n;

  for (size_t have = 0; have < len; have += MIN (len - have, (size_t) n)) {
    n = recv (client->fd, buffer, sizeof buffer, 0);
    if (n <= 0)
      client_leave ();
    memcpy ((uint8_t *) data + have, buffer, MIN (len - have, (size_t) n));
  }
}

static ssize_t
recv_some (struct client *client, void *data, size_t len)
{
  if (client->ssl)
    return SSL_read (client->ssl, data, (int) len);
  return recv (client->fd, data, len, 0);
}

static ssize_t
send_some (struct client *client, const void *data, size_t len)
{
  if (client->ssl)
    return SSL_write (client->ssl, data, (int) len);
  return send (client->fd, data, len, MSG_NOSIGNAL);
}

void
client_recv (struct client *client, void *data, size_t len)
{
  size_t have = 0;

  if (has_bug (BUG_DROPS_BUFFERED)) {
    recv_and_drop (client, data, len);
    return;
  }
  while (have < len) {
    const ssize_t n =
      recv_some (client, (uint8_t *) data + have, len - have);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      client_is_lost (client);
    have += (size_t) n;
    if (has_bug (BUG_SHORT_READS))
      return;
  }
}

void
client_skip (struct client *client, uint64_t len)
{
  static uint8_t buffer[BUFFER];

  while (len > 0) {
    const size_t n = MIN (len, sizeof buffer);

    client_recv (client, buffer, n);
    len -= n;
  }
}

void
client_send (struct client *client, const void *data, size_t len)
{
  const uint8_t *p = data;

  while (len > 0) {
    const ssize_t n = send_some (client, p, len);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      if (has_bug (BUG_UNREAD_REPLIES_END_ALL))
        kill (client->server, SIGKILL);
      client_is_lost (client);
    }
    p += n;
    len -= (size_t) n;
  }
}

ssize_t
client_peek (struct client *client, void *data, size_t len)
{
  if (client->ssl)
    return -1;
  return recv (client->fd, data, len, MSG_PEEK | MSG_DONTWAIT);
}
