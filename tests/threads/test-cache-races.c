/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Windows are found, held and let go by some threads while others evict
 * them: whoever holds one has the bytes of its root, all the time.
 *
 * The windows are small and the budget is, so that structs and memory
 * come back as other windows' as often as can be.
 */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "daemon/metrics.h"
#include "daemon/pager/cache.h"
#include "tests/harness/check.h"
#include "tests/harness/fake-fetcher.h"
#include "tests/harness/pager-fixture.h"

enum {
  KIB = 1 << 10,
  BLOB = 4 * KIB,
  NR_BLOBS = 24,
  NR_THREADS = 4,
  NR_HELD = 2,       /* By each thread. */
  BUDGET = 88 * KIB, /* The tables, and some of the blobs. */
  NR_ROUNDS = 50000,
};

struct world {
  struct driver *driver;
  struct cache *cache;
  uint8_t *bytes;
  struct bp_root roots[NR_BLOBS];
};

/* A window that a thread holds; of blob I. */
struct holding {
  struct window *window;
  size_t i;
};

struct looker {
  pthread_t thread;
  struct world *world;
  uint64_t x; /* Random. */
  size_t nr_found;
  struct holding held[NR_HELD];
};

static void
world_init (struct world *world)
{
  size_t i;

  world->driver = fake_driver_new ();
  CHECK_EQ (cache_new (&world->cache, BUDGET,
                       driver_fetcher (world->driver)),
            0);
  world->bytes = image_bytes ((size_t) NR_BLOBS * BLOB, 77, false);
  for (i = 0; i < NR_BLOBS; i++)
    world->roots[i] =
      fake_add_blob (world->driver, world->bytes + i * BLOB, BLOB);
}

static void
world_done (struct world *world)
{
  cache_wait_idle (world->cache);
  cache_free (world->cache);
  fake_driver_free (world->driver);
  free (world->bytes);
}

/* ---- Waiting ---- */

struct blocked {
  struct waiter waiter; /* First. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_over;
};

static void
wake (struct waiter *waiter, int status)
{
  struct blocked *blocked = (struct blocked *) waiter;
  LOCKED (&blocked->lock);

  CHECK_EQ (status, 0);
  blocked->is_over = true;
  pthread_cond_signal (&blocked->changed);
}

/* A reference to the window of blob I, fetched if need be. */
static struct window *
fetch (struct world *world, size_t i)
{
  struct blocked blocked = { .waiter.wake = wake,
                             .lock = PTHREAD_MUTEX_INITIALIZER,
                             .changed = PTHREAD_COND_INITIALIZER };
  struct fetch_batch batch = { 0 };

  blocked.waiter.window =
    cache_get (world->cache, &world->roots[i], 0, BLOB);
  CHECK (blocked.waiter.window != NULL);
  if (cache_wait (world->cache, &blocked.waiter, &batch) == 1) {
    cache_submit (world->cache, &batch);
    pthread_mutex_lock (&blocked.lock);
    while (!blocked.is_over)
      pthread_cond_wait (&blocked.changed, &blocked.lock);
    pthread_mutex_unlock (&blocked.lock);
  }
  return blocked.waiter.window;
}

/* ---- Holding ---- */

static void
check_bytes (const struct world *world, const struct holding *holding)
{
  const struct window *window = holding->window;

  CHECK (bp_root_equal (&window->root, &world->roots[holding->i]));
  CHECK_EQ (window_get_state (window), WINDOW_VERIFIED);
  CHECK_EQ (memcmp (window->data, world->bytes + holding->i * BLOB, BLOB),
            0);
}

static void
let_go (struct world *world, struct holding *holding)
{
  if (holding->window == NULL)
    return;
  check_bytes (world, holding);
  cache_put (world->cache, holding->window);
  cache_serve_line (world->cache);
  holding->window = NULL;
}

static void *
look (void *opaque)
{
  struct looker *looker = opaque;
  struct world *world = looker->world;
  unsigned round, h;

  for (round = 0; round < NR_ROUNDS; round++) {
    struct holding *holding = &looker->held[round % NR_HELD];

    let_go (world, holding);
    looker->x = looker->x * UINT64_C (6364136223846793005) + 1;
    holding->i = (looker->x >> 33) % NR_BLOBS;
    holding->window =
      cache_find (world->cache, &world->roots[holding->i], 0, BLOB);
    if (holding->window)
      looker->nr_found++;
    else
      holding->window = fetch (world, holding->i);
    check_bytes (world, holding);
    CHECK (METRIC_GET (cache_used_bytes) <= BUDGET + 16 * KIB);
  }
  for (h = 0; h < NR_HELD; h++)
    let_go (world, &looker->held[h]);
  return NULL;
}

static void
what_is_held_keeps_its_bytes_while_others_evict (void)
{
  struct looker lookers[NR_THREADS];
  struct world world;
  size_t nr_found = 0;
  unsigned i;

  world_init (&world);
  for (i = 0; i < NR_THREADS; i++) {
    lookers[i] = (struct looker){ .world = &world, .x = i };
    CHECK_EQ (
      pthread_create (&lookers[i].thread, NULL, look, &lookers[i]), 0);
  }
  for (i = 0; i < NR_THREADS; i++) {
    pthread_join (lookers[i].thread, NULL);
    nr_found += lookers[i].nr_found;
  }
  fprintf (stderr, "  %zu found, %zu fetched, %zu evicted\n", nr_found,
           fake_fetches (world.driver, NULL),
           (size_t) METRIC_GET (cache_evictions));
  /* Both happened all the time. */
  CHECK (nr_found > NR_ROUNDS / 10);
  CHECK (METRIC_GET (cache_evictions) > NR_ROUNDS / 10);
  world_done (&world);
  CHECK_EQ (METRIC_GET (cache_used_bytes), 0);
}

int
main (void)
{
  RUN (what_is_held_keeps_its_bytes_while_others_evict);
  return 0;
}
