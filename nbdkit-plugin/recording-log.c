/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The logs of a session's active recordings: growing arrays under one
 * lock.  A log that has failed (too long, out of memory) keeps no
 * messages, only the code that its stop will answer.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/merkle.h"
#include "lib/profile.h"
#include "nbdkit-plugin/recording-log.h"

enum {
  FIRST_CAPACITY = 1024 /* messages */
};

struct recording {
  uint64_t id; /* 0: this place is free. */
  struct bp_file_message *messages;
  size_t nr_messages;
  size_t capacity; /* Messages that fit. */
  int failed;      /* 0, -ERANGE or -ENOMEM. */
};

struct recording_set {
  pthread_mutex_t lock; /* Protects everything below. */
  uint64_t last_id;
  unsigned nr_active;
  struct recording recordings[RECORDING_LOG_MAX_ACTIVE];
};

int
recording_set_new (struct recording_set **ret_set)
{
  struct recording_set *set = calloc (1, sizeof *set);

  if (set == NULL)
    return -ENOMEM;
  pthread_mutex_init (&set->lock, NULL);
  *ret_set = set;
  return 0;
}

void
recording_set_free (struct recording_set *set)
{
  if (set == NULL)
    return;
  for (size_t i = 0; i < ARRAY_LEN (set->recordings); i++)
    free (set->recordings[i].messages);
  pthread_mutex_destroy (&set->lock);
  free (set);
}

/* The recording ID, or a free place for ID 0.  Called with the lock held.
 */
static struct recording *
find (struct recording_set *set, uint64_t id)
{
  for (size_t i = 0; i < ARRAY_LEN (set->recordings); i++)
    if (set->recordings[i].id == id)
      return &set->recordings[i];
  return NULL;
}

int
recording_start (struct recording_set *set, uint64_t *ret_id,
                 struct bp_error *err)
{
  LOCKED (&set->lock);
  struct recording *recording = find (set, 0);

  if (recording == NULL)
    return bp_error_set (err, -EBUSY, "recording: %d are active already",
                         RECORDING_LOG_MAX_ACTIVE);
  recording->id = ++set->last_id;
  set->nr_active++;
  *ret_id = recording->id;
  return 0;
}

/* Take recording ID out of the set; its messages are then the caller's.
 */
static int
take (struct recording_set *set, uint64_t id,
      struct recording *ret_recording, struct bp_error *err)
{
  LOCKED (&set->lock);
  struct recording *recording = id ? find (set, id) : NULL;

  if (recording == NULL)
    return bp_error_set (err, -EINVAL,
                         "recording %" PRIu64 ": is not active", id);
  *ret_recording = *recording;
  *recording = (struct recording){ 0 };
  set->nr_active--;
  return 0;
}

int
recording_stop (struct recording_set *set, uint64_t id, uint8_t **ret_data,
                size_t *ret_len, struct bp_error *err)
{
  struct recording recording;
  CLEANUP_FREE struct bp_file_message *messages = NULL;
  int r;

  r = take (set, id, &recording, err);
  if (r < 0)
    return r;
  messages = recording.messages;
  if (recording.failed)
    return bp_error_set (err, recording.failed,
                         "recording %" PRIu64 ": %m", id);
  return bp_profile_encode_files (messages, recording.nr_messages, ret_data,
                                  ret_len, err);
}

int
recording_abort (struct recording_set *set, uint64_t id,
                 struct bp_error *err)
{
  struct recording recording;
  int r;

  r = take (set, id, &recording, err);
  if (r < 0)
    return r;
  free (recording.messages);
  return 0;
}

bool
recording_is_active (struct recording_set *set)
{
  LOCKED (&set->lock);

  return set->nr_active > 0;
}

static void
fail (struct recording *recording, int code)
{
  free (recording->messages);
  recording->messages = NULL;
  recording->nr_messages = recording->capacity = 0;
  recording->failed = code;
}

/* Room for COUNT more messages, or the recording has failed. */
static bool
reserve (struct recording *recording, uint64_t count)
{
  size_t capacity = MAX (recording->capacity, (size_t) FIRST_CAPACITY);
  struct bp_file_message *messages;

  if (recording->failed)
    return false;
  if (count > BP_RECORDING_MAX - recording->nr_messages) {
    fail (recording, -ERANGE);
    return false;
  }
  if (recording->nr_messages + count <= recording->capacity)
    return true;

  while (capacity < recording->nr_messages + count)
    capacity *= 2;
  messages = reallocarray (recording->messages, capacity, sizeof *messages);
  if (messages == NULL) {
    fail (recording, -ENOMEM);
    return false;
  }
  recording->messages = messages;
  recording->capacity = capacity;
  return true;
}

void
recording_append (struct recording_set *set, uint64_t key, uint64_t first,
                  uint64_t last)
{
  LOCKED (&set->lock);

  for (size_t i = 0; i < ARRAY_LEN (set->recordings); i++) {
    struct recording *recording = &set->recordings[i];

    if (recording->id == 0 || !reserve (recording, last - first + 1))
      continue;
    for (uint64_t w = first; w <= last; w++)
      recording->messages[recording->nr_messages++] =
        (struct bp_file_message){ .id = key, .offset = w * BP_WINDOW_SIZE };
  }
}
