/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a TLS stream is made of, for tls-stream.c and tls-bio.c alone. */
#ifndef BP_TLS_STREAM_H
#define BP_TLS_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/ssl.h>

struct tls_buffer;
struct tls_pool;
struct transport;

/* Belongs to the loop's thread. */
struct tls_stream {
  SSL *ssl;
  struct tls_pool *pool;     /* Of the loop's thread. */
  struct tls_buffer *unsent; /* Or NULL: nothing is. */
  uint64_t nr_bytes;         /* Sent under the present key. */
  unsigned nr_recvs;         /* That the socket may be read in this call. */
  bool is_established;       /* The handshake is over. */
  bool has_ended;            /* The client has closed its socket. */
  bool is_ending;            /* We have said that nothing follows. */
  const char *why;           /* Nothing works any more, or NULL.  Static. */
};

/* What OpenSSL reads from and writes to for TRANSPORT (borrowed), whose
 * stream is there when it does; NULL: no memory.
 */
BIO *tls_bio_new (struct transport *transport);

#endif /* BP_TLS_STREAM_H */
