/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The profile manager: its thread, and what others ask of it.
 *
 * A caller puts a task on the list, or a wish on a task, wakes the thread
 * and waits until the task has moved.  The thread does the next thing
 * there is to do, or sleeps until the next timer.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "daemon/options.h"
#include "daemon/pager/fetcher.h"
#include "daemon/profile/manager.h"

/* ---- The thread ---- */

static uint64_t
earlier (uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

/* When TASK, RUNNING, ends by a timer; UINT64_MAX: by none. */
static uint64_t
end_ns (const struct task *task)
{
  uint64_t end = UINT64_MAX;

  if (task->start.for_s > 0)
    end = task->started_ns + task->start.for_s * NS_PER_SEC;
  if (task->start.quiet_s > 0)
    end = earlier (end, task->last_open_ns +
                          task->start.quiet_s * NS_PER_SEC);
  return end;
}

/* Do what TASK needs now, if anything; the lock is let go meanwhile. */
static bool
step_task (struct profiles *profiles, struct task *task, uint64_t now)
{
  if (!task_is_live (task))
    return false;
  if (task->want_abort || (task->lost && task->state != TASK_STARTING)) {
    task_abort (profiles, task);
    return true;
  }
  if (task->state == TASK_STARTING) {
    task_begin (profiles, task);
    return true;
  }
  if (task->state == TASK_RUNNING) {
    if (!task->want_end && !task->exited && now < end_ns (task))
      return false;
    task->drain_deadline_ns = now + profiles->drain_ns;
    task_move (profiles, task, TASK_ENDING);
    return true;
  }
  if (task->replay && !replay_is_drained (task->replay) &&
      now < task->drain_deadline_ns)
    return false;
  task_finish (profiles, task);
  return true;
}

/* Do one thing; false if there is nothing to do now. */
static bool
step (struct profiles *profiles)
{
  const uint64_t now = now_ns ();
  struct task *task;

  for (task = profiles->tasks; task; task = task->next) {
    if (step_task (profiles, task, now))
      return true;
  }
  return auto_serve_replay (profiles);
}

static uint64_t
next_timer (const struct profiles *profiles)
{
  const struct task *task;
  uint64_t next = UINT64_MAX;

  for (task = profiles->tasks; task; task = task->next) {
    if (task->state == TASK_RUNNING)
      next = earlier (next, end_ns (task));
    if (task->state == TASK_ENDING)
      next = earlier (next, task->drain_deadline_ns);
  }
  return next;
}

static void
sleep_until (struct profiles *profiles, uint64_t ns)
{
  const struct timespec until = {
    .tv_sec = (time_t) (ns / NS_PER_SEC),
    .tv_nsec = (long) (ns % NS_PER_SEC),
  };

  if (ns == UINT64_MAX)
    pthread_cond_wait (&profiles->wake, &profiles->lock);
  else
    pthread_cond_timedwait (&profiles->wake, &profiles->lock, &until);
}

static void *
manager_main (void *opaque)
{
  struct profiles *profiles = opaque;
  LOCKED (&profiles->lock);

  while (!profiles->shutting_down) {
    if (!step (profiles))
      sleep_until (profiles, next_timer (profiles));
  }
  return NULL;
}

/* ---- Life ---- */

static int
start_thread (struct profiles *profiles)
{
  pthread_condattr_t attr;

  pthread_mutex_init (&profiles->lock, NULL);
  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&profiles->wake, &attr);
  pthread_condattr_destroy (&attr);
  pthread_cond_init (&profiles->changed, NULL);
  return -pthread_create (&profiles->thread, NULL, manager_main, profiles);
}

static void
destroy (struct profiles *profiles)
{
  pthread_mutex_destroy (&profiles->lock);
  pthread_cond_destroy (&profiles->wake);
  pthread_cond_destroy (&profiles->changed);
  rate_limit_done (&profiles->limit);
  free (profiles);
}

int
profiles_new (struct profiles **ret_profiles, const struct options *options,
              struct pager *pager, struct driver *driver,
              struct bp_error *err)
{
  struct profiles *profiles = calloc (1, sizeof *profiles);
  int r;

  if (profiles == NULL)
    return bp_error_set (err, -ENOMEM, "profiles: out of memory");
  profiles->pager = pager;
  profiles->driver = driver;
  profiles->fetcher = driver_fetcher (driver);
  profiles->is_auto = options->profile_auto;
  profiles->auto_s = AUTO_SECONDS;
  profiles->drain_ns = options->driver_timeout * NS_PER_SEC;
  rate_limit_init (&profiles->limit, options->replay_rate);
  r = start_thread (profiles);
  if (r < 0) {
    destroy (profiles);
    return bp_error_set (err, r, "profiles: %m");
  }
  hooks_observe (profiles);
  *ret_profiles = profiles;
  return 0;
}

void
profiles_shut_down (struct profiles *profiles)
{
  LOCKED (&profiles->lock);

  profiles->shutting_down = true;
  update_watches (profiles);
  pthread_cond_broadcast (&profiles->wake);
  pthread_cond_broadcast (&profiles->changed);
}

/* Nobody calls us any more, and the driver is not told: its session ends
 * with the program.
 */
static void
drop_all (struct profiles *profiles)
{
  struct tracked_export *tracked;
  struct task *task;

  while ((task = profiles->tasks)) {
    profiles->tasks = task->next;
    replay_free (steal_ptr (&task->replay));
    recording_free (steal_ptr (&task->recording));
    free (task);
  }
  while ((tracked = profiles->exports)) {
    profiles->exports = tracked->next;
    free (tracked);
  }
}

void
profiles_free (struct profiles *profiles)
{
  if (profiles == NULL)
    return;
  profiles_shut_down (profiles);
  pthread_join (profiles->thread, NULL);
  pager_observe (profiles->pager, NULL);
  drop_all (profiles);
  destroy (profiles);
}

/* ---- Callers ---- */

/* Wait until TASK has left the states before STATE.  Lock held.  Returns
 * 0 or -ESHUTDOWN.
 */
static int
wait_for (struct profiles *profiles, struct task *task,
          enum task_state state, struct bp_error *err)
{
  pthread_cond_signal (&profiles->wake);
  while (task->state < state && !profiles->shutting_down)
    pthread_cond_wait (&profiles->changed, &profiles->lock);
  if (task->state < state)
    return bp_error_set (err, -ESHUTDOWN, "profile '%s': shutting down",
                         task->start.name);
  return 0;
}

/* What TASK came to. */
static int
task_error (const struct task *task, struct bp_error *err)
{
  if (task->status == -ECANCELED)
    return bp_error_set (err, -ECANCELED, "profile '%s': aborted",
                         task->start.name);
  if (task->status < 0)
    return bp_error_set (err, task->status, "%s", task->why.msg);
  return 0;
}

static int
check_start (const struct profile_start *start, struct bp_error *err)
{
  if (start->attach && start->export_tag[0] == '\0')
    return bp_error_set (err, -EINVAL, "profile: an attached one needs an "
                                       "export");
  if (!start->attach && !bp_is_profile_name (start->name))
    return bp_error_set (err, -EINVAL, "profile: no such name can be");
  return 0;
}

/* NAME is "" for an attached profile until its tag is resolved. */
static bool
has_name (const struct task *task, const char *name)
{
  return name[0] != '\0' && strcmp (task->start.name, name) == 0;
}

/* Rule 1: explicit against explicit. */
static int
check_busy (struct profiles *profiles, const struct profile_start *start,
            struct bp_error *err)
{
  const struct task *task;

  for (task = profiles->tasks; task; task = task->next) {
    if (task->automatic || !task_is_live (task))
      continue;
    if (task_overlaps (task, start) || has_name (task, start->name))
      return bp_error_set (err, -EBUSY, "profile '%s': '%s' is being "
                                        "recorded: stop or abort it first",
                           start->name, task->start.name);
  }
  return 0;
}

/* An explicit start takes the exports in its scope, and its name. */
static void
displace (struct profiles *profiles, const struct profile_start *start)
{
  const struct task probe = { .start = *start };
  const struct tracked_export *tracked;
  struct task *task, *next;

  for (task = profiles->tasks; task; task = next) {
    next = task->next;
    if (has_name (task, start->name)) {
      if (task->state == TASK_ENDED)
        task_move (profiles, task, TASK_GONE);
      else
        task->want_abort = true;
      continue;
    }
    for (tracked = profiles->exports; tracked; tracked = tracked->next) {
      if (task->automatic && task->export == tracked->export &&
          task_covers (&probe, tracked->export, tracked->info))
        task->want_abort = true;
    }
  }
}

int
profiles_start (struct profiles *profiles, const struct profile_start *start,
                struct bp_error *err)
{
  struct task *task;
  int r = check_start (start, err);
  LOCKED (&profiles->lock);

  if (r < 0)
    return r;
  r = check_busy (profiles, start, err);
  if (r < 0)
    return r;
  displace (profiles, start);
  task = task_new (profiles, start, false, true, true);
  if (task == NULL)
    return bp_error_set (err, -ENOMEM, "profile '%s': out of memory",
                         start->name);
  update_watches (profiles);
  task->refs++;
  r = wait_for (profiles, task, TASK_RUNNING, err);
  if (r == 0 && task->state == TASK_GONE)
    r = task_error (task, err);
  task_unref (task);
  return r;
}

int
profiles_stop (struct profiles *profiles, const char *name,
               struct profile_result *ret_result, struct bp_error *err)
{
  struct task *task;
  int r;
  LOCKED (&profiles->lock);

  task = task_find (profiles, name);
  if (task == NULL)
    return bp_error_set (err, -EINVAL, "profile '%s': it is not being "
                                       "recorded",
                         name);
  task->want_end = true;
  task->refs++;
  r = wait_for (profiles, task, TASK_ENDED, err);
  if (r == 0)
    r = task_error (task, err);
  if (r == 0)
    *ret_result = task->result;
  if (task->state == TASK_ENDED)
    task_move (profiles, task, TASK_GONE);
  task_unref (task);
  return r;
}

/* Wish the end of everything live that is named NAME; how much that is. */
static unsigned
wish_abort (struct profiles *profiles, const char *name)
{
  struct task *task;
  unsigned n = 0;

  for (task = profiles->tasks; task; task = task->next) {
    if (!task_is_live (task) || strcmp (task->start.name, name) != 0)
      continue;
    task->want_abort = true;
    n++;
  }
  return n;
}

static struct task *
find_aborting (struct profiles *profiles, const char *name)
{
  struct task *task = profiles->tasks;

  while (task && (!task->want_abort || !task_is_live (task) ||
                  strcmp (task->start.name, name) != 0))
    task = task->next;
  return task;
}

int
profiles_abort (struct profiles *profiles, const char *name,
                struct bp_error *err)
{
  struct task *task;
  int r = 0;
  LOCKED (&profiles->lock);

  if (wish_abort (profiles, name) == 0)
    return bp_error_set (err, -EINVAL, "profile '%s': it is not being "
                                       "recorded",
                         name);
  while (r == 0 && (task = find_aborting (profiles, name))) {
    task->refs++;
    r = wait_for (profiles, task, TASK_ENDED, err);
    if (r == 0 && task->state == TASK_ENDED)
      r = bp_error_set (err, -EINVAL, "profile '%s': it had ended already",
                        name);
    task_unref (task);
  }
  return r;
}

/* ---- Stored profiles ---- */

int
profiles_list (struct profiles *profiles, char **ret_json,
               struct bp_error *err)
{
  return driver_list_profiles (profiles->driver, ret_json, err);
}

int
profiles_get (struct profiles *profiles, const char *name, char **ret_meta,
              uint8_t **ret_data, size_t *ret_len, struct bp_error *err)
{
  return driver_get_profile (profiles->driver, name, ret_meta, ret_data,
                             ret_len, err);
}

int
profiles_delete (struct profiles *profiles, const char *name,
                 struct bp_error *err)
{
  return driver_delete_profile (profiles->driver, name, err);
}
