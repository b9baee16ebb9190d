/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the pager and the driver tell the profiles.
 *
 * Called from event loops, lanes and driver threads, which must never
 * wait: each hook takes the manager's lock for a moment, writes down what
 * it was told, and at most wakes the manager.
 *
 * Clients of an export may come and go on several loops at once, so that
 * "the last has left" may be told after "one has come": what counts is the
 * number of clients when we hold the lock.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "daemon/metrics.h"
#include "daemon/profile/manager.h"

/* ---- Exports that have clients ---- */

static struct tracked_export *
find_tracked (struct profiles *profiles, const struct export *export)
{
  struct tracked_export *tracked = profiles->exports;

  while (tracked && tracked->export != export)
    tracked = tracked->next;
  return tracked;
}

static struct tracked_export *
track (struct profiles *profiles, struct export *export)
{
  struct tracked_export *tracked = find_tracked (profiles, export);
  struct export_counts counts;

  if (tracked)
    return tracked;
  tracked = calloc (1, sizeof *tracked);
  if (tracked == NULL)
    return NULL; /* No profile for this one: a boot does without. */
  export_get_counts (export, &counts);
  tracked->export = export;
  tracked->info = export_get_info (export);
  tracked->stalls = counts.stalls;
  tracked->stall_ns = counts.stall_ns;
  tracked->next = profiles->exports;
  profiles->exports = tracked;
  return tracked;
}

static void
untrack (struct profiles *profiles, struct tracked_export *tracked)
{
  struct tracked_export **link = &profiles->exports;

  while (*link != tracked)
    link = &(*link)->next;
  *link = tracked->next;
  if (tracked->watched)
    export_watch (tracked->export, -1);
  free (tracked);
}

static bool
is_wanted (struct profiles *profiles, const struct tracked_export *tracked)
{
  const struct task *task;

  if (profiles->shutting_down)
    return false;
  if (profiles->is_auto && !tracked->was_read &&
      tracked->info->kind == EXPORT_IMAGE)
    return true;
  for (task = profiles->tasks; task; task = task->next) {
    if (task->recording &&
        task_covers (task, tracked->export, tracked->info))
      return true;
  }
  return false;
}

void
update_watches (struct profiles *profiles)
{
  struct tracked_export *tracked;

  for (tracked = profiles->exports; tracked; tracked = tracked->next) {
    const bool wanted = is_wanted (profiles, tracked);

    if (wanted != tracked->watched)
      export_watch (tracked->export, wanted ? 1 : -1);
    tracked->watched = wanted;
  }
}

/* Add what TRACKED has stalled since last time to every replay that is
 * for it.
 */
static void
settle (struct profiles *profiles, struct tracked_export *tracked)
{
  struct export_counts counts;
  struct task *task;

  export_get_counts (tracked->export, &counts);
  for (task = profiles->tasks; task; task = task->next) {
    if (task->replay == NULL ||
        !task_covers (task, tracked->export, tracked->info))
      continue;
    task->stalls += counts.stalls - tracked->stalls;
    task->stall_ns += counts.stall_ns - tracked->stall_ns;
  }
  tracked->stalls = counts.stalls;
  tracked->stall_ns = counts.stall_ns;
}

void
settle_stalls (struct profiles *profiles)
{
  struct tracked_export *tracked;

  for (tracked = profiles->exports; tracked; tracked = tracked->next)
    settle (profiles, tracked);
}

/* ---- Clients ---- */

static void
entered (void *opaque, struct export *export)
{
  struct profiles *profiles = opaque;
  struct tracked_export *tracked;
  LOCKED (&profiles->lock);

  tracked = track (profiles, export);
  if (tracked == NULL)
    return;
  if (profiles->is_auto && tracked->info->kind == EXPORT_IMAGE) {
    tracked->wants_replay = true;
    pthread_cond_signal (&profiles->wake);
  }
  update_watches (profiles);
}

/* TASK has lost the last client of an export: was it the last in scope? */
static bool
has_exited (const struct profiles *profiles, const struct task *task)
{
  const struct tracked_export *tracked;

  for (tracked = profiles->exports; tracked; tracked = tracked->next) {
    if (task_covers (task, tracked->export, tracked->info))
      return false;
  }
  return true;
}

static void
left (void *opaque, struct export *export, unsigned remaining)
{
  struct profiles *profiles = opaque;
  struct tracked_export *tracked;
  struct export_counts counts;
  const struct export_info *info = export_get_info (export);
  struct task *task;
  LOCKED (&profiles->lock);

  tracked = find_tracked (profiles, export);
  if (remaining > 0 || tracked == NULL)
    return;
  export_get_counts (export, &counts);
  if (counts.clients > 0)
    return;
  settle (profiles, tracked);
  untrack (profiles, tracked);
  for (task = profiles->tasks; task; task = task->next) {
    if (!task_is_live (task) || !task_covers (task, export, info))
      continue;
    if (task->start.until_exit && has_exited (profiles, task))
      task->exited = true;
    if (task->automatic) {
      task->placed_bytes = export_placed_bytes (export);
      task->export = NULL;
    }
  }
  pthread_cond_signal (&profiles->wake);
}

/* ---- Reads ---- */

static void
read_started (void *opaque, struct export *export, uint64_t offset,
              uint32_t len)
{
  struct profiles *profiles = opaque;
  struct tracked_export *tracked;
  struct task *task;
  LOCKED (&profiles->lock);

  tracked = find_tracked (profiles, export);
  if (tracked == NULL)
    return;
  if (!tracked->was_read) {
    tracked->was_read = true;
    auto_start_recording (profiles, tracked);
    update_watches (profiles);
  }
  for (task = profiles->tasks; task; task = task->next) {
    if (task->automatic && task->recording && task->export == export)
      copy_detector_add (&task->reads, offset, len);
  }
}

static void
note_image (struct task *task, const struct export_info *info)
{
  if (info->kind != EXPORT_IMAGE)
    return;
  if (task->has_image && !bp_root_equal (&task->image, &info->root))
    task->has_images = true;
  task->has_image = true;
  task->image = info->root;
}

/* The touches of OP, for TASK. */
static void
record_touches (struct task *task, const struct read_op *op)
{
  struct touch touch;
  size_t i, added = 0;

  for (i = 0; i < op->nr_touches; i++) {
    const struct window *window = op->touches[i].window;

    touch.root = *window_root (window);
    touch.offset = window_offset (window);
    touch.len = window_len (window);
    touch.multi = window_is_multi (window);
    touch.sent = op->touches[i].sent;
    touch.warm = op->touches[i].warm;
    if (recording_add_touch (task->recording, &touch))
      added++;
  }
  if (added == 0)
    return;
  task->last_open_ns = now_ns ();
  METRIC_ADD (profile_records, added);
}

static void
read_served (void *opaque, const struct read_op *op)
{
  struct profiles *profiles = opaque;
  const struct export_info *info = export_get_info (op->export);
  struct task *task;
  LOCKED (&profiles->lock);

  for (task = profiles->tasks; task; task = task->next) {
    if (task->recording && task_covers (task, op->export, info)) {
      note_image (task, info);
      record_touches (task, op);
    }
  }
}

/* ---- The driver ---- */

static void
key_opened (void *opaque, uint64_t key, const struct bp_root *root)
{
  struct profiles *profiles = opaque;
  struct task *task;

  if (atomic_load (&profiles->nr_recordings) == 0)
    return;
  LOCKED (&profiles->lock);
  for (task = profiles->tasks; task; task = task->next) {
    if (task->recording)
      recording_add_key (task->recording, key, root);
  }
}

static void
session_lost (void *opaque)
{
  struct profiles *profiles = opaque;
  struct task *task;
  LOCKED (&profiles->lock);

  for (task = profiles->tasks; task; task = task->next)
    task->lost = true;
  pthread_cond_signal (&profiles->wake);
}

void
hooks_observe (struct profiles *profiles)
{
  const struct driver_observer driver = {
    .key_opened = key_opened,
    .session_lost = session_lost,
    .opaque = profiles,
  };

  profiles->observer = (struct pager_observer){
    .entered = entered,
    .left = left,
    .read_started = read_started,
    .read_served = read_served,
    .opaque = profiles,
  };
  pager_observe (profiles->pager, &profiles->observer);
  driver_observe (profiles->driver, &driver);
}
