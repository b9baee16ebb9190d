/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The list of tasks.  Everything here runs with profiles->lock held and
 * calls nobody.
 */
#include <config.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/profile/manager.h"

struct task *
task_new (struct profiles *profiles, const struct profile_start *start,
          bool automatic, bool records, bool replays)
{
  struct task *task = calloc (1, sizeof *task);
  struct task **end = &profiles->tasks;

  if (task == NULL)
    return NULL;
  task->refs = 1;
  task->start = *start;
  task->automatic = automatic;
  task->records = records;
  task->replays = replays;
  if (records) {
    task->recording = recording_new ();
    if (task->recording == NULL) {
      free (task);
      return NULL;
    }
    atomic_fetch_add (&profiles->nr_recordings, 1);
  }
  while (*end)
    end = &(*end)->next;
  *end = task;
  return task;
}

void
task_unref (struct task *task)
{
  if (--task->refs > 0)
    return;
  assert (task->recording == NULL && task->replay == NULL);
  free (task);
}

static void
remove_task (struct profiles *profiles, struct task *task)
{
  struct task **link = &profiles->tasks;

  while (*link != task)
    link = &(*link)->next;
  *link = task->next;
  task_unref (task);
}

/* Results that nobody asks for do not pile up. */
static void
forget_oldest_ended (struct profiles *profiles)
{
  struct task *task, *oldest = NULL;
  unsigned ended = 0;

  for (task = profiles->tasks; task; task = task->next) {
    if (task->state != TASK_ENDED)
      continue;
    if (oldest == NULL)
      oldest = task;
    ended++;
  }
  if (ended > MAX_ENDED)
    task_move (profiles, oldest, TASK_GONE);
}

void
task_move (struct profiles *profiles, struct task *task,
           enum task_state state)
{
  assert (task->state < state);
  task->state = state;
  pthread_cond_broadcast (&profiles->changed);
  if (state == TASK_GONE)
    remove_task (profiles, task);
  else if (state == TASK_ENDED)
    forget_oldest_ended (profiles);
}

struct recording *
task_take_recording (struct profiles *profiles, struct task *task)
{
  struct recording *recording = task->recording;

  if (recording) {
    recording_count (recording, &task->counts);
    task->recording = NULL;
    atomic_fetch_sub (&profiles->nr_recordings, 1);
    update_watches (profiles);
  }
  return recording;
}

bool
task_is_live (const struct task *task)
{
  return task->state < TASK_ENDED;
}

/* An export is in the scope of its tag, and of the name it was asked for
 * by (a root, or blob/ROOT).
 */
static bool
is_named (const char *scope, const struct export_info *info)
{
  return scope[0] == '\0' || strcmp (scope, info->tag) == 0 ||
         strcmp (scope, info->name) == 0;
}

bool
task_covers (const struct task *task, struct export *export,
             const struct export_info *info)
{
  if (task->automatic)
    return task->export == export;
  return is_named (task->start.export_tag, info);
}

bool
task_overlaps (const struct task *task, const struct profile_start *start)
{
  const char *a = task->start.export_tag, *b = start->export_tag;

  return a[0] == '\0' || b[0] == '\0' || strcmp (a, b) == 0;
}

struct task *
task_find (struct profiles *profiles, const char *name)
{
  struct task *task, *automatic = NULL;

  for (task = profiles->tasks; task; task = task->next) {
    if (strcmp (task->start.name, name) != 0)
      continue;
    if (!task->automatic)
      return task;
    if (task->records && task_is_live (task))
      automatic = task;
  }
  return automatic;
}

bool
is_taken (struct profiles *profiles, struct export *export,
          const struct export_info *info)
{
  const struct task *task;

  for (task = profiles->tasks; task; task = task->next) {
    if (!task->automatic && task_is_live (task) &&
        task_covers (task, export, info))
      return true;
  }
  return false;
}
