/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* recordings[] and replay[] of `status`. */
#include <config.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "daemon/pager/fetcher.h"
#include "daemon/profile/manager.h"

/* Messages that the driver has logged by now, by our count, and client
 * opens.
 */
static uint64_t
count_records (const struct task *task, uint64_t sent)
{
  struct recording_counts counts = task->counts;
  uint64_t records;

  if (task->recording)
    recording_count (task->recording, &counts);
  records = counts.touches;
  if (task->has_driver_recording)
    records += sent - task->driver_recording.sent_start;
  return records;
}

static struct json_object *
recording_json (const struct task *task, uint64_t sent, uint64_t now)
{
  struct json_object *obj = json_object_new_object ();
  const bool has_begun = task->state > TASK_STARTING;

  bp_json_add_string (obj, "name", task->start.name);
  bp_json_add_string (obj, "export", task->start.export_tag);
  bp_json_add_bool (obj, "automatic", task->automatic);
  bp_json_add_u64 (obj, "records", count_records (task, sent));
  bp_json_add_double (obj, "seconds",
                      has_begun ? (double) (now - task->started_ns) /
                                    NS_PER_SEC
                                : 0);
  return obj;
}

static struct json_object *
replay_json (const char *name, const char *state,
             const struct replay_counts *counts)
{
  struct json_object *obj = json_object_new_object ();

  bp_json_add_string (obj, "name", name);
  bp_json_add_string (obj, "state", state);
  add_replay_counts (obj, counts);
  return obj;
}

static void
add_replay (struct json_object *replays, const struct task *task)
{
  struct replay_counts counts;

  replay_count (task->replay, &counts);
  json_object_array_add (replays,
                         replay_json (task->start.name,
                                      replay_is_drained (task->replay)
                                        ? "drained"
                                        : "running",
                                      &counts));
}

void
profiles_status (struct profiles *profiles,
                 struct json_object **ret_recordings,
                 struct json_object **ret_replays)
{
  const uint64_t sent = fetcher_windows_sent (profiles->fetcher);
  const uint64_t now = now_ns ();
  const struct task *task;
  unsigned i;
  LOCKED (&profiles->lock);

  *ret_recordings = json_object_new_array ();
  *ret_replays = json_object_new_array ();
  for (task = profiles->tasks; task; task = task->next) {
    if (task->records && task_is_live (task))
      json_object_array_add (*ret_recordings,
                             recording_json (task, sent, now));
    if (task->replay)
      add_replay (*ret_replays, task);
  }
  for (i = 0; i < profiles->nr_past; i++)
    json_object_array_add (*ret_replays,
                           replay_json (profiles->past[i].name, "ended",
                                        &profiles->past[i].counts));
}
