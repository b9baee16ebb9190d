/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The table of exports.
 *
 *   open NAME ─▶ has it clients?  join them
 *                   │ no
 *                   ▼
 *                resolve afresh ─▶ known by this name and root? use that
 *                                  else a new one
 *
 * So a tag is resolved when an export without clients gets one, and later
 * connections join that root until the last has left.  An export that
 * nobody refers to any more is idle: its blobs may be closed, its index
 * may be evicted, its counts are kept for status, and the oldest idle ones
 * go.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/internal.h"

/* ---- References ---- */

void
export_free (struct export *export)
{
  if (export == NULL)
    return;
  page_user_unref (export->user);
  cache_uncharge (export->pager->cache, sizeof *export);
  read_ahead_done (&export->ahead);
  pthread_mutex_destroy (&export->stall_lock);
  free (export);
}

void
export_ref (struct export *export)
{
  LOCKED (&export->pager->exports_lock);

  export->refs++;
}

/* Take the oldest idle export out of the table, if there are too many.
 * Called with the lock held.
 */
static struct export *
take_surplus (struct pager *pager)
{
  struct export **place, **oldest = NULL, *export;
  unsigned nr_idle = 0;

  for (place = &pager->exports; *place; place = &(*place)->next) {
    if ((*place)->refs > 0)
      continue;
    oldest = place;
    nr_idle++;
  }
  if (nr_idle <= MAX_IDLE_EXPORTS)
    return NULL;
  export = *oldest;
  *oldest = export->next;
  return export;
}

void
export_unref (struct export *export)
{
  struct pager *pager;
  struct page_user *user = NULL;
  struct export *surplus = NULL;
  struct kept_index kept;
  bool is_idle;

  if (export == NULL)
    return;
  pager = export->pager;
  pthread_mutex_lock (&pager->exports_lock);
  is_idle = --export->refs == 0;
  if (is_idle) {
    user = steal_ptr (&export->user);
    kept_index_take_all (export, &kept);
    surplus = take_surplus (pager);
  }
  pthread_mutex_unlock (&pager->exports_lock);
  if (!is_idle)
    return;
  page_user_unref (user);
  kept_index_drop (pager, &kept);
  export_free (surplus);
}

/* ---- Opening ---- */

struct open_job {
  struct job job; /* First. */
  struct pager *pager;
  char name[sizeof ((struct export_info *) NULL)->name];
  bool is_too_long;
  export_open_fn done;
  void *opaque;
};

/* Called with the lock held, as is the next. */
static struct export *
find_with_clients (struct pager *pager, const char *name)
{
  struct export *export = pager->exports;

  for (; export; export = export->next)
    if (export->clients > 0 && export->generation == pager->generation &&
        strcmp (export->info.name, name) == 0)
      return export;
  return NULL;
}

static struct export *
find_same (struct pager *pager, const struct export *other)
{
  struct export *export = pager->exports;

  for (; export; export = export->next)
    if (strcmp (export->info.name, other->info.name) == 0 &&
        export->info.kind == other->info.kind &&
        bp_root_equal (&export->info.root, &other->info.root))
      return export;
  return NULL;
}

static struct export *
join (struct pager *pager, const char *name)
{
  LOCKED (&pager->exports_lock);
  struct export *export = find_with_clients (pager, name);

  if (export)
    export->refs++;
  return export;
}

/* FRESH has been resolved: put it in the table, unless somebody was
 * faster, or its counts are still there from before.
 */
static struct export *
settle (struct pager *pager, struct export *fresh)
{
  struct export *export;

  pthread_mutex_lock (&pager->exports_lock);
  export = find_with_clients (pager, fresh->info.name);
  if (export == NULL)
    export = find_same (pager, fresh);
  if (export == NULL) {
    fresh->next = pager->exports;
    pager->exports = fresh;
    export = steal_ptr (&fresh);
  }
  else {
    if (export->user == NULL)
      export->user = steal_ptr (&fresh->user);
    export->refs++;
  }
  export->generation = pager->generation;
  pthread_mutex_unlock (&pager->exports_lock);
  export_free (fresh);
  return export;
}

static void
run_open (struct job *job)
{
  CLEANUP_FREE struct open_job *open = (struct open_job *) job;
  struct pager *pager = open->pager;
  struct export *export;
  struct bp_error err;
  int r;

  export = join (pager, open->name);
  if (export) {
    open->done (open->opaque, export, 0, NULL);
    return;
  }
  r = open->is_too_long
        ? bp_error_set (&err, -ENOENT, "export name: longer than %zu bytes",
                        sizeof open->name - 1)
        : export_resolve (pager, open->name, &export, &err);
  if (r < 0) {
    open->done (open->opaque, NULL, r, err.msg);
    return;
  }
  export = settle (pager, export);
  export_ref (export);
  open->done (open->opaque, export, 0, NULL);
  export_find_placed_bytes (export);
  export_unref (export);
}

void
pager_open_export (struct pager *pager, const char *name,
                   export_open_fn done, void *opaque)
{
  struct open_job *open = calloc (1, sizeof *open);

  if (open == NULL) {
    done (opaque, NULL, -ENOMEM, "out of memory");
    return;
  }
  open->job.run = run_open;
  open->pager = pager;
  open->is_too_long = strlen (name) >= sizeof open->name;
  if (!open->is_too_long)
    strcpy (open->name, name);
  open->done = done;
  open->opaque = opaque;
  workers_add (pager->workers, &open->job);
}

/* ---- Clients ---- */

static const struct pager_observer *
observer_of (const struct pager *pager)
{
  return atomic_load_explicit (&pager->observer, memory_order_acquire);
}

void
export_client_entered (struct export *export)
{
  struct pager *pager = export->pager;
  const struct pager_observer *observer = observer_of (pager);

  pthread_mutex_lock (&pager->exports_lock);
  export->clients++;
  pthread_mutex_unlock (&pager->exports_lock);
  if (observer)
    observer->entered (observer->opaque, export);
}

void
export_client_left (struct export *export)
{
  struct pager *pager = export->pager;
  const struct pager_observer *observer = observer_of (pager);
  unsigned remaining;

  pthread_mutex_lock (&pager->exports_lock);
  remaining = --export->clients;
  pthread_mutex_unlock (&pager->exports_lock);
  if (observer)
    observer->left (observer->opaque, export, remaining);
}

void
pager_forget_tags (struct pager *pager)
{
  LOCKED (&pager->exports_lock);

  pager->generation++;
}

void
export_watch (struct export *export, int delta)
{
  atomic_fetch_add_explicit (&export->watchers, delta,
                             memory_order_relaxed);
}

void
pager_for_each_export (struct pager *pager,
                       void (*fn) (void *opaque, struct export *export),
                       void *opaque)
{
  LOCKED (&pager->exports_lock);
  struct export *export = pager->exports;

  for (; export; export = export->next)
    fn (opaque, export);
}

/* ---- Listing ---- */

struct list_job {
  struct job job; /* First. */
  struct pager *pager;
  export_list_fn done;
  void *opaque;
};

static void
run_list (struct job *job)
{
  CLEANUP_FREE struct list_job *list = (struct list_job *) job;
  CLEANUP_FREE struct bp_tag *tags = NULL;
  size_t count = 0;
  int r;

  r = driver_list_images (list->pager->driver, &tags, &count, NULL);
  list->done (list->opaque, r < 0 ? NULL : tags, r < 0 ? 0 : count, r);
}

void
pager_list_exports (struct pager *pager, export_list_fn done, void *opaque)
{
  struct list_job *list = calloc (1, sizeof *list);

  if (list == NULL) {
    done (opaque, NULL, 0, -ENOMEM);
    return;
  }
  list->job.run = run_list;
  list->pager = pager;
  list->done = done;
  list->opaque = opaque;
  workers_add (pager->workers, &list->job);
}

/* ---- What is known ---- */

const struct export_info *
export_get_info (const struct export *export)
{
  return &export->info;
}

uint64_t
export_placed_bytes (const struct export *export)
{
  return atomic_load_explicit (&export->placed_bytes,
                               memory_order_relaxed);
}

void
export_stall_begin (struct export *export)
{
  if (export->waiting++ > 0)
    return;
  export->stall_start_ns = now_ns ();
  export->stalls++;
}

void
export_stall_end (struct export *export)
{
  if (--export->waiting > 0)
    return;
  export->stall_ns += now_ns () - export->stall_start_ns;
}

/* Called from pager_for_each_export too, so it takes no exports_lock; the
 * count of clients is atomic.
 */
void
export_get_counts (struct export *export, struct export_counts *ret_counts)
{
  LOCKED (&export->stall_lock);
  unsigned i;

  ret_counts->clients = export->clients;
  ret_counts->reads = ret_counts->bytes_read = 0;
  for (i = 0; i < THREAD_SLOTS; i++) {
    struct read_counts *counts = &export->counts[i];

    ret_counts->reads +=
      atomic_load_explicit (&counts->reads, memory_order_relaxed);
    ret_counts->bytes_read +=
      atomic_load_explicit (&counts->bytes_read, memory_order_relaxed);
  }
  ret_counts->stalls = export->stalls;
  ret_counts->stall_ns = export->stall_ns;
  if (export->waiting > 0)
    ret_counts->stall_ns += now_ns () - export->stall_start_ns;
}
