/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Bytes to the server and back, plain or over TLS.
 *
 * Nothing here knows NBD.  Everything ends by the check's deadline, which
 * fails the check with what was being waited for.  Sending takes in what
 * arrives meanwhile, so that a server that answers before it reads on is
 * never in a deadlock with us.  That the server has closed the connection
 * is no failure while we send: the next receive says so, after what came
 * before the end.
 */
#ifndef BP_CONFORM_CHANNEL_H
#define BP_CONFORM_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target;
struct tls;

struct channel {
  int fd;
  struct tls *tls; /* NULL: plain. */
  uint8_t *in;     /* Received and not taken: in_len bytes at in_start. */
  size_t in_start, in_len, in_size;
  bool has_ended;  /* Nothing more comes. */
  bool is_refused; /* Nothing more can be sent. */
};

/* Connect to TARGET, or fail. */
void channel_open (struct channel *channel, const struct target *target);

/* Go on with TLS; returns false if its handshake fails.  MAX_VERSION is
 * 0, or the highest that may be negotiated, as OpenSSL numbers it.
 */
bool channel_start_tls (struct channel *channel, const struct target *target,
                        int max_version);

void channel_send (struct channel *channel, const void *data, size_t len);

/* One byte at a time, each a packet of its own. */
void channel_send_slowly (struct channel *channel, const void *data,
                          size_t len);

/* Receive LEN bytes, or fewer at the end of the connection.  WHAT is for
 * people: what is being waited for.
 */
size_t channel_recv_some (struct channel *channel, void *data, size_t len,
                          const char *what);

/* Receive LEN bytes; a connection that ends before is a failure. */
void channel_recv (struct channel *channel, void *data, size_t len,
                   const char *what);

/* The same, but returns false if it ends before the first of them. */
bool channel_recv_or_end (struct channel *channel, void *data, size_t len,
                          const char *what);

/* Wait until the server closes; bytes before that are a failure. */
void channel_expect_end (struct channel *channel, const char *what);

/* Wait until it closes, whatever comes before that. */
void channel_drain (struct channel *channel, const char *what);

void channel_close (struct channel *channel);

#endif /* BP_CONFORM_CHANNEL_H */
