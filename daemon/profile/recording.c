/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The tables of a recording, two arrays with a hash index each:
 *
 *   keys     key → root        kept after close, so that both keys of a
 *                              blob that was reopened count
 *   touches  (root, window)    in the order of their first touch
 *
 * Each holds at most BP_RECORDING_MAX entries.  The driver's log holds no
 * more either, so a recording that needs more has failed in any case.
 *
 * A touch of a window that was verified already is not in the driver's
 * log: it becomes a note, put where the log had come to (`sent`).  The
 * same goes for a window that was on its way when the recording started:
 * nobody had verified it, yet the log lacks it.  Which those are is only
 * known from the log, so notes are made at the end, of every touch that
 * was warm or that the log does not have.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "daemon/profile/hash-index.h"
#include "daemon/profile/recording.h"

struct recording {
  struct bp_key_entry *keys;
  size_t nr_keys, room_keys;
  struct hash_index key_index;

  struct touch *touches;
  size_t nr_touches, room_touches;
  struct hash_index touch_index;

  uint64_t bytes;
  bool is_complete;
};

struct recording *
recording_new (void)
{
  struct recording *recording = calloc (1, sizeof *recording);

  if (recording == NULL)
    return NULL;
  hash_index_init (&recording->key_index);
  hash_index_init (&recording->touch_index);
  recording->is_complete = true;
  return recording;
}

void
recording_free (struct recording *recording)
{
  if (recording == NULL)
    return;
  hash_index_done (&recording->key_index);
  hash_index_done (&recording->touch_index);
  free (recording->keys);
  free (recording->touches);
  free (recording);
}

/* Make room for one more of SIZE bytes in an array of COUNT, of ROOM. */
static bool
make_room (void *array_ptr, size_t count, size_t *room, size_t size)
{
  void **array = array_ptr;
  const size_t wanted = *room ? *room * 2 : 256;
  void *grown;

  if (count >= BP_RECORDING_MAX)
    return false;
  if (count < *room)
    return true;
  grown = realloc (*array, wanted * size);
  if (grown == NULL)
    return false;
  *array = grown;
  *room = wanted;
  return true;
}

struct key_search {
  const struct recording *recording;
  uint64_t key;
};

static bool
is_key (const void *opaque, uint32_t number)
{
  const struct key_search *search = opaque;

  return search->recording->keys[number].key == search->key;
}

static uint32_t
find_key (const struct recording *recording, uint64_t key)
{
  const struct key_search search = { recording, key };

  return hash_index_find (&recording->key_index,
                          hash_u64 (&recording->key_index, key),
                          is_key, &search);
}

void
recording_add_key (struct recording *recording, uint64_t key,
                   const struct bp_root *root)
{
  const size_t n = recording->nr_keys;

  if (find_key (recording, key) != HASH_INDEX_NONE)
    return;
  if (!make_room (&recording->keys, n, &recording->room_keys,
                  sizeof recording->keys[0]) ||
      hash_index_add (&recording->key_index,
                      hash_u64 (&recording->key_index, key),
                      (uint32_t) n) < 0) {
    recording->is_complete = false;
    return;
  }
  recording->keys[n] = (struct bp_key_entry){ key, *root };
  recording->nr_keys = n + 1;
}

struct touch_search {
  const struct recording *recording;
  const struct bp_root *root;
  uint64_t offset;
};

static bool
is_touch (const void *opaque, uint32_t number)
{
  const struct touch_search *search = opaque;
  const struct touch *touch = &search->recording->touches[number];

  return touch->offset == search->offset &&
         bp_root_equal (&touch->root, search->root);
}

static uint32_t
find_touch (const struct recording *recording, const struct bp_root *root,
            uint64_t offset)
{
  const struct touch_search search = { recording, root, offset };
  const struct hash_index *index = &recording->touch_index;

  return hash_index_find (index, hash_root (index, root, offset),
                          is_touch, &search);
}

bool
recording_add_touch (struct recording *recording, const struct touch *touch)
{
  const size_t n = recording->nr_touches;
  struct hash_index *index = &recording->touch_index;

  if (find_touch (recording, &touch->root, touch->offset) !=
      HASH_INDEX_NONE)
    return false;
  if (!make_room (&recording->touches, n, &recording->room_touches,
                  sizeof recording->touches[0]) ||
      hash_index_add (index,
                      hash_root (index, &touch->root, touch->offset),
                      (uint32_t) n) < 0) {
    recording->is_complete = false;
    return false;
  }
  recording->touches[n] = *touch;
  recording->nr_touches = n + 1;
  recording->bytes += touch->len;
  return true;
}

void
recording_count (const struct recording *recording,
                 struct recording_counts *ret_counts)
{
  ret_counts->touches = recording->nr_touches;
  ret_counts->bytes = recording->bytes;
  ret_counts->is_complete = recording->is_complete;
}

/* Set LOGGED[i] for each touch i that the driver's messages have. */
static void
mark_logged (const struct recording *recording,
             const struct bp_file_message *messages, size_t count,
             bool *logged)
{
  const uint64_t window = BP_WINDOW_SIZE;
  uint32_t key, touch;
  size_t i;

  for (i = 0; i < count; i++) {
    if (messages[i].offset == BP_OPEN_MARKER)
      continue;
    key = find_key (recording, messages[i].id);
    if (key == HASH_INDEX_NONE)
      continue;
    touch = find_touch (recording, &recording->keys[key].root,
                        messages[i].offset - messages[i].offset % window);
    if (touch != HASH_INDEX_NONE)
      logged[touch] = true;
  }
}

static int
compare_sent (const void *va, const void *vb)
{
  const struct bp_warm_note *a = va, *b = vb;

  return a->sent < b->sent ? -1 : a->sent > b->sent;
}

/* Lookups of several reads may overtake each other between stamp and
 * touch, so stamps are not quite in order: sort them, stably.
 */
static int
sort_notes (struct bp_warm_note *notes, size_t count)
{
  CLEANUP_FREE struct bp_warm_note *spare = NULL;
  struct bp_warm_note *from, *to, *swap;
  size_t width, lo, mid, hi, a, b, k;

  if (count < 2)
    return 0;
  spare = malloc (count * sizeof *spare);
  if (spare == NULL)
    return -ENOMEM;
  from = notes;
  to = spare;
  for (width = 1; width < count; width *= 2) {
    for (lo = 0; lo < count; lo = hi) {
      mid = lo + width < count ? lo + width : count;
      hi = mid + width < count ? mid + width : count;
      for (k = lo, a = lo, b = mid; k < hi; k++) {
        if (a < mid && (b >= hi || compare_sent (&from[a], &from[b]) <= 0))
          to[k] = from[a++];
        else
          to[k] = from[b++];
      }
    }
    swap = from, from = to, to = swap;
  }
  if (from != notes)
    memcpy (notes, from, count * sizeof *notes);
  return 0;
}

/* The notes and the client opens of RECORDING; room for all touches. */
static int
list_touches (const struct recording *recording, const bool *logged,
              uint64_t sent_start, struct bp_warm_note *notes,
              size_t *ret_nr_notes, struct bp_client_open *opens)
{
  size_t i, n = 0;

  for (i = 0; i < recording->nr_touches; i++) {
    const struct touch *touch = &recording->touches[i];

    opens[i] = (struct bp_client_open){ touch->root, touch->offset,
                                        touch->multi };
    if (!touch->warm && logged[i])
      continue;
    notes[n].root = touch->root;
    notes[n].offset = touch->offset;
    notes[n].sent = touch->sent > sent_start ? touch->sent - sent_start : 0;
    n++;
  }
  *ret_nr_notes = n;
  return sort_notes (notes, n);
}

int
recording_convert (const struct recording *recording, const uint8_t *log,
                   size_t log_len, uint64_t sent_start, bool unfiltered,
                   struct bp_blob_message **ret_messages, size_t *ret_count,
                   size_t *ret_logged, struct bp_error *err)
{
  CLEANUP_FREE struct bp_file_message *messages = NULL;
  CLEANUP_FREE bool *logged = NULL;
  CLEANUP_FREE struct bp_warm_note *notes = NULL;
  CLEANUP_FREE struct bp_client_open *opens = NULL;
  const size_t n = recording->nr_touches;
  struct bp_recording_log all = { .unfiltered = unfiltered };
  int r;

  r = bp_profile_decode_files (log, log_len, &messages, &all.nr_messages,
                               err);
  if (r < 0)
    return r;
  logged = calloc (n + 1, sizeof *logged);
  notes = malloc ((n + 1) * sizeof *notes);
  opens = malloc ((n + 1) * sizeof *opens);
  if (logged == NULL || notes == NULL || opens == NULL)
    return bp_error_set (err, -ENOMEM, "recording: out of memory");
  mark_logged (recording, messages, all.nr_messages, logged);
  r = list_touches (recording, logged, sent_start, notes, &all.nr_notes,
                    opens);
  if (r < 0)
    return bp_error_set (err, r, "recording: out of memory");

  all.messages = messages;
  all.keys = recording->keys;
  all.nr_keys = recording->nr_keys;
  all.opens = opens;
  all.nr_opens = n;
  all.notes = notes;
  if (ret_logged)
    *ret_logged = all.nr_messages;
  return bp_profile_convert (&all, ret_messages, ret_count, err);
}
