/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The pager as a whole: its parts are made and ended here.
 *
 *   exports.c      names to exports       export-open.c  resolving one
 *   read.c         the life of a read     read-plan.c    what it needs
 *   read-ahead.c   what it may need next  prefetch.c     for replays
 *   cache.c        windows by root        want.c         who fetches
 *   page-in.c      fetches, publishing    evict.c        who gives way
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/options.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/read.h"

enum {
  NR_WORKERS = 4,  /* Names resolved at the same time. */
  REPLY_SHARE = 4, /* Unfinished replies: a quarter of the budget. */
};

int
pager_new (struct pager **ret_pager, const struct options *options,
           struct driver *driver, struct bp_error *err)
{
  struct pager *pager = aligned_alloc (_Alignof(struct pager),
                                       sizeof *pager);
  int r;

  if (pager == NULL)
    return bp_error_set (err, -ENOMEM, "pager: out of memory");
  memset (pager, 0, sizeof *pager);
  pager->options = options;
  pager->driver = driver;
  pager->fetcher = driver_fetcher (driver);
  pthread_mutex_init (&pager->exports_lock, NULL);
  admission_init (&pager->admission, options->cache_bytes / REPLY_SHARE);
  read_pools_init (pager);
  r = cache_new (&pager->cache, options->cache_bytes, pager->fetcher);
  if (r == 0)
    r = workers_new (&pager->workers, NR_WORKERS);
  if (r < 0) {
    pager_free (pager);
    return bp_error_set (err, r, "pager: %m");
  }
  *ret_pager = pager;
  return 0;
}

void
pager_free (struct pager *pager)
{
  if (pager == NULL)
    return;
  workers_free (pager->workers);
  if (pager->cache)
    cache_wait_idle (pager->cache);
  while (pager->exports) {
    struct export *export = pager->exports;

    pager->exports = export->next;
    export_free (export);
  }
  if (pager->cache)
    read_pools_done (pager);
  cache_free (pager->cache);
  admission_done (&pager->admission);
  pthread_mutex_destroy (&pager->exports_lock);
  free (pager);
}

void
pager_observe (struct pager *pager, const struct pager_observer *observer)
{
  atomic_store_explicit (&pager->observer, observer, memory_order_release);
}

const struct bp_root *
window_root (const struct window *window)
{
  return &window->root;
}

uint64_t
window_offset (const struct window *window)
{
  return window->offset;
}

uint32_t
window_len (const struct window *window)
{
  return window->len;
}

bool
window_is_multi (const struct window *window)
{
  return window->blob_size > BP_WINDOW_SIZE;
}
