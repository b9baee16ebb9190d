/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a task does through the driver: begin (rules 1 and 3), finish (rule
 * 4), abort (rule 7).  Run by the manager's thread, one task at a time;
 * the lock is let go while the driver works.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/pager/fetcher.h"
#include "daemon/profile/manager.h"

/* ---- Begin ---- */

/* The keys that are open, copied while the key table is locked. */
struct key_walk {
  struct bp_key_entry *keys;
  size_t count, room;
  bool is_short; /* Memory ran out. */
};

static void
copy_key (void *opaque, uint64_t key, const struct bp_root *root)
{
  struct key_walk *walk = opaque;
  const size_t room = walk->room ? walk->room * 2 : 1024;
  struct bp_key_entry *keys;

  if (walk->count == walk->room) {
    keys = realloc (walk->keys, room * sizeof *keys);
    if (keys == NULL) {
      walk->is_short = true;
      return;
    }
    walk->keys = keys;
    walk->room = room;
  }
  walk->keys[walk->count++] = (struct bp_key_entry){ key, *root };
}

/* Take down the keys that are open, for TASK. */
static int
take_keys (struct profiles *profiles, struct task *task,
           struct bp_error *err)
{
  struct key_walk walk = { 0 };
  size_t i;

  fetcher_for_each_key (profiles->fetcher, copy_key, &walk);
  pthread_mutex_lock (&profiles->lock);
  for (i = 0; i < walk.count; i++)
    recording_add_key (task->recording, walk.keys[i].key,
                       &walk.keys[i].root);
  pthread_mutex_unlock (&profiles->lock);
  free (walk.keys);
  if (walk.is_short)
    return bp_error_set (err, -ENOMEM, "profile '%s': out of memory",
                         task->start.name);
  return 0;
}

/* Start logging in the driver, and take down the keys that are open. */
static int
start_recording (struct profiles *profiles, struct task *task,
                 struct bp_error *err)
{
  struct driver_recording started;
  int r;

  r = driver_record_start (profiles->driver, &started, err);
  if (r < 0)
    return r;
  pthread_mutex_lock (&profiles->lock);
  task->driver_recording = started;
  task->has_driver_recording = true;
  pthread_mutex_unlock (&profiles->lock);
  METRIC_ADD (profile_recordings, 1);
  return take_keys (profiles, task, err);
}

int
explain_damage (const char *name, int r, struct bp_error *err)
{
  if (r != -ERANGE && r != -EBADMSG)
    return r;
  return bp_error_set (err, r, "profile '%s': %s: 'blobpager profile delete "
                               "%s' removes it",
                       name,
                       r == -ERANGE ? "too large" : "damaged", name);
}

/* Replay the profile that TASK is named after, if there is one. */
static int
replay_stored (struct profiles *profiles, struct task *task,
               struct bp_error *err)
{
  struct loaded_profile profile;
  int r;

  r = load_profile (profiles, task->start.name, &profile, err);
  if (r < 0)
    return r == -ENOENT ? r : explain_damage (task->start.name, r, err);
  r = start_replay (profiles, task, &profile, err);
  free (profile.messages);
  return r;
}

/* The tag that a start names must be there; an attached profile is named
 * by its image root.
 */
static int
resolve_scope (struct profiles *profiles, struct task *task,
               struct bp_error *err)
{
  char hex[BP_ROOT_HEX_SIZE];
  struct bp_tag tag;
  int r;

  if (!bp_is_tag_name (task->start.export_tag))
    return 0;
  r = driver_get_image (profiles->driver, task->start.export_tag, &tag, err);
  if (r == -ENOENT || (r < 0 && task->start.attach))
    return r;
  if (!task->start.attach)
    return 0;
  LOCKED (&profiles->lock);
  snprintf (task->start.name, sizeof task->start.name, "%s",
            bp_root_format (&tag.root, hex));
  return 0;
}

/* Replay xor record: with a profile, nothing is recorded. */
static int
begin_xor (struct profiles *profiles, struct task *task,
           struct bp_error *err)
{
  struct recording *recording;
  int r;

  r = replay_stored (profiles, task, err);
  if (r == -ENOENT)
    return start_recording (profiles, task, err);
  if (r < 0)
    return r;
  pthread_mutex_lock (&profiles->lock);
  recording = task_take_recording (profiles, task);
  task->records = false;
  pthread_mutex_unlock (&profiles->lock);
  recording_free (recording);
  return 0;
}

static int
begin_explicit (struct profiles *profiles, struct task *task,
                struct bp_error *err)
{
  int r = resolve_scope (profiles, task, err);

  if (r < 0)
    return r;
  if (task->start.mode == PROFILE_REPLAY_XOR_RECORD)
    return begin_xor (profiles, task, err);
  r = start_recording (profiles, task, err);
  if (r < 0)
    return r;
  r = replay_stored (profiles, task, err);
  return r == -ENOENT ? 0 : r;
}

/* An automatic recording; its replay, if there is one, is another task. */
static int
begin_automatic (struct profiles *profiles, struct task *task,
                 struct bp_error *err)
{
  char name[BP_NAME_SIZE];
  int r;

  r = auto_resolve_name (profiles, task->start.export_tag,
                         &task->export_root, name, err);
  if (r < 0)
    return r;
  pthread_mutex_lock (&profiles->lock);
  strcpy (task->start.name, name);
  pthread_mutex_unlock (&profiles->lock);
  return start_recording (profiles, task, err);
}

/* Forget everything TASK holds.  Lock held, released meanwhile. */
static void
drop (struct profiles *profiles, struct task *task)
{
  struct recording *recording = task_take_recording (profiles, task);
  const bool tell_driver = task->has_driver_recording && !task->lost;
  struct replay_result result;
  struct bp_error err;

  end_replay (profiles, task, !task->lost, &result);
  task->has_driver_recording = false;
  pthread_mutex_unlock (&profiles->lock);
  recording_free (recording);
  if (tell_driver &&
      driver_record_abort (profiles->driver, &task->driver_recording,
                           &err) < 0)
    log_debug ("%s", err.msg);
  pthread_mutex_lock (&profiles->lock);
}

void
task_run (struct profiles *profiles, struct task *task, int r)
{
  task->started_ns = task->last_open_ns = now_ns ();
  task->status = r;
  task_move (profiles, task, r == 0 ? TASK_RUNNING : TASK_GONE);
}

void
task_begin (struct profiles *profiles, struct task *task)
{
  int r;

  task->lost = false; /* Of an earlier session. */
  task->why.msg[0] = '\0';
  pthread_mutex_unlock (&profiles->lock);
  r = task->automatic ? begin_automatic (profiles, task, &task->why)
                      : begin_explicit (profiles, task, &task->why);
  pthread_mutex_lock (&profiles->lock);

  if (r < 0) {
    if (task->automatic && r != -ENOENT && !profiles->shutting_down)
      log_warn ("%s, not recording", task->why.msg);
    drop (profiles, task);
  }
  task_run (profiles, task, r);
}

/* ---- Finish ---- */

/* What finish works on, outside the lock. */
struct finish {
  struct recording *recording; /* Owned. */
  uint64_t sent_start;
  struct auto_facts facts;
  struct meta_facts meta;
  struct bp_blob_message *messages; /* Owned. */
  size_t count;
  uint8_t *data; /* Owned. */
  size_t len;
};

/* RECORD_STOP, and the cache's recording, even if that failed. */
static int
stop_recording (struct profiles *profiles, struct task *task,
                struct finish *finish, uint8_t **ret_log, size_t *ret_len,
                struct bp_error *err)
{
  const struct driver_recording recording = task->driver_recording;
  const struct recording_counts *counts = &task->counts;
  int r;

  pthread_mutex_unlock (&profiles->lock);
  r = driver_record_stop (profiles->driver, &recording, ret_log, ret_len,
                          err);
  pthread_mutex_lock (&profiles->lock);

  task->has_driver_recording = false;
  finish->recording = task_take_recording (profiles, task);
  finish->sent_start = recording.sent_start;
  finish->facts.is_complete = counts->is_complete;
  finish->facts.bytes_touched = counts->bytes;
  finish->facts.bytes_placed = task->export
                                 ? export_placed_bytes (task->export)
                                 : task->placed_bytes;
  finish->meta.opens = counts->touches;
  finish->meta.has_image = task->has_image && !task->has_images;
  finish->meta.image = task->image;
  finish->meta.automatic = task->automatic;
  finish->meta.seconds =
    (double) (now_ns () - task->started_ns) / NS_PER_SEC;
  return r;
}

/* Convert, encode, write.  Without the lock.  Returns 0; 1 if the
 * automatic mode left the old profile.
 */
static int
write_recorded (struct profiles *profiles, const struct task *task,
                struct finish *finish, const uint8_t *log, size_t log_len,
                struct bp_error *err)
{
  CLEANUP_FREE char *meta = NULL;
  const char *refusal, *const name = task->start.name;
  size_t logged;
  int r;

  r = recording_convert (finish->recording, log, log_len,
                         finish->sent_start, task->start.attach,
                         &finish->messages, &finish->count, &logged, err);
  if (r < 0)
    return r;
  METRIC_ADD (profile_records, logged);
  finish->meta.messages = logged;
  finish->meta.records = finish->count;
  if (task->automatic) {
    finish->facts.reads = &task->reads; /* The hooks are done with it. */
    refusal = auto_judge (profiles, name, &finish->facts, finish->messages,
                          finish->count);
    if (refusal) {
      log_info ("profile '%s': not written: %s", name, refusal);
      return 1;
    }
  }
  r = bp_profile_encode_blobs (finish->messages, finish->count,
                               &finish->data, &finish->len, err);
  if (r == 0)
    r = bp_merkle_root (finish->data, finish->len, &finish->meta.root);
  if (r == 0)
    r = meta_encode (&finish->meta, &meta, err);
  if (r == 0)
    r = driver_write_profile (profiles->driver, name, meta, finish->data,
                              finish->len, err);
  return r;
}

static void
set_result (struct task *task, const struct bp_root *root, uint64_t records)
{
  strcpy (task->result.name, task->start.name);
  task->result.root = *root;
  task->result.records = records;
}

/* The recording half of task_finish.  Lock held, released meanwhile. */
static int
finish_recording (struct profiles *profiles, struct task *task,
                  const struct replay_result *replay, struct bp_error *err)
{
  CLEANUP_FREE uint8_t *log = NULL;
  struct finish finish = { .meta.replay = replay };
  size_t log_len = 0;
  int r;

  r = stop_recording (profiles, task, &finish, &log, &log_len, err);
  pthread_mutex_unlock (&profiles->lock);
  if (r == 0)
    r = write_recorded (profiles, task, &finish, log, log_len, err);
  pthread_mutex_lock (&profiles->lock);
  if (r == 0) {
    set_result (task, &finish.meta.root, finish.count);
    log_info ("profile '%s': %zu records written", task->start.name,
              finish.count);
  }
  recording_free (finish.recording);
  free (finish.messages);
  free (finish.data);
  return r;
}

void
task_finish (struct profiles *profiles, struct task *task)
{
  struct replay_result result;
  bool replayed;
  int r = 0;

  replayed = end_replay (profiles, task, true, &result);
  if (task->records)
    r = finish_recording (profiles, task, replayed ? &result : NULL,
                          &task->why);
  else
    set_result (task, &task->replay_root, task->replay_records);

  if (r < 0 && (task->automatic || task->refs == 1))
    log_warn ("profile '%s': not written: %s", task->start.name,
              task->why.msg);
  if (r == 1)
    r = bp_error_set (&task->why, -EINVAL, "profile '%s': not written: the "
                                           "log says why",
                      task->start.name);
  task->status = r;
  task_move (profiles, task,
             task->automatic && task->refs == 1 ? TASK_GONE : TASK_ENDED);
}

/* ---- Abort ---- */

void
task_abort (struct profiles *profiles, struct task *task)
{
  const bool lost = task->lost && !profiles->shutting_down;

  if (lost && task->records)
    log_warn ("profile '%s': the driver was lost, recording aborted",
              task->start.name);
  drop (profiles, task);
  if (!lost || task->automatic || task->want_abort) {
    task->status = -ECANCELED;
    task_move (profiles, task, TASK_GONE);
    return;
  }
  task->status =
    bp_error_set (&task->why, -EINVAL, "profile '%s': the driver was lost, "
                                       "which aborted the recording",
                  task->start.name);
  task_move (profiles, task, TASK_ENDED);
}
