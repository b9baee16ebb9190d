/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The replay of a task: from the stored profile, through the replay, to
 * the counters that the driver is told.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "daemon/log.h"
#include "daemon/profile/manager.h"

/* ---- Reading a stored profile ---- */

/* DATA must be what META names: the driver's word, kept honest so that
 * counters are not given to another profile.
 */
static int
check_root (const char *name, const char *meta_text, const uint8_t *data,
            size_t len, struct bp_root *ret_root, struct bp_error *err)
{
  CLEANUP_JSON struct json_object *meta = NULL;
  struct bp_root named;
  const char *hex;
  int r;

  r = bp_merkle_root (data, len, ret_root);
  if (r < 0)
    return bp_error_set (err, r, "profile '%s': %m", name);
  if (bp_json_parse (meta_text, strlen (meta_text), &meta) < 0)
    return bp_error_set (err, -EBADMSG, "profile '%s': its metadata cannot "
                                        "be decoded",
                         name);
  hex = bp_json_get_string (meta, "root");
  if (hex == NULL || bp_root_parse (hex, &named) < 0 ||
      !bp_root_equal (&named, ret_root))
    return bp_error_set (err, -EBADMSG, "profile '%s': its bytes are not "
                                        "their root",
                         name);
  return 0;
}

int
load_profile (struct profiles *profiles, const char *name,
              struct loaded_profile *ret_profile, struct bp_error *err)
{
  CLEANUP_FREE char *meta = NULL;
  CLEANUP_FREE uint8_t *data = NULL;
  struct loaded_profile profile;
  size_t len;
  int r;

  r = driver_get_profile (profiles->driver, name, &meta, &data, &len, err);
  if (r < 0)
    return r;
  r = check_root (name, meta, data, len, &profile.root, err);
  if (r < 0)
    return r;
  r = bp_profile_decode_blobs (data, len, &profile.messages, &profile.count,
                               err);
  if (r < 0)
    return r == -ENOMEM || r == -ERANGE ? r : -EBADMSG;
  *ret_profile = profile;
  return 0;
}

/* ---- Replay ---- */

static void
wake_manager (void *opaque)
{
  struct profiles *profiles = opaque;
  LOCKED (&profiles->lock);

  pthread_cond_signal (&profiles->wake);
}

int
start_replay (struct profiles *profiles, struct task *task,
              const struct loaded_profile *profile, struct bp_error *err)
{
  const struct replay_config config = {
    .pager = profiles->pager,
    .fetcher = profiles->fetcher,
    .limit = &profiles->limit,
    .name = task->start.name,
    .drained = wake_manager,
    .opaque = profiles,
  };
  struct replay *replay;
  int r;

  r = replay_start (&replay, &config, profile->messages, profile->count,
                    err);
  if (r < 0)
    return r;
  LOCKED (&profiles->lock);
  settle_stalls (profiles); /* What came before is not this replay's. */
  task->replay = replay;
  task->replay_root = profile->root;
  task->replay_records = profile->count;
  return 0;
}

static void
remember_replay (struct profiles *profiles, const char *name,
                 const struct replay_counts *counts)
{
  struct past_replay *past = profiles->past;
  unsigned i;

  for (i = 0; i < profiles->nr_past; i++) {
    if (strcmp (past[i].name, name) == 0)
      break;
  }
  if (i == profiles->nr_past) {
    if (profiles->nr_past < MAX_PAST)
      profiles->nr_past++;
    else
      i--;
  }
  memmove (&past[1], &past[0], i * sizeof past[0]);
  snprintf (past[0].name, sizeof past[0].name, "%s", name);
  past[0].counts = *counts;
}

bool
end_replay (struct profiles *profiles, struct task *task, bool tell,
            struct replay_result *ret_result)
{
  CLEANUP_FREE char *text = NULL;
  struct replay *replay = task->replay;
  const struct bp_root root = task->replay_root;
  struct bp_error err;

  if (replay == NULL)
    return false;
  settle_stalls (profiles);
  task->replay = NULL;
  ret_result->stalls = task->stalls;
  ret_result->stall_ns = task->stall_ns;
  replay_count (replay, &ret_result->counts);
  remember_replay (profiles, task->start.name, &ret_result->counts);
  pthread_mutex_unlock (&profiles->lock);

  replay_free (replay);
  if (tell && (counters_encode (ret_result, &text, &err) < 0 ||
               driver_profile_used (profiles->driver, task->start.name,
                                    &root, text, &err) < 0))
    log_debug ("%s", err.msg);
  pthread_mutex_lock (&profiles->lock);
  return true;
}
