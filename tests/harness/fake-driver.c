/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The fake driver, with its store of profiles. */
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

/* ---- driver.h ---- */

struct fetcher *
driver_fetcher (struct driver *driver)
{
  return (struct fetcher *) driver;
}

void
driver_observe (struct driver *driver,
                const struct driver_observer *observer)
{
  (void) driver;
  state.driver = *observer;
}

int
driver_get_image (struct driver *driver, const char *name,
                  struct bp_tag *ret_tag, struct bp_error *err)
{
  (void) driver;
  if (strcmp (name, "absent") == 0)
    return bp_error_set (err, -ENOENT, "image '%s': no such tag", name);
  memset (ret_tag, 0, sizeof *ret_tag);
  snprintf (ret_tag->name, sizeof ret_tag->name, "%s", name);
  ret_tag->root = world_root (63);
  return 0;
}

/* Two tags, the later one in byte order first. */
int
driver_list_images (struct driver *driver, struct bp_tag **ret_tags,
                    size_t *ret_count, struct bp_error *err)
{
  struct bp_tag *tags = calloc (3, sizeof *tags);

  (void) driver;
  (void) err;
  strcpy (tags[0].name, "zebra");
  strcpy (tags[1].name, "ant");
  strcpy (tags[2].name, "aardvark");
  tags[0].root = tags[1].root = world_root (63);
  tags[2].root = world_root (62);
  *ret_tags = tags;
  *ret_count = 3;
  return 0;
}

static struct stored *
find_profile (const char *name)
{
  for (size_t i = 0; i < NR_PROFILES; i++) {
    if (strcmp (state.profiles[i].name, name) == 0)
      return &state.profiles[i];
  }
  return NULL;
}

static void
put_profile (const char *name, const char *meta, const uint8_t *data,
             size_t len)
{
  struct stored *stored = find_profile (name);

  if (stored == NULL)
    stored = find_profile ("");
  CHECK (stored != NULL);
  snprintf (stored->name, sizeof stored->name, "%s", name);
  free (stored->meta);
  free (stored->data);
  stored->meta = strdup (meta);
  stored->data = malloc (len + 1);
  if (len > 0)
    memcpy (stored->data, data, len);
  stored->len = len;
}

int
driver_get_profile (struct driver *driver, const char *name,
                    char **ret_meta, uint8_t **ret_data, size_t *ret_len,
                    struct bp_error *err)
{
  const struct stored *stored;
  LOCKED (&state.lock);

  (void) driver;
  note_call ("GET_PROFILE");
  if (world.get_profile < 0)
    return bp_error_set (err, world.get_profile, "profile: GET_PROFILE: %m");
  stored = find_profile (name);
  if (stored == NULL)
    return bp_error_set (err, -ENOENT, "profile '%s': absent", name);
  *ret_meta = strdup (stored->meta);
  *ret_data = malloc (stored->len + 1);
  memcpy (*ret_data, stored->data, stored->len);
  *ret_len = stored->len;
  return 0;
}

int
driver_write_profile (struct driver *driver, const char *name,
                      const char *meta, const uint8_t *data, size_t len,
                      struct bp_error *err)
{
  LOCKED (&state.lock);

  (void) driver;
  note_call ("WRITE_PROFILE");
  if (world.write_profile < 0)
    return bp_error_set (err, world.write_profile, "profile: write: %m");
  put_profile (name, meta, data, len);
  return 0;
}

int
driver_profile_used (struct driver *driver, const char *name,
                     const struct bp_root *root, const char *counters,
                     struct bp_error *err)
{
  CLEANUP_JSON struct json_object *obj = NULL;
  LOCKED (&state.lock);

  (void) driver;
  (void) name;
  (void) root;
  (void) err;
  CHECK_EQ (bp_json_parse (counters, strlen (counters), &obj), 0);
  note_call ("PROFILE_USED");
  return 0;
}

int
driver_list_profiles (struct driver *driver, char **ret_json,
                      struct bp_error *err)
{
  (void) driver;
  (void) err;
  *ret_json = strdup ("{\"profiles\":[]}");
  return 0;
}

int
driver_delete_profile (struct driver *driver, const char *name,
                       struct bp_error *err)
{
  (void) driver;
  return bp_error_set (err, -ENOENT, "profile '%s': absent", name);
}

int
driver_record_start (struct driver *driver,
                     struct driver_recording *ret_recording,
                     struct bp_error *err)
{
  (void) driver;
  if (world.in_record_start)
    world.in_record_start ();
  LOCKED (&state.lock);
  note_call ("RECORD_START");
  if (world.record_start < 0)
    return bp_error_set (err, world.record_start, "record: start: %m");
  CHECK (state.recording_id + 1 < NR_RECORDINGS);
  ret_recording->id = ++state.recording_id;
  state.log_start[ret_recording->id] = state.nr_log;
  ret_recording->epoch = 1;
  ret_recording->sent_start = state.sent;
  return 0;
}

int
driver_record_stop (struct driver *driver,
                    const struct driver_recording *recording,
                    uint8_t **ret_data, size_t *ret_len,
                    struct bp_error *err)
{
  size_t from;
  LOCKED (&state.lock);

  (void) driver;
  note_call ("RECORD_STOP");
  if (world.record_stop < 0)
    return bp_error_set (err, world.record_stop, "record: stop: %m");
  from = state.log_start[recording->id];
  return bp_profile_encode_files (state.log + from, state.nr_log - from,
                                  ret_data, ret_len, err);
}

int
driver_record_abort (struct driver *driver,
                     const struct driver_recording *recording,
                     struct bp_error *err)
{
  LOCKED (&state.lock);

  (void) driver;
  (void) recording;
  (void) err;
  note_call ("RECORD_ABORT");
  return 0;
}

/* ---- Stored profiles, as text ---- */

void
world_put_profile (const char *name, const char *records)
{
  struct bp_blob_message messages[64];
  CLEANUP_FREE uint8_t *data = NULL;
  char meta[200], hex[BP_ROOT_HEX_SIZE];
  struct bp_root root;
  size_t count = 0, len;
  unsigned n;
  unsigned long long offset;
  int used;

  while (sscanf (records, " %u@%llu%n", &n, &offset, &used) == 2) {
    messages[count].root = world_root (n);
    messages[count++].offset = offset;
    records += used;
  }
  CHECK_EQ (bp_profile_encode_blobs (messages, count, &data, &len, NULL), 0);
  CHECK_EQ (bp_merkle_root (data, len, &root), 0);
  snprintf (meta, sizeof meta, "{\"root\":\"%s\"}",
            bp_root_format (&root, hex));
  LOCKED (&state.lock);
  put_profile (name, meta, data, len);
}

const char *
world_get_profile (const char *name)
{
  static char text[4096];
  CLEANUP_FREE struct bp_blob_message *messages = NULL;
  const struct stored *stored;
  size_t count, used = 0;
  LOCKED (&state.lock);

  stored = find_profile (name);
  if (stored == NULL)
    return NULL;
  CHECK_EQ (bp_profile_decode_blobs (stored->data, stored->len, &messages,
                                     &count, NULL),
            0);
  text[0] = '\0';
  for (size_t i = 0; i < count; i++)
    used += (size_t) snprintf (text + used, sizeof text - used, "%s%u@%llu",
                               i ? " " : "", number_of (&messages[i].root),
                               (unsigned long long) messages[i].offset);
  return text;
}

const char *
world_get_meta (const char *name)
{
  const struct stored *stored;
  LOCKED (&state.lock);

  stored = find_profile (name);
  return stored ? stored->meta : NULL;
}

void
forget_profiles (void)
{
  for (size_t i = 0; i < NR_PROFILES; i++) {
    free (state.profiles[i].meta);
    free (state.profiles[i].data);
  }
  memset (state.profiles, 0, sizeof state.profiles);
}
