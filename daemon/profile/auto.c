/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The automatic mode (rule 10).
 *
 *   a client has come   ─▶ replay, if its profile is not all resident
 *   the first read      ─▶ record, for a minute or until the last exit
 *   the recording ends  ─▶ judge it (auto-rule.h), write it or leave it
 *
 * Nothing here delays or fails a client: the two hooks that lead here set
 * a flag or make a task, and the manager does the rest.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "daemon/log.h"
#include "daemon/profile/manager.h"
#include "daemon/profile/replay-plan.h"

/* Does a live task, a person's or ours, record NAME, or (REPLAYS) replay
 * it?
 */
static bool
is_in_use (struct profiles *profiles, const char *name, bool replays)
{
  const struct task *task;

  for (task = profiles->tasks; task; task = task->next) {
    if ((replays ? task->replays : task->records) && task_is_live (task) &&
        strcmp (task->start.name, name) == 0)
      return true;
  }
  return false;
}

/* A task of the automatic mode for the export TRACKED. */
static struct task *
new_automatic (struct profiles *profiles, struct tracked_export *tracked,
               const char *name, bool records)
{
  struct profile_start start = { .for_s = profiles->auto_s,
                                 .until_exit = true };
  struct task *task;

  strcpy (start.name, name);
  strcpy (start.export_tag, tracked->info->tag);
  task = task_new (profiles, &start, true, records, !records);
  if (task == NULL)
    return NULL;
  task->export = tracked->export;
  task->export_root = tracked->info->root;
  return task;
}

void
auto_start_recording (struct profiles *profiles,
                      struct tracked_export *tracked)
{
  const struct export_info *info = tracked->info;

  if (!profiles->is_auto || profiles->shutting_down ||
      info->kind != EXPORT_IMAGE ||
      is_taken (profiles, tracked->export, info))
    return;
  if (info->tag[0] != '\0' && is_in_use (profiles, info->tag, false))
    return;
  if (new_automatic (profiles, tracked, info->tag, true))
    pthread_cond_signal (&profiles->wake);
}

int
auto_resolve_name (struct profiles *profiles, const char *tag,
                   const struct bp_root *root, char name[BP_NAME_SIZE],
                   struct bp_error *err)
{
  CLEANUP_FREE struct bp_tag *tags = NULL;
  const struct bp_tag *first = NULL;
  size_t count, i;
  int r;

  if (tag[0] != '\0') {
    strcpy (name, tag);
    return 0;
  }
  r = driver_list_images (profiles->driver, &tags, &count, err);
  if (r < 0)
    return r;
  for (i = 0; i < count; i++) {
    if (bp_root_equal (&tags[i].root, root) &&
        (first == NULL || strcmp (tags[i].name, first->name) < 0))
      first = &tags[i];
  }
  if (first == NULL)
    return bp_error_set (err, -ENOENT, "image: no tag names it");
  strcpy (name, first->name);
  return 0;
}

/* ---- Replay ---- */

/* A damaged profile is logged once, until it has been seen undamaged. */
static void
log_damage (struct profiles *profiles, const char *name, int r,
            struct bp_error *err)
{
  unsigned i;
  LOCKED (&profiles->lock);

  for (i = 0; i < MAX_DAMAGED; i++) {
    if (strcmp (profiles->damaged[i], name) != 0)
      continue;
    if (r == 0)
      profiles->damaged[i][0] = '\0';
    return;
  }
  if (r == 0)
    return;
  strcpy (profiles->damaged[profiles->next_damaged], name);
  profiles->next_damaged = (profiles->next_damaged + 1) % MAX_DAMAGED;
  explain_damage (name, r, err);
  log_warn ("%s; not replaying", err->msg);
}

static bool
is_resident (struct profiles *profiles, const struct loaded_profile *profile)
{
  size_t i;

  for (i = 0; i < profile->count; i++) {
    const struct bp_blob_message *message = &profile->messages[i];

    if (message->offset != BP_OPEN_MARKER &&
        !pager_is_resident (profiles->pager, &message->root,
                            message->offset))
      return false;
  }
  return true;
}

/* Start a replay of PROFILE, named NAME, for EXPORT, if it still has a
 * client and nobody was faster.
 */
static void
replay_for (struct profiles *profiles, const struct export *export,
            const char *name, const struct loaded_profile *profile)
{
  struct tracked_export *tracked;
  struct task *task = NULL;
  struct bp_error err;
  int r;

  pthread_mutex_lock (&profiles->lock);
  for (tracked = profiles->exports; tracked; tracked = tracked->next) {
    if (tracked->export == export)
      break;
  }
  if (tracked && !is_taken (profiles, tracked->export, tracked->info) &&
      !is_in_use (profiles, name, true) && !profiles->shutting_down)
    task = new_automatic (profiles, tracked, name, false);
  pthread_mutex_unlock (&profiles->lock);
  if (task == NULL)
    return;

  r = start_replay (profiles, task, profile, &err);
  pthread_mutex_lock (&profiles->lock);
  task_run (profiles, task, r);
  pthread_mutex_unlock (&profiles->lock);
  if (r < 0)
    log_warn ("%s, not replaying", err.msg);
}

/* What is wanted for one export; the lock is not held. */
static void
serve (struct profiles *profiles, const struct export *export,
       const char *tag, const struct bp_root *root)
{
  struct loaded_profile profile;
  struct bp_error err = { 0 };
  char name[BP_NAME_SIZE];
  bool is_replayed;
  int r;

  r = auto_resolve_name (profiles, tag, root, name, &err);
  if (r < 0) {
    log_debug ("%s", err.msg);
    return;
  }
  pthread_mutex_lock (&profiles->lock);
  is_replayed = is_in_use (profiles, name, true);
  pthread_mutex_unlock (&profiles->lock);
  if (is_replayed)
    return;

  r = load_profile (profiles, name, &profile, &err);
  if (r == -ENOENT || r == -ESHUTDOWN)
    return;
  log_damage (profiles, name, r, &err);
  if (r < 0)
    return;
  if (!is_resident (profiles, &profile))
    replay_for (profiles, export, name, &profile);
  free (profile.messages);
}

bool
auto_serve_replay (struct profiles *profiles)
{
  struct tracked_export *tracked = profiles->exports;
  const struct export *export;
  char tag[BP_NAME_SIZE];
  struct bp_root root;

  while (tracked && !tracked->wants_replay)
    tracked = tracked->next;
  if (tracked == NULL)
    return false;
  tracked->wants_replay = false;
  if (is_taken (profiles, tracked->export, tracked->info))
    return true;
  export = tracked->export;
  strcpy (tag, tracked->info->tag);
  root = tracked->info->root;
  pthread_mutex_unlock (&profiles->lock);
  serve (profiles, export, tag, &root);
  pthread_mutex_lock (&profiles->lock);
  return true;
}

/* ---- Judgement ---- */

/* Distinct roots of COUNT messages; UINT64_MAX when memory ran out. */
static uint64_t
count_roots (const struct bp_blob_message *messages, size_t count)
{
  struct replay_plan plan;
  uint64_t roots;

  if (replay_plan_make (&plan, messages, count) < 0)
    return UINT64_MAX;
  roots = plan.nr_roots;
  replay_plan_done (&plan);
  return roots;
}

const char *
auto_judge (struct profiles *profiles, const char *name,
            struct auto_facts *facts, const struct bp_blob_message *messages,
            size_t count)
{
  struct loaded_profile old;
  struct bp_error err;
  int r;

  facts->roots = count_roots (messages, count);
  if (facts->roots == UINT64_MAX)
    return "out of memory";
  r = load_profile (profiles, name, &old, &err);
  if (r == 0) {
    facts->old_roots = count_roots (old.messages, old.count);
    free (old.messages);
  }
  else if (r != -ENOENT && r != -EBADMSG && r != -ERANGE)
    return "the old one cannot be read";
  return auto_refuses (facts);
}
