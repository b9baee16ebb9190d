/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The bytes of a reply: what its request and the pager's answer make of
 * it.  Nothing is kept of them: a reply that the socket took a part of is
 * laid out again from there.
 *
 *   simple    header 16, the bytes of a read
 *   whole     data header 28, all bytes                         (DF)
 *   chunks    [data header 28, a run of bytes | hole 32] ...
 *             [error chunk]
 *   encoded   as reply_add_chunk was told
 *
 * A reply or a chunk without content is its header alone.
 */
#ifndef BP_REPLY_LAYOUT_H
#define BP_REPLY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct request;

enum {
  GATHER_MAX_IOV = 1024,         /* What one sendmsg takes. */
  GATHER_MAX_BYTES = 1 << 20,    /* More than a socket takes at once. */
  GATHER_HEADER_BYTES = 32 << 10 /* Of headers. */
};

/* Where a batch of replies is put together. */
struct gather_space {
  struct iovec iov[GATHER_MAX_IOV];
  uint8_t headers[GATHER_HEADER_BYTES];
};

/* A batch that grows.  Points into SPACE and into the cache. */
struct gather {
  struct gather_space *space;
  size_t count;       /* Of iov. */
  size_t headers_len; /* Of headers. */
  size_t bytes;       /* Gathered. */
  uint64_t skip;      /* Bytes that come next and are not gathered. */
};

/* No more fits. */
bool gather_is_full (const struct gather *gather);

/* Gather what is left to send of REQUEST.  Returns true if the reply after
 * it may follow: all of this one is gathered.
 */
bool gather_reply (struct gather *gather, const struct request *request);

/* Bytes of the whole reply. */
uint64_t reply_size (const struct request *request);

/* Where in it that ends which can be sent now; once it is queued. */
uint64_t reply_end (const struct request *request);

/* True if the reply is a header and then the LEN bytes that were asked
 * for, of which any part may be read for itself.
 */
bool reply_is_stream (const struct request *request);

/* Bytes of the header of a stream. */
size_t reply_header_size (const struct request *request);

#endif /* BP_REPLY_LAYOUT_H */
