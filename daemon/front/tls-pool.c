/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Buffers of a loop's TLS streams: the one used last is the next to be
 * taken, since it is in the CPU's cache.
 */
#include <config.h>

#include <stdlib.h>

#include "daemon/front/tls.h"

struct tls_buffer *
tls_pool_take (struct tls_pool *pool)
{
  struct tls_buffer *buffer = pool->spare;

  if (buffer) {
    pool->spare = buffer->next;
    pool->nr_spare--;
  }
  else
    buffer = malloc (sizeof *buffer);
  if (buffer)
    buffer->start = buffer->end = 0;
  return buffer;
}

void
tls_pool_give (struct tls_pool *pool, struct tls_buffer *buffer)
{
  if (pool->nr_spare == TLS_MAX_SPARE) {
    free (buffer);
    return;
  }
  buffer->next = pool->spare;
  pool->spare = buffer;
  pool->nr_spare++;
}

void
tls_pool_done (struct tls_pool *pool)
{
  struct tls_buffer *buffer;

  while ((buffer = pool->spare) != NULL) {
    pool->spare = buffer->next;
    free (buffer);
  }
  pool->nr_spare = 0;
}
