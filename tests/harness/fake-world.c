/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The fake world: its life, its clients, and what status says of it. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "daemon/options.h"
#include "daemon/profile/manager.h"
#include "harness/check.h"
#include "harness/fake-state.h"
#include "harness/fake-world.h"

struct fake_state state = { .lock = PTHREAD_MUTEX_INITIALIZER,
                            .wake = PTHREAD_COND_INITIALIZER };
struct world_settings world;
struct profiles *world_profiles;

/* ---- Small things ---- */

struct bp_root
world_root (unsigned n)
{
  struct bp_root root = { { 0 } };

  root.bytes[0] = (uint8_t) n;
  root.bytes[31] = 0xde;
  return root;
}

unsigned
number_of (const struct bp_root *root)
{
  CHECK (root->bytes[0] < WORLD_BLOBS);
  return root->bytes[0];
}

void
note_call (const char *fmt, ...)
{
  const size_t len = strlen (state.calls);
  va_list args;

  CHECK (len + 200 < sizeof state.calls);
  if (len > 0)
    strcat (state.calls, " ");
  va_start (args, fmt);
  vsnprintf (state.calls + strlen (state.calls), 190, fmt, args);
  va_end (args);
}

const char *
world_calls (void)
{
  static char copy[sizeof state.calls];
  LOCKED (&state.lock);

  strcpy (copy, state.calls);
  state.calls[0] = '\0';
  return copy;
}

void
append_log (uint64_t key, uint64_t offset)
{
  state.sent++;
  CHECK (state.nr_log < LOG_MAX);
  state.log[state.nr_log++] = (struct bp_file_message){ key, offset };
}

uint64_t
open_key (unsigned n)
{
  if (state.keys[n] != 0)
    return 0;
  note_call ("OPEN:%u", n);
  return state.keys[n] = ++state.last_key;
}

void
tell_key (uint64_t key, unsigned n)
{
  const struct bp_root root = world_root (n);

  if (key != 0)
    state.driver.key_opened (state.driver.opaque, key, &root);
}

/* ---- Clients ---- */

static struct export *
find_export (const char *name)
{
  struct export *export;
  unsigned n;

  for (export = state.exports; export; export = export->next) {
    if (strcmp (export->info.name, name) == 0)
      return export;
  }
  export = calloc (1, sizeof *export);
  snprintf (export->info.name, sizeof export->info.name, "%s", name);
  if (sscanf (name, "blob/%u", &n) == 1)
    export->info.kind = EXPORT_BLOB;
  else if (sscanf (name, "root/%u", &n) != 1) {
    n = 63;
    strcpy (export->info.tag, name);
  }
  export->info.root = world_root (n);
  export->next = state.exports;
  state.exports = export;
  return export;
}

struct export *
world_enter (const char *name)
{
  struct export *export;

  pthread_mutex_lock (&state.lock);
  export = find_export (name);
  export->clients++;
  pthread_mutex_unlock (&state.lock);
  state.pager.entered (state.pager.opaque, export);
  return export;
}

void
world_leave (struct export *export)
{
  unsigned remaining;

  pthread_mutex_lock (&state.lock);
  remaining = --export->clients;
  pthread_mutex_unlock (&state.lock);
  state.pager.left (state.pager.opaque, export, remaining);
}

static void
read_window (struct export *export, uint64_t offset, uint32_t len,
             struct window *window)
{
  const unsigned n = number_of (&window->root);
  const unsigned w = (unsigned) (window->offset / 131072);
  struct read_touch touch = { .window = window };
  const struct read_op op = {
    .export = export,
    .offset = offset,
    .len = len,
    .touches = &touch,
    .nr_touches = 1,
  };
  uint64_t key = 0;
  bool watched;

  if (world_watched (export))
    state.pager.read_started (state.pager.opaque, export, offset, len);
  pthread_mutex_lock (&state.lock);
  touch.warm = state.resident[n][w];
  touch.sent = state.sent;
  if (!touch.warm)
    key = open_key (n);
  pthread_mutex_unlock (&state.lock);
  tell_key (key, n);
  pthread_mutex_lock (&state.lock);
  if (!touch.warm)
    append_log (state.keys[n], window->offset);
  state.resident[n][w] = true;
  watched = export->watch > 0;
  pthread_mutex_unlock (&state.lock);
  if (watched)
    state.pager.read_served (state.pager.opaque, &op);
}

void
world_read (struct export *export, unsigned n, unsigned w, bool multi)
{
  struct window window = { world_root (n), w * UINT64_C (131072), multi };

  /* Places with gaps between them, so that it looks like no copy. */
  read_window (export, n * UINT64_C (1048576) + window.offset, 4096,
               &window);
}

void
world_read_at (struct export *export, unsigned n, uint64_t offset,
               uint32_t len)
{
  struct window window = { world_root (n), 0, false };

  read_window (export, offset, len, &window);
}

void
world_evict (unsigned n)
{
  LOCKED (&state.lock);

  memset (state.resident[n], 0, sizeof state.resident[n]);
  state.keys[n] = 0;
}

void
world_log (unsigned n, uint64_t offset)
{
  LOCKED (&state.lock);

  append_log (state.keys[n], offset);
}

void
world_lose_driver (void)
{
  pthread_mutex_lock (&state.lock);
  memset (state.keys, 0, sizeof state.keys);
  pthread_mutex_unlock (&state.lock);
  state.driver.session_lost (state.driver.opaque);
}

/* ---- Status ---- */

static const char *
status_text (struct json_object *array, bool with_state, char *text)
{
  text[0] = '\0';
  for (size_t i = 0; i < json_object_array_length (array); i++) {
    struct json_object *obj = json_object_array_get_idx (array, i);

    if (i > 0)
      strcat (text, " ");
    strcat (text, bp_json_get_string (obj, "name"));
    if (with_state) {
      strcat (text, ":");
      strcat (text, bp_json_get_string (obj, "state"));
    }
  }
  return text;
}

const char *
world_recordings (void)
{
  static char text[1000];
  CLEANUP_JSON struct json_object *recordings = NULL;
  CLEANUP_JSON struct json_object *replays = NULL;

  profiles_status (world_profiles, &recordings, &replays);
  return status_text (recordings, false, text);
}

const char *
world_replays (void)
{
  static char text[1000];
  CLEANUP_JSON struct json_object *recordings = NULL;
  CLEANUP_JSON struct json_object *replays = NULL;

  profiles_status (world_profiles, &recordings, &replays);
  return status_text (replays, true, text);
}

int
world_start_recording (const char *name, const char *export_tag)
{
  struct profile_start start = { 0 };

  strcpy (start.name, name);
  strcpy (start.export_tag, export_tag);
  return profiles_start (world_profiles, &start, NULL);
}

int
world_stop (const char *name, uint64_t *ret_records)
{
  struct profile_result result = { 0 };
  const int r = profiles_stop (world_profiles, name, &result, NULL);

  if (r == 0) {
    CHECK (strcmp (result.name, name) == 0);
    if (ret_records)
      *ret_records = result.records;
  }
  return r;
}

bool
world_is_idle (void)
{
  const struct task *task;
  LOCKED (&world_profiles->lock);

  for (task = world_profiles->tasks; task; task = task->next) {
    if (task->records && task_is_live (task))
      return false;
  }
  return true;
}

bool
world_is_recording (void)
{
  const struct task *task;
  LOCKED (&world_profiles->lock);

  for (task = world_profiles->tasks; task; task = task->next) {
    if (task->recording && task->state == TASK_RUNNING)
      return true;
  }
  return false;
}

void
world_wait (bool (*condition) (void))
{
  const struct timespec slice = { .tv_nsec = 2 * NS_PER_MS };
  const uint64_t end = now_ns () + 20 * NS_PER_SEC;

  while (!condition ()) {
    CHECK (now_ns () < end);
    nanosleep (&slice, NULL);
  }
}

/* ---- Life ---- */

void
world_start (unsigned driver_timeout, bool is_auto)
{
  const struct options options = { .profile_auto = is_auto,
                                   .driver_timeout = driver_timeout };

  memset (&world, 0, sizeof world);
  world.pin_room = WORLD_BLOBS * WORLD_WINDOWS;
  state.stop = state.hold = false;
  CHECK_EQ (pthread_create (&state.lane, NULL, lane_main, NULL), 0);
  CHECK_EQ (profiles_new (&world_profiles, &options, NULL, NULL, NULL), 0);
}

void
world_start_auto (unsigned seconds)
{
  world_start (20, true);
  world_profiles->auto_s = seconds;
}

static void
forget_everything (void)
{
  struct export *export;

  while ((export = state.exports)) {
    CHECK_EQ (export->watch, 0);
    state.exports = export->next;
    free (export);
  }
  forget_profiles ();
  memset (state.keys, 0, sizeof state.keys);
  memset (state.resident, 0, sizeof state.resident);
  state.last_key = state.sent = state.nr_log = state.recording_id = 0;
  state.calls[0] = '\0';
}

void
world_end (void)
{
  profiles_shut_down (world_profiles);
  pthread_mutex_lock (&state.lock);
  state.stop = true;
  pthread_cond_broadcast (&state.wake);
  pthread_mutex_unlock (&state.lock);
  pthread_join (state.lane, NULL);
  profiles_free (world_profiles);
  lane_main (NULL); /* What a replay asked for since then. */
  CHECK_EQ (count_pinned (), 0);
  CHECK_EQ (state.users, 0);
  forget_everything ();
}
