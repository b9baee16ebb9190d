/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Fetching windows, and publishing them.
 *
 * cache_wait moves an absent window to FETCHING and into a batch; many
 * who want it find it FETCHING and join its waiters, so there is one
 * fetch.  cache_submit reserves the memory of a batch and sends it; a
 * lane calls back with verified bytes, or with what failed; cache_publish
 * makes the state visible, files the window, and wakes the waiters, each
 * of which has held its reference since before.
 *
 *   batch ─▶ reserve ─▶ page_in ─▶ fetcher … done ─▶ publish ─▶ wake
 *              └─ no memory: stand in line until some becomes free
 *
 * The line is served in order, and whoever comes while it is not empty
 * stands at its end, so a large read cannot be starved by small ones.
 *
 * FETCHING owns one reference to the window, dropped by cache_publish.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "daemon/pager/cache.h"
#include "daemon/pager/pins.h"

enum {
  SUBMIT_BATCH = 128, /* Page-ins sent to the fetcher at a time. */
  PAGE_IN_OVERHEAD = 16,
};

/* A fetch under way.  Owns the memory until the window is published, or,
 * after a timeout, until the fetcher lets go of it.
 */
struct page_in {
  struct fetch fetch; /* First: the fetcher hands this back. */
  struct cache *cache;
  struct window *window;  /* FETCHING's reference. */
  struct page_user *hold; /* A reference, or NULL. */
  enum claim claim;
  _Atomic bool is_done;   /* Set before the window is published. */
  _Atomic unsigned parts; /* Who still needs this: done and retired, which
                             may overlap after a timeout; and the one who
                             sends it for a replay. */
};

/* ---- Users ---- */

struct page_user *
page_user_new (struct fetcher *fetcher)
{
  struct page_user *user = calloc (1, sizeof *user);

  if (user == NULL)
    return NULL;
  user->fetcher = fetcher;
  user->user = fetcher_user_new (fetcher);
  if (user->user == NULL) {
    free (user);
    return NULL;
  }
  atomic_init (&user->refs, 1);
  return user;
}

void
page_user_ref (struct page_user *user)
{
  if (user)
    atomic_fetch_add_explicit (&user->refs, 1, memory_order_relaxed);
}

void
page_user_unref (struct page_user *user)
{
  if (user == NULL || atomic_fetch_sub (&user->refs, 1) > 1)
    return;
  fetcher_user_free (user->fetcher, user->user);
  free (user);
}

/* ---- Publishing ---- */

/* Failures that a second try would not mend soon. */
static bool
is_remembered (int status)
{
  return status == -EBADMSG || status == -EPROTO || status == -ENOENT;
}

/* Called with cache->lock held.  Returns the window's waiters. */
static struct waiter *
set_state (struct cache *cache, struct window *window, int status)
{
  struct cache_shard *shard = cache_shard_of (cache, window);
  enum window_state state = WINDOW_VERIFIED;
  LOCKED (&shard->lock);

  if (status < 0) {
    state = is_remembered (status) ? WINDOW_FAILED : WINDOW_ABSENT;
    window->failed_status = status;
    window->failed_ns = now_ns ();
    window->data = NULL;
  }
  window->replay = NULL;
  atomic_store_explicit (&window->state, state, memory_order_release);
  return steal_ptr (&window->waiters);
}

/* WINDOW has left FETCHING: to the queue where it belongs, out of any
 * other.  Called with cache->lock held.
 */
static void
file_window (struct cache *cache, struct window *window)
{
  const enum window_state state = window_get_state (window);

  if (state == WINDOW_VERIFIED && window->queue == QUEUE_PINNED)
    return;
  queue_remove (cache, window);
  if (state == WINDOW_VERIFIED)
    queue_admit (cache, window);
  else if (state == WINDOW_FAILED)
    queue_failed (cache, window);
}

void
cache_publish (struct cache *cache, struct window *window, int status)
{
  struct waiter *waiter, *next;
  uint32_t nr_pins = 0;

  pthread_mutex_lock (&cache->lock);
  if (status < 0)
    nr_pins = pins_detach (cache, window, false);
  waiter = set_state (cache, window, status);
  file_window (cache, window);
  pthread_mutex_unlock (&cache->lock);

  for (; waiter; waiter = next) {
    next = waiter->next;
    waiter->wake (waiter, status);
  }
  for (; nr_pins > 0; nr_pins--)
    cache_put (cache, window);
  cache_put (cache, window);
  cache_tell_gone (cache);
  cache_serve_line (cache);
}

/* ---- Page-ins ---- */

static void
count_in_flight (struct cache *cache, int delta)
{
  LOCKED (&cache->idle_lock);

  cache->in_flight = cache->in_flight + (uint64_t) (int64_t) delta;
  if (cache->in_flight == 0)
    pthread_cond_broadcast (&cache->idle);
}

/* PARTS of it are over.  The cache may go right after the last one. */
static void
page_in_leave (struct page_in *in, unsigned parts)
{
  struct cache *cache = in->cache;

  if (atomic_fetch_sub (&in->parts, parts) > parts)
    return;
  page_user_unref (in->hold);
  free (in);
  cache_uncharge (cache, sizeof *in + PAGE_IN_OVERHEAD);
  count_in_flight (cache, -1);
}

static void
release_memory (struct page_in *in)
{
  struct cache *cache = in->cache;
  LOCKED (&cache->lock);

  cache_unreserve (cache, in->fetch.buf, in->fetch.len);
}

/* The fetcher lets go of memory that it kept after a timeout. */
static void
page_in_retired (struct fetch *fetch)
{
  struct page_in *in = (struct page_in *) fetch;

  release_memory (in);
  cache_serve_line (in->cache);
  page_in_leave (in, 1);
}

static void
page_in_done (struct fetch *fetch, int status)
{
  struct page_in *in = (struct page_in *) fetch;
  struct cache *cache = in->cache;
  struct window *window = in->window;
  const bool keeps_memory = status == -ETIMEDOUT;

  atomic_store (&in->is_done, true);
  if (in->claim == CLAIM_AHEAD) {
    pthread_mutex_lock (&cache->lock);
    cache->ahead_bytes -= window_memory (window);
    pthread_mutex_unlock (&cache->lock);
  }
  if (status < 0 && !keeps_memory)
    release_memory (in);
  cache_publish (cache, window, keeps_memory ? -EIO : status);
  page_in_leave (in, keeps_memory ? 1 : 2);
}

struct page_in *
page_in_new (struct cache *cache, struct window *window,
             struct page_user *hold, struct fetch_user *user,
             enum fetch_class class)
{
  struct page_in *in = calloc (1, sizeof *in);

  if (in == NULL)
    return NULL;
  cache_charge (cache, sizeof *in + PAGE_IN_OVERHEAD);
  in->cache = cache;
  in->window = window;
  in->hold = hold;
  page_user_ref (hold);
  in->claim = (enum claim) window->claim;
  atomic_init (&in->parts, 2);
  in->fetch.root = window->root;
  in->fetch.offset = window->offset;
  in->fetch.blob_size = window->blob_size;
  in->fetch.buf = window->data;
  in->fetch.len = window->len;
  in->fetch.class = class;
  in->fetch.user = user;
  in->fetch.done = page_in_done;
  in->fetch.retired = page_in_retired;
  count_in_flight (cache, 1);
  return in;
}

void
page_in_submit (struct cache *cache, struct page_in *const *page_ins,
                size_t count)
{
  struct fetch *fetches[SUBMIT_BATCH];
  size_t done, i, n;

  for (done = 0; done < count; done += n) {
    n = MIN (count - done, SUBMIT_BATCH);
    for (i = 0; i < n; i++)
      fetches[i] = &page_ins[done + i]->fetch;
    fetcher_submit (cache->fetcher, fetches, n);
  }
}

void
page_in_promote (struct cache *cache, struct page_in *in)
{
  fetcher_promote (cache->fetcher, &in->fetch);
}

void
page_in_submit_replay (struct cache *cache, struct page_in *in)
{
  struct window *window = in->window;
  struct cache_shard *shard = cache_shard_of (cache, window);

  window_ref (window);
  atomic_fetch_add (&in->parts, 1);
  page_in_submit (cache, &in, 1);

  /* Only now may it be promoted; a client may have joined before. */
  pthread_mutex_lock (&shard->lock);
  if (!atomic_load (&in->is_done)) {
    window->replay = in;
    if (window->claim == CLAIM_DEMAND)
      page_in_promote (cache, in);
  }
  pthread_mutex_unlock (&shard->lock);
  page_in_leave (in, 1);
  cache_put (cache, window);
}
