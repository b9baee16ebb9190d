/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Decompressors, kept for the next frame: last in, first out, so that the
 * warm one is used again.  More threads than FRAME_POOL_MAX_IDLE at once
 * each make one, and the surplus goes when it is given back.
 *
 * Decoding is bounded by the buffer: zstd writes into the LEN bytes it is
 * given, in one call, and keeps no history window of its own, whatever
 * the frame's header claims.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "lib/base/cleanup.h"
#include "lib/frame-pool.h"

void
frame_pool_init (struct frame_pool *pool)
{
  pthread_mutex_init (&pool->lock, NULL);
  pool->idle = NULL;
  pool->nr_idle = 0;
}

static void
free_lease (struct frame_lease *lease)
{
  ZSTD_freeDCtx (lease->ctx);
  free (lease);
}

void
frame_pool_done (struct frame_pool *pool)
{
  while (pool->idle) {
    struct frame_lease *lease = pool->idle;

    pool->idle = lease->next;
    free_lease (lease);
  }
  pthread_mutex_destroy (&pool->lock);
}

static struct frame_lease *
take_idle (struct frame_pool *pool)
{
  LOCKED (&pool->lock);
  struct frame_lease *lease = pool->idle;

  if (lease) {
    pool->idle = lease->next;
    pool->nr_idle--;
  }
  return lease;
}

struct frame_lease *
frame_pool_take (struct frame_pool *pool)
{
  struct frame_lease *lease = take_idle (pool);

  if (lease)
    return lease;
  lease = malloc (sizeof *lease);
  if (lease == NULL)
    return NULL;
  lease->ctx = ZSTD_createDCtx ();
  if (lease->ctx == NULL) {
    free (lease);
    return NULL;
  }
  return lease;
}

static bool
put_idle (struct frame_pool *pool, struct frame_lease *lease)
{
  LOCKED (&pool->lock);

  if (pool->nr_idle == FRAME_POOL_MAX_IDLE)
    return false;
  lease->next = pool->idle;
  pool->idle = lease;
  pool->nr_idle++;
  return true;
}

void
frame_pool_give (struct frame_pool *pool, struct frame_lease *lease)
{
  if (lease && !put_idle (pool, lease))
    free_lease (lease);
}

void
frame_decode (struct frame_lease *lease, const uint8_t *stored,
              size_t stored_len, uint8_t *out, size_t len)
{
  if (stored_len == len) {
    memmove (out, stored, len);
    return;
  }
  if (ZSTD_decompressDCtx (lease->ctx, out, len, stored, stored_len) != len)
    memset (out, 0, len);
}
