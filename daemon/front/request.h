/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Requests of the transmission phase, from parsing to the pager. */
#ifndef BP_REQUEST_H
#define BP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/front/loop.h"
#include "daemon/front/nbd-protocol.h"
#include "daemon/front/option-reply.h"
#include "daemon/pager/pager.h"

struct conn;
struct large_read;

/* Where a request is: in one of these lists of its connection.
 *
 *           request_start_read       complete
 *   parsed ────────────▶ reading ──────────────▶ replies ──▶ sent, freed
 *      │                    ▲                       │
 *      │ answered           │ the client reads on   │ the client does not
 *      │ at once            └─────── parked ◀───────┘ read
 *      └──────────────────────────────────────────▶ replies
 *
 * reading: the pager has op.
 * replies: ready to be sent; op is to be released if has_op.
 * parked: op has been released, or was never asked for, since the client
 *   had too much under way; it will be read.
 *
 * A write is in none of them while its payload is read over
 * (conn->refused).
 */

/* How a request is answered; reply-layout.h draws it. */
enum reply_form {
  REPLY_SIMPLE,
  REPLY_WHOLE,
  REPLY_CHUNKS,
  REPLY_ENCODED,
};

#define NO_OFFSET UINT64_MAX

/* Owned by the loop's thread; op is lent to the pager while in reading. */
struct request {
  struct read_op op;
  struct loop_work completed; /* Posted by op.complete. */
  TAILQ_ENTRY (request)
  entry;
  struct conn *conn;
  struct large_read *large; /* That it is a part of, or NULL. */
  struct export_map *map;   /* BLOCK_STATUS's, owned; or NULL. */
  enum reply_form form;
  bool has_op; /* op is the pager's, or complete. */
  bool is_read;
  bool is_last;                    /* Its last chunk ends the answer. */
  uint32_t error;                  /* NBD error of the reply; */
  const char *message;             /* why, for a person: a literal. */
  uint64_t bad_offset;             /* Where a read failed, or NO_OFFSET:
                                      the request was at fault. */
  uint64_t offset;                 /* Of a read: bytes in the export; */
  uint32_t len;                    /* bytes. */
  uint32_t op_start;               /* Bytes of the answer that precede op's. */
  uint64_t size;                   /* Bytes of the reply, once it is queued; */
  uint64_t sent;                   /* of these, on the wire. */
  uint8_t cookie[NBD_COOKIE_SIZE]; /* The client's. */
  struct out_buf encoded;          /* Of REPLY_ENCODED. */
};

TAILQ_HEAD (request_list, request);

/* ---- request.c ---- */

/* Handle the requests that the connection has received, as far as its
 * limits allow; sets conn->paused if they stopped it.  May close CONN.
 * Returns true if there were any.
 */
bool requests_parse (struct conn *conn);

/* The payload of conn->refused has been read over. */
void request_payload_skipped (struct conn *conn);

/* ---- request-life.c ---- */

/* A request of CONN with COOKIE, not yet in any list; NULL, and CONN is
 * closed, if there is no memory.
 */
struct request *request_new (struct conn *conn, const uint8_t *cookie);

/* The window of its connection lets REQUEST, a read, be under way, too; one
 * always may.
 */
bool request_fits (const struct request *request);

/* Ask the pager for LEN bytes of the answer from START on. */
void request_start_read (struct request *request, uint32_t start,
                         uint32_t len);

/* Have the pager fill request->map with LEN bytes from OFFSET on. */
void request_start_map (struct request *request, uint64_t offset,
                        uint32_t len);

/* Cancel what the pager has, free the rest.  Requests under way come
 * back through the loop.
 */
void requests_abandon (struct conn *conn);

/* REQUEST is answered or not wanted: let it go. */
void request_free (struct request *request);

/* Our codes as NBD errors, DESIGN's table; not for -ESHUTDOWN, which is
 * never answered.
 */
uint32_t nbd_errno (int status);

#endif /* BP_REQUEST_H */
