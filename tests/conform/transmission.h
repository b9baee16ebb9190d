/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Requests, and the replies that belong to them by their cookies.
 *
 * A reply is kept as it came: a simple reply's error and data, or the list
 * of chunks.  Only what would lose the framing, or belongs to no request,
 * fails here; the other rules are looked at by the checks (chunks.h).
 */
#ifndef BP_CONFORM_TRANSMISSION_H
#define BP_CONFORM_TRANSMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conform/data.h"
#include "conform/protocol.h"

struct session;

struct request {
  uint16_t flags;
  uint16_t type;
  uint64_t cookie;
  uint64_t offset;
  uint32_t len;
};

struct chunk {
  uint16_t flags;
  uint16_t type;
  uint32_t len;
  const uint8_t *data; /* The payload, len bytes. */
};

/* A request and what has come in reply. */
struct pending {
  struct pending *next;
  struct request request;
  bool is_done;
  bool is_simple;      /* Done by a simple reply. */
  uint32_t error;      /* Of that. */
  const uint8_t *data; /* Of that; request.len bytes if a READ succeeded. */
  struct chunk *chunks;
  unsigned nr_chunks;
};

/* A request with a cookie of its own. */
struct request make_request (struct session *session, uint16_t type,
                             uint16_t flags, uint64_t offset, uint32_t len);
struct request make_read (struct session *session, struct span span);

void encode_request (const struct request *request,
                     uint8_t wire[REQUEST_SIZE]);

/* Wait for a reply to REQUEST from now on, which the caller sends. */
struct pending *add_pending (struct session *session,
                             const struct request *request);

/* Send it, and wait for its reply from now on. */
struct pending *send_request (struct session *session,
                              struct request request);

/* Send a WRITE with LEN bytes of zeros behind it, at OFFSET. */
struct pending *send_write (struct session *session, uint64_t offset,
                            uint32_t len, uint16_t flags);

/* Receive one message.  Returns false if the connection has ended. */
bool recv_message (struct session *session);

/* Receive until the reply is complete; the end of the connection is a
 * failure, or false.
 */
void await_reply (struct session *session, struct pending *pending);
bool await_reply_or_end (struct session *session, struct pending *pending);

/* The error of a complete reply: of the first error chunk, if there are
 * chunks.
 */
uint32_t reply_error (const struct pending *pending);

/* The bytes of a successful READ; anything that keeps them from being
 * complete is a failure.
 */
const uint8_t *reply_bytes (const struct pending *pending);

/* READ SPAN and compare. */
void expect_read_succeeds (struct session *session, struct span span);

/* The connection must answer an ordinary request now, and nothing else may
 * come before that answer.
 */
void expect_requests_go_on (struct session *session, const char *after);

/* The reply must be an error, WANTED if the standard's SHOULD is kept, and
 * the connection must go on.  A server that closes it instead has not kept
 * the SHOULD.  Returns false if it did.
 */
bool expect_error (struct session *session, struct pending *pending,
                   uint32_t wanted, const char *what);

/* Something that a client should not ask, and a server should refuse with
 * NBD_EINVAL: whatever the reply is, or the end of the connection, only
 * breaks the SHOULD; but a connection that goes on must go on.
 */
void should_be_invalid (struct session *session, struct pending *pending,
                        const char *what);

/* "NBD_CMD_READ of 512 bytes at 0".  Good until the next call. */
const char *request_name (const struct request *request);

#endif /* BP_CONFORM_TRANSMISSION_H */
