/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The client's end of TLS, on a socket that does not block.
 *
 * The server's certificate is not verified: this is a test of what the
 * server says, not of who it is.  A client certificate
 * (tls-certificates=DIR with client-cert.pem and client-key.pem) or a
 * pre-shared key (tls-psk-file=FILE of USER:HEX) is used if the URI names
 * one; without any, anonymous key exchange is offered, too.
 */
#ifndef BP_CONFORM_TLS_H
#define BP_CONFORM_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls;
struct uri;

/* Fails the check if what the URI names cannot be used. */
struct tls *tls_new (int fd, const struct uri *uri, int max_version);

/* Returns 0, -EAGAIN, or -EPROTO; then tls_why says why. */
int tls_shake_hands (struct tls *tls);

/* Return bytes, 0 at the end, or -EAGAIN; tls_send also -EPIPE. */
ssize_t tls_recv (struct tls *tls, void *data, size_t len);
ssize_t tls_send (struct tls *tls, const void *data, size_t len);

/* What poll must wait for after -EAGAIN. */
short tls_wanted (const struct tls *tls);

const char *tls_why (const struct tls *tls);
const char *tls_version (const struct tls *tls);

/* Did the server close TLS before it closed the connection? */
bool tls_was_closed (const struct tls *tls);

#endif /* BP_CONFORM_TLS_H */
