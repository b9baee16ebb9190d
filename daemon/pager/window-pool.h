/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Memory of window structs.
 *
 * A struct once made stays one until the cache goes: a thread that looks
 * for a window without a lock may come upon any struct that ever was in
 * the hash, and must find a struct window there, with the count of its
 * references.  So what is free waits to be used again, and is charged to
 * the budget all the while.  As a window's bytes are charged too, there
 * are never many more structs than the budget has pages.
 *
 *   slab ─▶ ▭▭▭▭▭▭▭▭   slab ─▶ ▭▭▭▭▭▭▭▭   free: ▭ ─▶ ▭ ─▶ …
 *
 * Threads: any.
 */
#ifndef BP_WINDOW_POOL_H
#define BP_WINDOW_POOL_H

#include <pthread.h>
#include <stdint.h>

struct window;
struct window_slab;

struct window_pool {
  pthread_mutex_t lock; /* A leaf: taken under a shard's lock. */
  struct window *free;  /* Linked by NEXT. */
  struct window_slab *slabs;
};

void window_pool_init (struct window_pool *pool);
void window_pool_done (struct window_pool *pool);

/* A struct that nobody refers to: zeros, or as it was given back; NULL if
 * memory has run out.  Bytes that are new go to *RET_GROWN.
 */
struct window *window_pool_take (struct window_pool *pool,
                                 uint64_t *ret_grown);

/* WINDOW is out of the hash and of every queue, and its references are 0
 * for good.
 */
void window_pool_give (struct window_pool *pool, struct window *window);

#endif /* BP_WINDOW_POOL_H */
