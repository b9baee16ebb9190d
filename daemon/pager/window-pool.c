/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Slabs of window structs. */
#include <config.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "daemon/pager/cache.h"
#include "daemon/pager/window-pool.h"

enum {
  SLAB_WINDOWS = 64,
};

struct window_slab {
  struct window_slab *next;
  struct window windows[SLAB_WINDOWS];
};

void
window_pool_init (struct window_pool *pool)
{
  pthread_mutex_init (&pool->lock, NULL);
  pool->free = NULL;
  pool->slabs = NULL;
}

void
window_pool_done (struct window_pool *pool)
{
  while (pool->slabs) {
    struct window_slab *slab = pool->slabs;

    pool->slabs = slab->next;
    free (slab);
  }
  pthread_mutex_destroy (&pool->lock);
}

/* Called with the lock held, as is the next. */
static void
push (struct window_pool *pool, struct window *window)
{
  window->next = pool->free;
  pool->free = window;
}

static int
grow (struct window_pool *pool)
{
  struct window_slab *slab =
    aligned_alloc (_Alignof(struct window_slab), sizeof *slab);
  unsigned i;

  if (slab == NULL)
    return -1;
  memset (slab, 0, sizeof *slab);
  slab->next = pool->slabs;
  pool->slabs = slab;
  for (i = SLAB_WINDOWS; i-- > 0;)
    push (pool, &slab->windows[i]);
  return 0;
}

struct window *
window_pool_take (struct window_pool *pool, uint64_t *ret_grown)
{
  LOCKED (&pool->lock);
  struct window *window;

  *ret_grown = 0;
  if (pool->free == NULL) {
    if (grow (pool) < 0)
      return NULL;
    *ret_grown = sizeof (struct window_slab);
  }
  window = pool->free;
  pool->free = window->next;
  return window;
}

void
window_pool_give (struct window_pool *pool, struct window *window)
{
  LOCKED (&pool->lock);

  assert (atomic_load_explicit (&window->refs, memory_order_relaxed) == 0);
  assert (window->queue == QUEUE_NONE);
  push (pool, window);
}
