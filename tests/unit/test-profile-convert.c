/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* From a driver's log to a profile: each rule is a sentence. */
#include <config.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "harness/vectors.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/profile.h"

/* A root for each letter. */
static struct bp_root
root_of (char letter)
{
  struct bp_root root;

  memset (root.bytes, letter, sizeof root.bytes);
  return root;
}

/* The profile that LOG gives, as "a@0 b@4096 …". */
static const char *
converted (const struct bp_recording_log *log)
{
  static char text[4096];
  struct bp_blob_message *messages = NULL;
  size_t count, used = 0;

  text[0] = '\0';
  cr_assert_eq (bp_profile_convert (log, &messages, &count, NULL), 0);
  for (size_t i = 0; i < count; i++)
    used += (size_t) snprintf (text + used, sizeof text - used, "%s%c@%ju",
                               i > 0 ? " " : "", messages[i].root.bytes[0],
                               (uintmax_t) messages[i].offset);
  free (messages);
  return text;
}

#define MESSAGES(...)                                          \
  .messages = (const struct bp_file_message[]){ __VA_ARGS__ }, \
  .nr_messages = ARRAY_LEN (((struct bp_file_message[]){ __VA_ARGS__ }))
#define KEYS(...)                                       \
  .keys = (const struct bp_key_entry[]){ __VA_ARGS__ }, \
  .nr_keys = ARRAY_LEN (((struct bp_key_entry[]){ __VA_ARGS__ }))
#define OPENS(...)                                         \
  .opens = (const struct bp_client_open[]){ __VA_ARGS__ }, \
  .nr_opens = ARRAY_LEN (((struct bp_client_open[]){ __VA_ARGS__ }))
#define NOTES(...)                                       \
  .notes = (const struct bp_warm_note[]){ __VA_ARGS__ }, \
  .nr_notes = ARRAY_LEN (((struct bp_warm_note[]){ __VA_ARGS__ }))

/* clang-format off */
#define A root_of ('a')
#define B root_of ('b')
#define C root_of ('c')
#define WINDOW BP_WINDOW_SIZE

Test (profile_convert, the_oracle_of_the_original)
{
  struct bp_root h1, h2, h3, missing;
  uint8_t bytes[8192];
  struct bp_blob_message *got = NULL;
  size_t count;

  memset (bytes, 0x42, sizeof bytes);
  cr_assert_eq (bp_merkle_root (bytes, sizeof bytes, &h1), 0);
  memset (bytes, 0x24, sizeof bytes);
  cr_assert_eq (bp_merkle_root (bytes, sizeof bytes, &h2), 0);
  memset (bytes, 0x99, sizeof bytes);
  cr_assert_eq (bp_merkle_root (bytes, sizeof bytes, &h3), 0);
  memset (missing.bytes, 0xde, sizeof missing.bytes);

  /* Replay opened missing (in vain), h1 and h2; clients opened h1 and h3,
   * and h3 once more under a new key.
   */
  enum { KEY_MISSING = 1, KEY_1, KEY_2, KEY_3A, KEY_3B };
  const struct bp_recording_log log = {
    MESSAGES ({ KEY_1, 0 }, { KEY_2, 0 }, { KEY_3A, 0 }, { KEY_3B, 0 },
              { KEY_3B, 4096 }),
    KEYS ({ KEY_MISSING, missing }, { KEY_1, h1 }, { KEY_2, h2 },
          { KEY_3A, h3 }, { KEY_3B, h3 }),
    OPENS ({ h1, 0, false }, { h3, 0, false }, { h3, 0, false }),
  };

  cr_assert_eq (bp_profile_convert (&log, &got, &count, NULL), 0);
  cr_assert_eq (count, 3);
  cr_assert (bp_root_equal (&got[0].root, &h1) && got[0].offset == 0);
  cr_assert (bp_root_equal (&got[1].root, &h3) && got[1].offset == 0);
  cr_assert (bp_root_equal (&got[2].root, &h3) && got[2].offset == 4096);
  free (got);
}

Test (profile_convert, nothing_gives_nothing)
{
  const struct bp_recording_log log = { .nr_messages = 0 };

  cr_assert_str_eq (converted (&log), "");
}

Test (profile_convert, unknown_keys_are_dropped)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 9, 0 }, { 1, 0 }, { 0, 0 }, { UINT64_MAX, 0 }),
    KEYS ({ 1, A }),
    OPENS ({ A, 0, false }),
  };

  cr_assert_str_eq (converted (&log), "a@0");
}

Test (profile_convert, both_keys_of_a_reopened_blob_count)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 7, 4096 }, { 1, 0 }),
    KEYS ({ 7, A }, { 1, A }),
    OPENS ({ A, 0, false }),
  };

  cr_assert_str_eq (converted (&log), "a@4096 a@0");
}

Test (profile_convert, what_no_client_opened_falls_out)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 1, 0 }, { 2, 0 }, { 3, 0 }),
    KEYS ({ 1, A }, { 2, B }, { 3, C }),
    OPENS ({ C, 0, false }, { A, 0, false }),
  };

  cr_assert_str_eq (converted (&log), "a@0 c@0");
}

Test (profile_convert, duplicates_are_dropped_and_the_first_wins)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 1, 0 }, { 2, 0 }, { 1, 0 }, { 1, 4096 }, { 2, 0 }),
    KEYS ({ 1, A }, { 2, B }),
    OPENS ({ A, 0, false }, { B, 0, false }),
  };

  cr_assert_str_eq (converted (&log), "a@0 b@0 a@4096");
}

Test (profile_convert, a_blob_of_many_windows_is_filtered_by_window)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 1, 0 }, { 1, WINDOW }, { 1, 2 * WINDOW }, { 1, 3 * WINDOW },
              { 1, 3 * WINDOW + 4096 }),
    KEYS ({ 1, A }),
    OPENS ({ A, 3 * WINDOW, true }, { A, WINDOW, true }),
  };

  cr_assert_str_eq (converted (&log), "a@131072 a@393216 a@397312");
}

Test (profile_convert, a_blob_of_one_window_passes_at_every_offset)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 1, 4096 }, { 1, 0 }),
    KEYS ({ 1, A }),
    OPENS ({ A, 0, false }),
  };

  cr_assert_str_eq (converted (&log), "a@4096 a@0");
}

Test (profile_convert, an_unfiltered_recording_keeps_what_nobody_opened)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 1, 0 }, { 2, 0 }, { 1, 0 }, { 5, 0 }),
    KEYS ({ 1, A }, { 2, B }),
    .unfiltered = true,
  };

  cr_assert_str_eq (converted (&log), "a@0 b@0");
}

Test (profile_convert, open_markers_are_not_written)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 1, BP_OPEN_MARKER }, { 1, 0 }),
    KEYS ({ 1, A }),
    OPENS ({ A, 0, false }),
  };

  cr_assert_str_eq (converted (&log), "a@0");
}

/* ---- Warm notes ---- */

Test (profile_convert, a_note_stamped_s_goes_before_message_number_s)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 1, 0 }, { 1, 4096 }, { 1, 8192 }),
    KEYS ({ 1, A }),
    OPENS ({ A, 0, false }, { B, 0, false }, { C, 0, false }),
    NOTES ({ B, 0, 0 }, { C, 0, 2 }),
  };

  cr_assert_str_eq (converted (&log), "b@0 a@0 a@4096 c@0 a@8192");
}

Test (profile_convert, a_note_past_the_end_goes_last)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 1, 0 }),
    KEYS ({ 1, A }),
    OPENS ({ A, 0, false }, { B, 0, false }, { C, 0, false }),
    NOTES ({ B, 0, 1 }, { C, 0, UINT64_MAX }),
  };

  cr_assert_str_eq (converted (&log), "a@0 b@0 c@0");
}

Test (profile_convert, notes_of_equal_stamps_keep_their_order)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 1, 0 }),
    KEYS ({ 1, A }),
    OPENS ({ A, 0, false }, { B, 0, false }, { C, 0, false }),
    NOTES ({ C, 0, 0 }, { B, 0, 0 }, { C, 4096, 0 }, { B, 4096, 0 }),
  };

  cr_assert_str_eq (converted (&log), "c@0 b@0 c@4096 b@4096 a@0");
}

Test (profile_convert, notes_are_ordered_by_stamp_whenever_they_were_made)
{
  const struct bp_recording_log log = {
    OPENS ({ A, 0, false }, { B, 0, false }, { C, 0, false }),
    NOTES ({ C, 0, 5 }, { B, 0, 3 }, { A, 0, 4 }),
  };

  cr_assert_str_eq (converted (&log), "b@0 a@0 c@0");
}

Test (profile_convert, messages_of_unknown_keys_are_counted_for_the_stamps)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 9, 0 }, { 9, 0 }, { 1, 0 }),
    KEYS ({ 1, A }),
    OPENS ({ A, 0, false }, { B, 0, false }, { C, 0, false }),
    NOTES ({ B, 0, 2 }, { C, 0, 3 }),
  };

  cr_assert_str_eq (converted (&log), "b@0 a@0 c@0");
}

Test (profile_convert, a_note_and_a_message_of_one_window_are_duplicates)
{
  const struct bp_recording_log log = {
    MESSAGES ({ 1, 0 }, { 2, 0 }),
    KEYS ({ 1, A }, { 2, B }),
    OPENS ({ A, 0, false }, { B, 0, false }),
    NOTES ({ B, 0, 0 }, { A, 0, 2 }),
  };

  cr_assert_str_eq (converted (&log), "b@0 a@0");
}

Test (profile_convert, notes_are_filtered_like_messages)
{
  const struct bp_recording_log log = {
    OPENS ({ A, WINDOW, true }, { B, 0, false }),
    NOTES ({ A, 0, 0 }, { A, WINDOW, 0 }, { C, 0, 0 }, { B, 0, 0 }),
  };

  cr_assert_str_eq (converted (&log), "a@131072 b@0");
}

Test (profile_convert, a_warm_cache_alone_makes_a_profile)
{
  const struct bp_recording_log log = {
    KEYS ({ 1, A }),
    OPENS ({ A, 0, false }),
    NOTES ({ A, 0, 0 }),
  };

  cr_assert_str_eq (converted (&log), "a@0");
}
/* clang-format on */

/* ---- Size ---- */

/* A full log: quadratic work would take hours. */
Test (profile_convert, a_full_log_with_full_notes_converts_in_moments,
      .timeout = 30)
{
  enum {
    N = BP_RECORDING_MAX,
    KEYS_OPEN = 65536
  };
  CLEANUP_FREE struct bp_file_message *messages =
    calloc (N, sizeof *messages);
  CLEANUP_FREE struct bp_warm_note *notes = calloc (N, sizeof *notes);
  CLEANUP_FREE struct bp_key_entry *keys = calloc (KEYS_OPEN, sizeof *keys);
  CLEANUP_FREE struct bp_client_open *opens =
    calloc (KEYS_OPEN, sizeof *opens);
  struct bp_recording_log log = {
    .messages = messages,
    .nr_messages = N,
    .keys = keys,
    .nr_keys = KEYS_OPEN,
    .opens = opens,
    .nr_opens = KEYS_OPEN,
    .notes = notes,
    .nr_notes = N,
  };
  struct bp_blob_message *got = NULL;
  uint64_t state = 1;
  size_t count;

  for (size_t i = 0; i < KEYS_OPEN; i++) {
    keys[i].key = KEYS_OPEN - i;
    fill_splitmix (keys[i].root.bytes, BP_ROOT_SIZE, i);
    opens[i].root = keys[i].root;
  }
  /* Every message once and every note once: none of them is equal. */
  for (size_t i = 0; i < N; i++) {
    messages[i].id = 1 + splitmix64 (&state) % KEYS_OPEN;
    messages[i].offset = i * 8192;
    notes[i].root = keys[splitmix64 (&state) % KEYS_OPEN].root;
    notes[i].offset = i * 8192 + 4096;
    notes[i].sent = splitmix64 (&state) % N;
  }
  cr_assert_eq (bp_profile_convert (&log, &got, &count, NULL), 0);
  cr_assert_eq (count, 2 * N);
  free (got);
}
