/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the files of the pager share, above the cache.
 *
 * Locks: pager->exports_lock guards the table of exports and what says
 * so below.  It is never held while the cache's are taken, nor while
 * anybody is called back.
 */
#ifndef BP_PAGER_INTERNAL_H
#define BP_PAGER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/image-index.h"
#include "daemon/pager/admission.h"
#include "daemon/pager/cache.h"
#include "daemon/pager/pager.h"
#include "daemon/pager/read-ahead.h"
#include "daemon/pager/workers.h"
#include "daemon/thread-slot.h"

struct options;

enum {
  MAX_IDLE_EXPORTS = 64, /* Kept without clients, for their counts. */
  KEPT_INDEX_WINDOWS = 32,
};

struct read;

/* Read structs to use again, of a thread slot. */
struct read_pool {
  _Atomic bool is_in_use; /* By a thread, to which the rest belongs. */
  struct read *head;
  unsigned count;
} __attribute__ ((aligned (CACHE_LINE)));

/* What is counted of reads, by the threads of a slot.  Relaxed. */
struct read_counts {
  _Atomic uint64_t reads;      /* Answered, with or without success. */
  _Atomic uint64_t bytes_read; /* Of reads that succeeded. */
} __attribute__ ((aligned (CACHE_LINE)));

struct pager {
  const struct options *options;
  struct driver *driver;
  struct fetcher *fetcher;
  struct cache *cache;
  struct admission admission;
  struct workers *workers;
  struct read_pool read_pools[THREAD_SLOTS];
  unsigned read_pool_max; /* Structs in each; fixed. */

  const struct pager_observer *_Atomic observer; /* Or NULL. */

  _Atomic uint64_t kept_bytes; /* Of index windows that exports keep. */

  pthread_mutex_t exports_lock;
  struct export *exports; /* All of them, newest first. */
  unsigned generation;    /* Raised by pager_forget_tags. */
};

/* See kept-index.c.  Window W is in place W % KEPT_INDEX_WINDOWS or not
 * here.  Each is verified, has passed its check as part of the index, and
 * holds a reference.
 */
struct kept_index {
  struct window *_Atomic windows[KEPT_INDEX_WINDOWS];
};

struct export
{
  struct pager *pager;
  struct export_info info; /* Fixed once open. */
  struct bp_index index;   /* Of an image; fixed once open. */
  struct page_user *user;  /* Keeps its blobs open; NULL when idle. */
  struct kept_index kept;  /* Empty when idle. */

  /* Under exports_lock. */
  struct export *next;
  unsigned refs;
  _Atomic unsigned clients; /* Written under it. */
  unsigned generation;

  _Atomic int watchers;
  _Atomic uint64_t placed_bytes;
  struct read_counts counts[THREAD_SLOTS];

  pthread_mutex_t stall_lock;
  unsigned waiting;        /* Reads that wait for bytes now. */
  uint64_t stall_start_ns; /* Since when, if any does. */
  uint64_t stalls;
  uint64_t stall_ns;

  struct read_ahead ahead;
};

/* ---- exports.c ---- */

/* A reference more, made from another. */
void export_ref (struct export *export);

/* A read of EXPORT begins, or has ceased, to wait for bytes.  Called with
 * export->stall_lock held.
 */
void export_stall_begin (struct export *export);
void export_stall_end (struct export *export);

/* Free an export that is in no table. */
void export_free (struct export *export);

/* ---- export-open.c: resolving a name; these block ---- */

/* Find out what NAME is, fetch and verify what is needed to serve it, and
 * make an export of it, with one reference, in no table.
 */
int export_resolve (struct pager *pager, const char *name,
                    struct export **ret_export, struct bp_error *err);

/* Ask the driver for the tag that says how many bytes EXPORT places, if
 * it was attached by a root.
 */
void export_find_placed_bytes (struct export *export);

/* ---- export-index.c: what lies where ---- */

/* A run of an export, up to the end of a segment or a gap. */
struct span {
  uint64_t offset; /* In the export: the offset asked for. */
  uint64_t len;    /* Bytes. */
  bool is_hole;    /* Reads as zeros; the rest is not set. */
  struct bp_root root;
  uint64_t blob_size;     /* Bytes. */
  uint64_t window_offset; /* Of the window, in the blob. */
  uint64_t skip;          /* Bytes of the window before the run. */
  uint64_t window_start;  /* Of the window, in the export; can be below
                             OFFSET. */
};

enum {
  MAX_INDEX_WINDOWS = 12,
  SPANS_AT_ONCE = 32,
};

/* The index windows that one walk over an export holds. */
struct index_view {
  struct pager *pager;
  struct export *export;
  struct {
    uint64_t w;
    struct window *window;
    uint64_t sent; /* fetcher_windows_sent when it was found. */
    bool warm;     /* It was not waited for. */
  } held[MAX_INDEX_WINDOWS];
  unsigned nr_held;
  uint64_t missing;             /* What the last lookup lacked. */
  bool is_bad;                  /* It met a window that failed its check. */
  const struct window *awaited; /* The last one that was waited for. */
  bool wants_sent;              /* Whoever looks wants to know of SENT. */
};

/* What is at OFFSET, inside the export.  Returns 0; -EAGAIN, with
 * view->missing; or -EPROTO.
 */
int export_lookup (struct index_view *view, uint64_t offset,
                   struct span *ret_span);

/* The same from OFFSET on, as far as one window of the index knows: at
 * least one span and at most SPANS_AT_ONCE, each where the one before it
 * ends.
 */
int export_lookup_some (struct index_view *view, uint64_t offset,
                        struct span *spans, size_t *ret_count);
void index_view_done (struct index_view *view);

/* Check WINDOW, window W of the index, if that has not been done.  Returns
 * 0, -EPROTO, or -EAGAIN as above.
 */
int index_check (struct index_view *view, uint64_t w,
                 struct window *window);

/* ---- kept-index.c: index windows that need no looking for ---- */

static inline struct window *_Atomic *
kept_index_place (struct export *export, uint64_t window_offset)
{
  return &export->kept.windows[window_offset / BP_WINDOW_SIZE %
                               KEPT_INDEX_WINDOWS];
}

/* Window W of the index, checked, or NULL.  It stays while the caller has
 * a reference to EXPORT.
 */
static inline struct window *
kept_index_find (struct export *export, uint64_t w)
{
  const uint64_t offset = w * BP_WINDOW_SIZE;
  struct window *window = atomic_load_explicit (
    kept_index_place (export, offset), memory_order_acquire);

  return window && window->offset == offset ? window : NULL;
}

/* A client's read has used WINDOW of the index: keep it, if it has been
 * checked and there is room.  The caller has references to both.
 */
void kept_index_add (struct export *export, struct window *window);

/* Nobody refers to EXPORT any more: take what it has kept, and then, with
 * no lock held, let that go.
 */
void kept_index_take_all (struct export *export,
                          struct kept_index *ret_taken);
void kept_index_drop (struct pager *pager, struct kept_index *taken);

#endif /* BP_PAGER_INTERNAL_H */
