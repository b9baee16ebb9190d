/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* From a driver's log to a profile.
 *
 *   driver's messages ─┐ by key                     client opens
 *                      ├─▶ one list, by time ─▶ filter ─▶ first ones only
 *   warm notes ────────┘ by stamp
 *
 * A log has up to 2^20 messages and as many notes, so keys are searched
 * in a sorted table, and opens and duplicates in hash sets.  The driver
 * chooses offsets: the sets are seeded, so that it cannot aim at their
 * buckets.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "lib/profile.h"

/* ---- Sets of (root, offset) ---- */

/* A set over elements of an array, by open addressing: at most half of
 * the slots are used.
 */
struct message_set {
  const struct bp_blob_message *list; /* Borrowed. */
  uint32_t *slots;                    /* Index in list + 1; 0: free. */
  size_t mask;                        /* Slots - 1. */
  uint64_t seed;
};

static void
set_done (struct message_set *set)
{
  free (set->slots);
}
#define CLEANUP_SET __attribute__ ((cleanup (set_done)))

/* Room for CAPACITY elements of LIST. */
static int
set_init (struct message_set *set, const struct bp_blob_message *list,
          size_t capacity)
{
  size_t nr_slots = 16;

  while (nr_slots < 2 * capacity)
    nr_slots *= 2;
  set->slots = calloc (nr_slots, sizeof set->slots[0]);
  if (set->slots == NULL)
    return -ENOMEM;
  set->list = list;
  set->mask = nr_slots - 1;
  set->seed = now_ns () ^ (uintptr_t) set->slots;
  return 0;
}

static bool
message_equal (const struct bp_blob_message *a,
               const struct bp_blob_message *b)
{
  return a->offset == b->offset && bp_root_equal (&a->root, &b->root);
}

/* The slot of MESSAGE, or the free one where it would go. */
static uint32_t *
find_slot (const struct message_set *set,
           const struct bp_blob_message *message)
{
  size_t i = XXH3_64bits_withSeed (message->root.bytes, BP_ROOT_SIZE,
                                   set->seed ^ message->offset);

  for (;; i++) {
    uint32_t *slot = &set->slots[i & set->mask];

    if (*slot == 0 || message_equal (&set->list[*slot - 1], message))
      return slot;
  }
}

static bool
set_has (const struct message_set *set,
         const struct bp_blob_message *message)
{
  return *find_slot (set, message) != 0;
}

/* Add element I of the list.  Returns false if its equal was there. */
static bool
set_add (struct message_set *set, size_t i)
{
  uint32_t *slot = find_slot (set, &set->list[i]);

  if (*slot != 0)
    return false;
  *slot = (uint32_t) i + 1;
  return true;
}

/* ---- Keys ---- */

static int
compare_keys (const void *a, const void *b)
{
  const uint64_t x = ((const struct bp_key_entry *) a)->key;
  const uint64_t y = ((const struct bp_key_entry *) b)->key;

  return (x > y) - (x < y);
}

static struct bp_key_entry *
sort_keys (const struct bp_recording_log *log)
{
  struct bp_key_entry *keys = calloc (MAX (log->nr_keys, 1), sizeof *keys);

  if (keys && log->nr_keys > 0) {
    memcpy (keys, log->keys, log->nr_keys * sizeof *keys);
    qsort (keys, log->nr_keys, sizeof *keys, compare_keys);
  }
  return keys;
}

/* ---- Notes ---- */

/* A note's place: its stamp, then its number. */
struct stamp {
  uint64_t sent;
  size_t number;
};

static int
compare_stamps (const void *a, const void *b)
{
  const struct stamp *x = a, *y = b;

  if (x->sent != y->sent)
    return (x->sent > y->sent) - (x->sent < y->sent);
  return (x->number > y->number) - (x->number < y->number);
}

static struct stamp *
sort_notes (const struct bp_recording_log *log)
{
  struct stamp *stamps = calloc (MAX (log->nr_notes, 1), sizeof *stamps);

  if (stamps == NULL)
    return NULL;
  for (size_t i = 0; i < log->nr_notes; i++)
    stamps[i] = (struct stamp){ log->notes[i].sent, i };
  qsort (stamps, log->nr_notes, sizeof *stamps, compare_stamps);
  return stamps;
}

/* ---- Client opens ---- */

/* The opens as messages: a blob of one window stands at BP_OPEN_MARKER,
 * which is no window's start; of another, the windows that were touched.
 */
static struct bp_blob_message *
list_opens (const struct bp_recording_log *log)
{
  struct bp_blob_message *opens =
    calloc (MAX (log->nr_opens, 1), sizeof *opens);

  if (opens == NULL)
    return NULL;
  for (size_t i = 0; i < log->nr_opens; i++) {
    const struct bp_client_open *open = &log->opens[i];

    opens[i].root = open->root;
    opens[i].offset = open->multi
                        ? round_down (open->offset, BP_WINDOW_SIZE)
                        : BP_OPEN_MARKER;
  }
  return opens;
}

static bool
has_open (const struct message_set *opens,
          const struct bp_blob_message *message)
{
  struct bp_blob_message wanted = *message;

  wanted.offset = BP_OPEN_MARKER;
  if (set_has (opens, &wanted))
    return true;
  wanted.offset = round_down (message->offset, BP_WINDOW_SIZE);
  return set_has (opens, &wanted);
}

/* ---- The walk ---- */

struct conversion {
  const struct bp_recording_log *log;
  const struct bp_key_entry *keys;  /* Sorted. */
  const struct stamp *stamps;       /* Sorted. */
  const struct message_set *opens;  /* NULL: unfiltered. */
  struct message_set *seen;         /* Over messages. */
  struct bp_blob_message *messages; /* The result. */
  size_t count;
};

/* Append (ROOT, OFFSET) if it passes the filter and is the first. */
static void
emit (struct conversion *c, const struct bp_root *root, uint64_t offset)
{
  struct bp_blob_message *message = &c->messages[c->count];

  message->root = *root;
  message->offset = offset;
  if (offset == BP_OPEN_MARKER ||
      (c->opens && !has_open (c->opens, message)))
    return;
  if (set_add (c->seen, c->count))
    c->count++;
}

static void
emit_driver_message (struct conversion *c,
                     const struct bp_file_message *message)
{
  const struct bp_key_entry wanted = { .key = message->id };
  const struct bp_key_entry *entry =
    bsearch (&wanted, c->keys, c->log->nr_keys, sizeof wanted, compare_keys);

  if (entry)
    emit (c, &entry->root, message->offset);
}

/* Messages are numbered as the driver sent them, unknown keys included. */
static void
merge (struct conversion *c)
{
  const struct bp_recording_log *log = c->log;
  size_t next_note = 0;

  for (size_t i = 0; i <= log->nr_messages; i++) {
    while (next_note < log->nr_notes &&
           (i == log->nr_messages || c->stamps[next_note].sent <= i)) {
      const struct bp_warm_note *note =
        &log->notes[c->stamps[next_note++].number];

      emit (c, &note->root, note->offset);
    }
    if (i < log->nr_messages)
      emit_driver_message (c, &log->messages[i]);
  }
}

/* Called with everything allocated that a conversion needs but SEEN. */
static int
run_conversion (struct conversion *c, size_t capacity)
{
  CLEANUP_SET struct message_set seen = { 0 };

  if (set_init (&seen, c->messages, capacity) < 0)
    return -ENOMEM;
  c->seen = &seen;
  merge (c);
  return 0;
}

int
bp_profile_convert (const struct bp_recording_log *log,
                    struct bp_blob_message **ret_messages, size_t *ret_count,
                    struct bp_error *err)
{
  /* One more than can be emitted: emit writes before it looks. */
  const size_t capacity = log->nr_messages + log->nr_notes + 1;
  CLEANUP_FREE struct bp_key_entry *keys = sort_keys (log);
  CLEANUP_FREE struct stamp *stamps = sort_notes (log);
  CLEANUP_FREE struct bp_blob_message *opens = list_opens (log);
  CLEANUP_FREE struct bp_blob_message *messages =
    calloc (capacity, sizeof *messages);
  CLEANUP_SET struct message_set open_set = { 0 };
  struct conversion c = {
    .log = log,
    .keys = keys,
    .stamps = stamps,
    .opens = log->unfiltered ? NULL : &open_set,
    .messages = messages,
  };

  if (keys == NULL || stamps == NULL || opens == NULL || messages == NULL ||
      set_init (&open_set, opens, log->nr_opens) < 0)
    return bp_error_set (err, -ENOMEM, "profile: out of memory");
  for (size_t i = 0; i < log->nr_opens; i++)
    set_add (&open_set, i);
  if (run_conversion (&c, capacity) < 0)
    return bp_error_set (err, -ENOMEM, "profile: out of memory");
  *ret_count = c.count;
  *ret_messages = steal_ptr (&messages);
  return 0;
}
