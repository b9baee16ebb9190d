/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The memory of reads.
 *
 * A read of a few windows lives in one struct, taken from the pool of the
 * thread's slot and put back, so that a hot read allocates nothing.  A
 * large one gets arrays of its own for as long as it lasts.  All of it is
 * charged to the budget.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "daemon/options.h"
#include "daemon/pager/read.h"

enum {
  READ_POOLS_SHARE = 64, /* All pools: at most a 64th of the budget, */
  READ_POOL_MIN = 16,    /* but this many structs in each. */
};

#define PART_BYTES (sizeof (struct read_part) + sizeof (struct read_piece))

/* ---- Pools ---- */

void
read_pools_init (struct pager *pager)
{
  const uint64_t share =
    pager->options->cache_bytes / READ_POOLS_SHARE / THREAD_SLOTS;

  pager->read_pool_max =
    (unsigned) MAX (share / sizeof (struct read), READ_POOL_MIN);
}

void
read_pools_done (struct pager *pager)
{
  unsigned i;

  for (i = 0; i < THREAD_SLOTS; i++) {
    struct read_pool *pool = &pager->read_pools[i];

    while (pool->head) {
      struct read *read = pool->head;

      pool->head = read->pool_next;
      free (read);
      cache_uncharge (pager->cache, sizeof *read);
    }
  }
}

/* Have POOL to oneself, or do without it: nobody waits. */
static bool
enter_pool (struct read_pool *pool)
{
  return !atomic_exchange_explicit (&pool->is_in_use, true,
                                    memory_order_acquire);
}

static void
leave_pool (struct read_pool *pool)
{
  /* Pairs with the exchange of the next. */
  atomic_store_explicit (&pool->is_in_use, false, memory_order_release);
}

static struct read *
take_from_pool (struct read_pool *pool)
{
  struct read *read;

  if (!enter_pool (pool))
    return NULL;
  read = pool->head;
  if (read) {
    pool->head = read->pool_next;
    pool->count--;
  }
  leave_pool (pool);
  return read;
}

/* Back where it came from, whichever thread lets it go.  Returns false if
 * the pool is full or in use.
 */
static bool
put_in_pool (struct read *read)
{
  struct read_pool *pool = read->pool;
  bool has_room;

  if (!enter_pool (pool))
    return false;
  has_room = pool->count < read->pager->read_pool_max;
  if (has_room) {
    read->pool_next = pool->head;
    pool->head = read;
    pool->count++;
  }
  leave_pool (pool);
  return has_room;
}

/* ---- Reads ---- */

/* Most that a read can hold is its length and what windows stick out of
 * it at both ends.
 */
static uint64_t
first_charge (const struct read_op *op)
{
  return op->len + 2 * (uint64_t) BP_WINDOW_SIZE;
}

static void
set_up (struct read *read, struct pager *pager, struct read_op *op,
        bool quiet)
{
  read->pager = pager;
  read->export = op->export;
  read->op = op;
  read->offset = read->pos = op->offset;
  read->end = op->offset + op->len;
  read->is_quiet = quiet;
  read->map = NULL;
  read->is_watched = false;
  read->is_admitted = false;
  atomic_init (&read->refs, 2);
  atomic_init (&read->is_claimed, false);
  read->stall = STALL_NONE;
  read->phase = READ_PLAN;
  read->has_waited = false;
  read->view.pager = pager;
  read->view.export = op->export;
  read->view.nr_held = 0;
  read->view.awaited = NULL;
  read->view.wants_sent = false;
  read->index_slot.read = read;
  read->index_slot.waiter.window = NULL;
  read->failure = 0;
  read->around_from = read->around_to = 0;
  read->marked = UINT64_MAX;
  read->slots = read->inline_slots;
  read->parts = read->inline_parts;
  read->pieces = read->inline_pieces;
  read->touches = NULL;
  read->nr_slots = read->nr_parts = read->nr_touches = 0;
  read->max_slots = READ_INLINE_SLOTS;
  read->max_parts = READ_INLINE_PARTS;
  read->entry.charge = first_charge (op);
}

struct read *
read_new (struct pager *pager, struct read_op *op, bool quiet)
{
  struct read_pool *pool = &pager->read_pools[thread_slot ()];
  struct read *read = take_from_pool (pool);

  if (read == NULL) {
    read = malloc (sizeof *read);
    if (read == NULL)
      return NULL;
    cache_charge (pager->cache, sizeof *read);
  }
  read->pool = pool;
  set_up (read, pager, op, quiet);
  return read;
}

static void
free_arrays (struct read *read)
{
  struct cache *cache = read->pager->cache;

  if (read->slots != read->inline_slots) {
    free (read->slots);
    cache_uncharge (cache, read->max_slots * sizeof read->slots[0]);
  }
  if (read->parts != read->inline_parts) {
    free (read->parts);
    free (read->pieces);
    cache_uncharge (cache, read->max_parts * PART_BYTES);
  }
  if (read->touches) {
    free (read->touches);
    cache_uncharge (cache, read->nr_touches * sizeof read->touches[0]);
  }
}

/* Both owners are through with READ: let its windows go, which may make
 * room for others.
 */
static void
read_free (struct read *read)
{
  struct pager *pager = read->pager;
  struct admission_entry entry = read->entry;
  const bool was_admitted = read->is_admitted;
  uint32_t i;

  for (i = 0; i < read->nr_slots; i++)
    cache_put (pager->cache, read->slots[i].waiter.window);
  index_view_done (&read->view);
  free_arrays (read);
  map_work_free (pager, read->map);
  if (!put_in_pool (read)) {
    free (read);
    cache_uncharge (pager->cache, sizeof *read);
  }
  cache_serve_line (pager->cache);
  if (was_admitted)
    admission_leave (&pager->admission, &entry);
}

void
read_unref (struct read *read)
{
  /* The last one has nobody to reckon with. */
  if (atomic_load_explicit (&read->refs, memory_order_acquire) == 1 ||
      atomic_fetch_sub (&read->refs, 1) == 1)
    read_free (read);
}

/* ---- Arrays ---- */

int
read_grow_slots (struct read *read)
{
  const uint32_t max = 4 * read->max_slots;
  struct read_slot *slots;

  slots = malloc (max * sizeof slots[0]);
  if (slots == NULL)
    return -ENOMEM;
  cache_charge (read->pager->cache, max * sizeof slots[0]);
  memcpy (slots, read->slots, read->nr_slots * sizeof slots[0]);
  if (read->slots != read->inline_slots) {
    cache_uncharge (read->pager->cache,
                    read->max_slots * sizeof slots[0]);
    free (read->slots);
  }
  read->slots = slots;
  read->max_slots = max;
  return 0;
}

int
read_grow_parts (struct read *read)
{
  const uint32_t max = 4 * read->max_parts;
  CLEANUP_FREE struct read_part *parts = malloc (max * sizeof parts[0]);
  CLEANUP_FREE struct read_piece *pieces = malloc (max * sizeof pieces[0]);

  if (parts == NULL || pieces == NULL)
    return -ENOMEM;
  cache_charge (read->pager->cache, max * PART_BYTES);
  memcpy (parts, read->parts, read->nr_parts * sizeof parts[0]);
  memcpy (pieces, read->pieces, read->nr_parts * sizeof pieces[0]);
  if (read->parts != read->inline_parts) {
    cache_uncharge (read->pager->cache, read->max_parts * PART_BYTES);
    free (read->parts);
    free (read->pieces);
  }
  read->parts = steal_ptr (&parts);
  read->pieces = steal_ptr (&pieces);
  read->max_parts = max;
  return 0;
}

/* The index windows first, then those of data. */
void
read_make_touches (struct read *read)
{
  const uint32_t count = read->view.nr_held + read->nr_slots;
  struct read_touch *touch;
  uint32_t i;

  if (count == 0)
    return;
  read->touches = malloc (count * sizeof read->touches[0]);
  if (read->touches == NULL)
    return;
  read->nr_touches = count;
  cache_charge (read->pager->cache, count * sizeof read->touches[0]);
  touch = read->touches;
  for (i = 0; i < read->view.nr_held; i++)
    *touch++ = (struct read_touch){ .window = read->view.held[i].window,
                                    .sent = read->view.held[i].sent,
                                    .warm = read->view.held[i].warm };
  for (i = 0; i < read->nr_slots; i++)
    *touch++ = (struct read_touch){ .window = read->slots[i].waiter.window,
                                    .sent = read->slots[i].sent,
                                    .warm = read->slots[i].warm };
}
