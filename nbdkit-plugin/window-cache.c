/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A fixed number of places, searched one by one; the least recently used
 * window that nobody holds makes room.  A window that finds no place is
 * freed when it is given back.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "nbdkit-plugin/window-cache.h"

struct window_cache {
  pthread_mutex_t lock; /* Protects everything below. */
  uint64_t tick;        /* Counts uses. */
  struct window *windows[WINDOW_CACHE_WINDOWS];
};

int
window_cache_new (struct window_cache **ret_cache)
{
  struct window_cache *cache = calloc (1, sizeof *cache);

  if (cache == NULL)
    return -ENOMEM;
  pthread_mutex_init (&cache->lock, NULL);
  *ret_cache = cache;
  return 0;
}

void
window_cache_free (struct window_cache *cache)
{
  if (cache == NULL)
    return;
  for (size_t i = 0; i < WINDOW_CACHE_WINDOWS; i++) {
    assert (cache->windows[i] == NULL || cache->windows[i]->refs == 0);
    free (cache->windows[i]);
  }
  pthread_mutex_destroy (&cache->lock);
  free (cache);
}

struct window *
window_cache_find (struct window_cache *cache, const struct bp_root *root,
                   uint64_t offset)
{
  LOCKED (&cache->lock);

  for (size_t i = 0; i < WINDOW_CACHE_WINDOWS; i++) {
    struct window *window = cache->windows[i];

    if (window && window->offset == offset &&
        bp_root_equal (&window->root, root)) {
      window->refs++;
      window->used = ++cache->tick;
      return window;
    }
  }
  return NULL;
}

/* An empty place or the least recently used window that nobody holds;
 * NULL if all are held.  Called with the lock held.
 */
static struct window **
find_place (struct window_cache *cache)
{
  struct window **place = NULL;

  for (size_t i = 0; i < WINDOW_CACHE_WINDOWS; i++) {
    struct window **candidate = &cache->windows[i];

    if (*candidate == NULL)
      return candidate;
    if ((*candidate)->refs == 0 &&
        (place == NULL || (*candidate)->used < (*place)->used))
      place = candidate;
  }
  return place;
}

static void
keep (struct window_cache *cache, struct window *window)
{
  CLEANUP_FREE struct window *evicted = NULL;
  LOCKED (&cache->lock);
  struct window **place = find_place (cache);

  window->used = ++cache->tick;
  if (place == NULL)
    return;
  evicted = *place;
  *place = window;
  window->is_kept = true;
}

int
window_cache_get (struct window_cache *cache, struct bp_blob *blob,
                  uint64_t offset, struct window **ret_window,
                  struct bp_error *err)
{
  const struct bp_blob_info *info = bp_blob_get_info (blob);
  CLEANUP_FREE struct window *window = NULL;
  size_t len;
  int r;

  *ret_window = window_cache_find (cache, &info->root, offset);
  if (*ret_window)
    return 0;

  len = (size_t) MIN (BP_WINDOW_SIZE, info->size - offset);
  window = malloc (sizeof *window + len);
  if (window == NULL)
    return bp_error_set (err, -ENOMEM, "window: %m");
  *window = (struct window){
    .root = info->root,
    .blob_size = info->size,
    .offset = offset,
    .len = len,
    .refs = 1,
  };
  r = bp_blob_read_verified (blob, window->data, len, offset, err);
  if (r < 0)
    return r;
  keep (cache, window);
  *ret_window = steal_ptr (&window);
  return 0;
}

void
window_cache_put (struct window_cache *cache, struct window *window)
{
  CLEANUP_FREE struct window *unwanted = NULL;

  if (window == NULL)
    return;
  LOCKED (&cache->lock);
  if (--window->refs == 0 && !window->is_kept)
    unwanted = window;
}

bool
window_is_checked (struct window_cache *cache, const struct window *window)
{
  LOCKED (&cache->lock);

  return window->is_checked;
}

void
window_set_checked (struct window_cache *cache, struct window *window)
{
  LOCKED (&cache->lock);

  window->is_checked = true;
}
