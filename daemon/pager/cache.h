/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The cache: windows of blobs, by root.
 *
 *              cache_wait                 verified
 *    ABSENT ───────────────▶ FETCHING ───────────────▶ VERIFIED
 *      ▲                      │    ▲                      │ evicted
 *      │ nobody wants it      │    │ wanted again,        ▼
 *      └──────────────────────┤    │ a second later      GONE
 *                             ▼    │
 *                            FAILED
 *
 * A window is found in a sharded hash by (root, offset, size of the
 * blob): a size is a claim until the window is verified, so two claims
 * are two windows, and only the true one is ever verified.  Whoever looks
 * at a window holds a reference; the cache holds one for each window in
 * the hash.  Only a verified window that nobody else holds is evicted: its
 * references go from the hash's and its pins' to 0 in one step, after
 * which nobody can take one.
 *
 * Memory: everything that grows with use is charged to the budget before
 * it is used.  A window's bytes are reserved before its fetch is sent:
 * cached + in flight + held by replies + pinned <= budget.  Who asks
 * decides what may be pushed out (enum claim).
 *
 * Locks, in this order; nothing is called back with one held:
 *   cache->lock   queues, arena, pins, who waits for memory
 *   shard->lock   changes of a hash chain, state, waiters
 * A hit takes no lock, neither to find a window nor to let it go.
 */
#ifndef BP_CACHE_H
#define BP_CACHE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/merkle.h"
#include "daemon/pager/arena.h"
#include "daemon/pager/fetcher.h"
#include "daemon/pager/ghost.h"
#include "daemon/pager/window-pool.h"

enum {
  CACHE_LINE = 64, /* Bytes that cores pass between them as one. */
  CACHE_SHARDS = 64,
  CACHE_MEMORY_NS = 1000000000, /* How long a bad window is remembered. */
  CACHE_MAX_FAILED = 1024,      /* Bad windows remembered at once. */
};

enum window_state {
  WINDOW_ABSENT,
  WINDOW_FETCHING,
  WINDOW_VERIFIED,
  WINDOW_FAILED,
  WINDOW_GONE, /* Out of the hash, without a reference. */
};

/* What a window found out when it was used as part of an image index. */
enum window_check {
  CHECK_NONE,
  CHECK_PASSED,
  CHECK_FAILED,
};

/* On whose behalf a window is fetched. */
enum claim {
  CLAIM_DEMAND, /* A client waits: pushes out anything that nobody holds,
                   pinned windows last. */
  CLAIM_AHEAD,  /* A client may ask soon: what is cold, and only a little
                   in flight at a time. */
  CLAIM_REPLAY, /* For a pin set: what is cold, within the pin share. */
};

/* Where a window is linked.  Under cache->lock. */
enum window_queue {
  QUEUE_NONE,
  QUEUE_YOUNG,  /* Came lately; touches do not count yet. */
  QUEUE_OLD,    /* Touched while here: goes to main, else it is evicted. */
  QUEUE_MAIN,   /* The hot set. */
  QUEUE_PINNED, /* By at least one pin set. */
  QUEUE_FAILED, /* Remembered failures, oldest last. */
  NR_QUEUES,
};

struct page_in;
struct pin;
struct waiter;
struct blob_use;

/* A struct stays one for good (window-pool.h).  Who looks for a window
 * without a lock reads only what comes first, until it has taken a
 * reference; then all of it is that of one window.
 */
struct window {
  struct window *_Atomic hash_next; /* Written under the shard lock. */
  _Atomic uint64_t hash;            /* Of root and offset. */
  /* 0: nobody refers to it, and nobody can begin to.  The release when it
   * has been filled in pairs with the acquire of who takes one; want.c
   * says how who frees meets who waits.
   */
  _Atomic uint32_t refs;
  /* enum window_state; written under the shard lock, the release pairs
   * with acquires of readers that hold a reference.
   */
  _Atomic uint8_t state;
  /* Relaxed flags: hints, or results that any thread would repeat. */
  _Atomic uint8_t touched; /* Read by a client since last looked at. */
  _Atomic uint8_t served;  /* Read by a client since it was fetched. */
  _Atomic uint8_t late;    /* A client wanted it while it was under way
                              for a replay. */
  _Atomic uint8_t marker;  /* A reader that gets here wants more ahead. */
  _Atomic uint8_t checked; /* enum window_check; release and acquire. */

  /* Fixed while there is a reference. */
  struct bp_root root;
  uint64_t offset;       /* Bytes in the blob. */
  uint64_t blob_size;    /* Bytes; a claim until verified. */
  uint32_t len;          /* Bytes of the window. */
  struct blob_use *blob; /* Of a blob of several windows; else NULL. */

  uint8_t *data; /* Set while FETCHING, by whoever reserved; read by all
                    once VERIFIED. */

  /* Under the shard lock. */
  struct waiter *waiters;
  struct page_in *replay; /* Its fetch, if that can be promoted. */
  uint8_t claim;          /* enum claim of the fetch under way. */
  bool last_of_blob;      /* Left the hash as the last of its blob. */
  int failed_status;
  uint64_t failed_ns;

  /* Under cache->lock. */
  struct window *prev;
  struct window *next; /* While it is in no queue: in the list of those
                          gone, or the pool's. */
  uint8_t queue;       /* enum window_queue. */
  bool is_early;       /* It left the young queue before its reader came. */
  struct pin *pins;
  uint32_t nr_pins; /* Each with a reference. */

  /* Of whoever moved it to FETCHING, until its fetch is sent. */
  struct window *batch_next;    /* In a fetch_batch, or in line. */
  struct page_user *batch_user; /* A reference, while it stands in line. */
} __attribute__ ((aligned (CACHE_LINE)));

/* Somebody who waits for a window to leave FETCHING. */
struct waiter {
  struct waiter *next;
  struct window *window; /* A reference of the waiter's. */
  /* Called once, no lock held.  STATUS: 0 (verified) or what failed. */
  void (*wake) (struct waiter *waiter, int status);
};

/* A fetch_user that lives until the last fetch for it is done. */
struct page_user {
  struct fetcher *fetcher;
  struct fetch_user *user;
  _Atomic uint32_t refs;
};

struct window_list {
  struct window *head;
  struct window *tail;
  uint64_t bytes; /* Of window memory. */
  uint32_t count;
};

struct cache_shard {
  pthread_mutex_t lock;
} __attribute__ ((aligned (CACHE_LINE)));

struct cache {
  /* Fixed. */
  struct fetcher *fetcher;
  uint64_t budget; /* Bytes. */
  /* Of the hash: chains cannot be made long by choosing blobs. */
  uint64_t seed[2];
  struct window *_Atomic *buckets; /* Heads of the chains; bucket b belongs
                                      to shard b % CACHE_SHARDS. */
  uint64_t bucket_mask;
  /* Read by every read that ends, seldom written. */
  _Atomic uint32_t line_count; /* Windows from line_head on. */

  struct cache_shard shards[CACHE_SHARDS];

  _Atomic uint64_t used; /* Bytes charged; window memory included. */
  struct window_pool pool;

  pthread_mutex_t lock;
  struct arena *arena;
  struct ghost_table ghosts;
  struct window_list queues[NR_QUEUES];
  uint64_t pinned_bytes;
  uint64_t ahead_bytes;     /* In flight for CLAIM_AHEAD. */
  struct window *gone;      /* Evicted, the fetcher not yet told. */
  struct window *line_head; /* FETCHING, waiting for memory. */
  struct window *line_tail;

  pthread_mutex_t blobs_lock; /* A leaf: taken under a shard lock. */
  struct blob_use **blobs;

  pthread_mutex_t idle_lock; /* A leaf. */
  pthread_cond_t idle;
  uint64_t in_flight; /* Fetches submitted and not yet back. */
};

/* Windows that are to be fetched together, first wanted first. */
struct fetch_batch {
  struct page_user *user; /* Borrowed until cache_submit, or NULL. */
  struct window *head;
  struct window *tail;
};

/* ---- cache-life.c ---- */

int cache_new (struct cache **ret_cache, uint64_t budget,
               struct fetcher *fetcher);
/* Wait for the fetches under way, and for what they call back. */
void cache_wait_idle (struct cache *cache);
/* It is idle, and nobody holds a window any more. */
void cache_free (struct cache *cache);

/* Count BYTES of anything that grows with use. */
void cache_charge (struct cache *cache, uint64_t bytes);
void cache_uncharge (struct cache *cache, uint64_t bytes);

/* ---- cache.c: finding and holding ---- */

/* A reference to the window that holds OFFSET, if it is verified; else
 * NULL.  BLOB_SIZE 0: of whatever size the blob is.  Takes a lock only if
 * it is not verified.
 */
struct window *cache_find (struct cache *cache, const struct bp_root *root,
                           uint64_t offset, uint64_t blob_size);

/* The state of the window that holds OFFSET, which may have changed since;
 * WINDOW_ABSENT if there is none.  Nothing is made, held or touched.
 */
enum window_state cache_peek (struct cache *cache,
                              const struct bp_root *root, uint64_t offset,
                              uint64_t blob_size);

/* A reference to the window that holds OFFSET (inside the blob), in
 * whatever state, made if there is none; NULL if memory has run out.
 * Takes a lock only if it is not verified.
 */
struct window *cache_get (struct cache *cache, const struct bp_root *root,
                          uint64_t offset, uint64_t blob_size);

void window_ref (struct window *window);
void cache_put (struct cache *cache, struct window *window);

/* Of root and offset.  A hint to who has no reference. */
static inline uint64_t
window_hash (const struct window *window)
{
  return atomic_load_explicit (&window->hash, memory_order_relaxed);
}

static inline enum window_state
window_get_state (const struct window *window)
{
  return (enum window_state) atomic_load_explicit (&window->state,
                                                   memory_order_acquire);
}

/* A client has read WINDOW. */
static inline void
window_touch (struct window *window)
{
  if (!atomic_load_explicit (&window->touched, memory_order_relaxed))
    atomic_store_explicit (&window->touched, 1, memory_order_relaxed);
  if (!atomic_load_explicit (&window->served, memory_order_relaxed))
    atomic_store_explicit (&window->served, 1, memory_order_relaxed);
}

/* Bytes of window memory: whole pages. */
uint64_t window_memory (const struct window *window);

/* For the other files of the cache. */
struct cache_shard *cache_shard_of (struct cache *cache,
                                    const struct window *window);
/* Take all COUNT references of WINDOW at once, if there are no others; so
 * it can leave the hash.  Called with the shard's lock held.
 */
bool window_freeze (struct window *window, uint32_t count);
/* Take WINDOW, which is frozen, out of the hash.  Called with the shard's
 * lock held.
 */
void cache_unlink (struct cache *cache, struct window *window);

/* ---- blob-use.c: how many windows of a large blob are in the hash ---- */

/* One more window of ROOT; NULL if memory has run out. */
struct blob_use *blob_use_get (struct cache *cache,
                               const struct bp_root *root);
/* One window less.  True if it was the last. */
bool blob_use_put (struct cache *cache, struct blob_use *blob);
int blob_uses_init (struct cache *cache);
void blob_uses_done (struct cache *cache);

/* ---- want.c: what is wanted, and the line for memory ---- */

/* Wait for WAITER->window on behalf of a client.  Returns 1: WAITER->wake
 * will be called; 0: verified already; or the remembered failure.  A
 * window that nobody fetches yet joins BATCH, which the caller submits.
 */
int cache_wait (struct cache *cache, struct waiter *waiter,
                struct fetch_batch *batch);

/* Put the window in BATCH for CLAIM_AHEAD, if it is absent. */
void cache_want_ahead (struct cache *cache, struct window *window,
                       struct fetch_batch *batch);

/* Reserve memory for what is in BATCH and send it.  What a client waits
 * for and finds no memory stands in line; the rest is forgotten.
 */
void cache_submit (struct cache *cache, struct fetch_batch *batch);

/* Memory may have become free: serve the line.  Cheap if it is empty. */
void cache_serve_line (struct cache *cache);

/* ---- page-in.c: fetching and publishing ---- */

/* Make the fetch of a window that is FETCHING and has its memory, for
 * USER; HOLD (or NULL) is kept until it is over.
 * NULL: memory has run out.
 */
struct page_in *page_in_new (struct cache *cache, struct window *window,
                             struct page_user *hold,
                             struct fetch_user *user,
                             enum fetch_class class);
/* A client waits for it now.  Called with the window's shard locked, so
 * that it cannot be over before.
 */
void page_in_promote (struct cache *cache, struct page_in *in);
/* Send COUNT of them. */
void page_in_submit (struct cache *cache, struct page_in *const *page_ins,
                     size_t count);

/* Send one that was made for FETCH_REPLAY. */
void page_in_submit_replay (struct cache *cache, struct page_in *in);

/* WINDOW leaves FETCHING: wake its waiters.  No lock held. */
void cache_publish (struct cache *cache, struct window *window, int status);

struct page_user *page_user_new (struct fetcher *fetcher);
void page_user_ref (struct page_user *user);
void page_user_unref (struct page_user *user);

/* ---- evict.c: queues and memory; called with cache->lock held ---- */

/* Memory for WINDOW, pushing others out as CLAIM allows; NULL if there is
 * none now.
 */
uint8_t *cache_reserve (struct cache *cache, struct window *window,
                        enum claim claim);
void cache_unreserve (struct cache *cache, uint8_t *data, uint32_t len);

void queue_remove (struct cache *cache, struct window *window);
void queue_add (struct cache *cache, struct window *window,
                enum window_queue queue);
/* A window has been verified: to its first queue. */
void queue_admit (struct cache *cache, struct window *window);
/* Remember a failure of a window in no queue, and forget old ones. */
void queue_failed (struct cache *cache, struct window *window);

/* No lock held: tell the fetcher which blobs have left. */
void cache_tell_gone (struct cache *cache);

#endif /* BP_CACHE_H */
