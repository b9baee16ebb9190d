/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What requests must be answered with by the front over the fake pager's
 * export "corrupt".  Every answer belongs to a request, has the error that
 * this one must have, and says what is so; none is left out.
 *
 * Each request has a cookie of its own.  A mistake of the server ends the
 * process (fuzz.h).
 */
#ifndef BP_FUZZ_NBD_MODEL_H
#define BP_FUZZ_NBD_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/front/nbd-protocol.h"

enum {
  NBD_MODEL_MAX_REQUESTS = 4096,
  NBD_MODEL_MAX_BYTES = 40 << 20, /* That all reads may ask for. */
};

/* A request that has not been answered, or not all. */
struct expected {
  uint8_t cookie[NBD_COOKIE_SIZE];
  uint16_t flags;
  uint16_t type;
  uint64_t offset;
  uint32_t len;
  uint32_t error; /* NBD_SUCCESS, or what the answer must say. */

  /* Of the chunks that have come: */
  uint32_t received;  /* Bytes of content. */
  uint64_t seams;     /* The starts of content less its ends, each
                         scrambled: what covers a range once, cancels. */
  unsigned nr_pieces; /* Chunks of content. */
  unsigned contexts;  /* Bits of the maps that have come. */
  bool has_failed;    /* There was an error. */
};

struct nbd_model {
  bool is_structured;
  unsigned contexts; /* That are set: bits, by enum map_kind. */
  struct expected expected[NBD_MODEL_MAX_REQUESTS];
  size_t nr_expected;
  bool is_whole; /* They are framed and end in DISC. */
};

/* A range of the image, of which bytes come next. */
struct content {
  uint64_t offset;
  uint32_t len;
};

/* What SIZE bytes of requests ask for; to be called once, on a model that
 * is zero but for its first two fields.  Returns false if that is more
 * than a model takes.
 */
bool nbd_model_requests (struct nbd_model *model, const uint8_t *data,
                         size_t size);

/* A simple reply, NBD_SIMPLE_REPLY_SIZE bytes.  Returns the bytes that
 * follow it.
 */
struct content nbd_model_reply (struct nbd_model *model,
                                const uint8_t *header);

/* How much of the payload of a chunk nbd_model_chunk needs: all of it, but
 * of data only the offset.  HEADER has NBD_CHUNK_HEADER_SIZE bytes.
 */
uint32_t nbd_model_head (const uint8_t *header);

/* A chunk with that much of its payload.  Returns the bytes that follow. */
struct content nbd_model_chunk (struct nbd_model *model,
                                const uint8_t *chunk);

#endif /* BP_FUZZ_NBD_MODEL_H */
