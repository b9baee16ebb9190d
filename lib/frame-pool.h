/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Decoding stored frames: a few decompressors with their buffers, handed
 * from thread to thread, since making one costs more than a frame.
 *
 * Threads: any; a lease belongs to the thread that took it.
 */
#ifndef BP_FRAME_POOL_H
#define BP_FRAME_POOL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/merkle.h"

enum {
  FRAME_POOL_MAX_IDLE = 16
};

/* A decompressor, and room for one window in both forms. */
struct frame_lease {
  struct frame_lease *next; /* The pool's list. */
  struct ZSTD_DCtx_s *ctx;
  uint8_t stored[BP_WINDOW_SIZE];
  uint8_t decoded[BP_WINDOW_SIZE];
};

/* Embedded in the store. */
struct frame_pool {
  pthread_mutex_t lock;     /* Protects the rest. */
  struct frame_lease *idle; /* Ready for use. */
  unsigned nr_idle;
};

void frame_pool_init (struct frame_pool *pool);
void frame_pool_done (struct frame_pool *pool);

/* NULL: out of memory. */
struct frame_lease *frame_pool_take (struct frame_pool *pool);
void frame_pool_give (struct frame_pool *pool, struct frame_lease *lease);

/* Decode STORED_LEN bytes at STORED into OUT, exactly LEN bytes, as zstd,
 * or raw if the lengths are equal.  A frame that does not decode to LEN
 * bytes gives zeros: the digest will say what is wrong with it.
 */
void frame_decode (struct frame_lease *lease, const uint8_t *stored,
                   size_t stored_len, uint8_t *out, size_t len);

#endif /* BP_FRAME_POOL_H */
