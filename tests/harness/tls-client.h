/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* TLS for the front's test client, with pre-shared keys.
 *
 *   test ─▶ front-client.h ─▶ socket pair ─▶ relay ─▶ TLS ─▶ server
 *
 * A relay is a thread between a plain socket, which is the test's, and one
 * that speaks TLS: what front-client.h does, it does over TLS then.
 */
#ifndef BP_TEST_TLS_CLIENT_H
#define BP_TEST_TLS_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "harness/front-client.h"

#define TLS_TEST_USER "alice"
#define TLS_TEST_KEY "00112233445566778899aabbccddeeff"

/* What a client is like; zero: TLS as OpenSSL would have it, with the user
 * and the key above.
 */
struct tls_client {
  const char *user;
  const char *key;           /* Hexadecimal. */
  int version;               /* TLS1_2_VERSION or TLS1_3_VERSION. */
  const char *ciphers;       /* For TLS 1.2. */
  uint8_t max_fragment_code; /* TLSEXT_max_fragment_length_…. */
};

/* Write TEXT as the key file, whose path the server has read before or
 * will read now.
 */
void tls_test_write_keys (const char *text);

/* A server that reads the key file; it holds TLS_TEST_USER's key if it has
 * not been written yet.
 */
struct tls_server *tls_test_server (void);

/* Without its key file. */
void tls_test_remove_keys (void);

/* An SSL for FD, which is not taken over; the caller frees it. */
SSL *tls_client_new (int fd, const struct tls_client *client);

/* Send STARTTLS on FD, which has greeted, and expect that it is granted. */
void tls_client_start (int fd);

/* Take FD over and speak TLS on it.  Returns the plain end. */
int tls_client_relay (int fd, const struct tls_client *client);

/* Connect, greet, STARTTLS: returns the plain end of a relay. */
int tls_client_connect (const struct front_fixture *fixture,
                        const struct tls_client *client);

/* And attach to EXPORT. */
int tls_client_attach (const struct front_fixture *fixture,
                       const struct tls_client *client, const char *export);

/* Wait until all relays have ended. */
struct tls_relay_counts {
  unsigned running;
  unsigned notified; /* Ended with the server's close_notify, */
  unsigned cut;      /* without, or before the handshake was done. */
  unsigned rekeyed;  /* Times that the server has changed its key. */
};
struct tls_relay_counts tls_relays_wait (void);

#endif /* BP_TEST_TLS_CLIENT_H */
