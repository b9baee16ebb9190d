/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The tables of a recording, and what becomes of them (rules 5 and 6). */
#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "daemon/profile/recording.h"

enum {
  W = 128 << 10
};

static struct bp_root
root (uint32_t n)
{
  struct bp_root r = { { 0 } };

  memcpy (r.bytes, &n, sizeof n);
  return r;
}

static void
add_key (struct recording *recording, uint64_t key, uint32_t n)
{
  const struct bp_root r = root (n);

  recording_add_key (recording, key, &r);
}

static bool
touch (struct recording *recording, uint32_t n, uint64_t offset, bool multi,
       bool warm, uint64_t sent)
{
  const struct touch t = {
    .root = root (n),
    .offset = offset,
    .sent = sent,
    .len = 8192,
    .multi = multi,
    .warm = warm,
  };

  return recording_add_touch (recording, &t);
}

/* "N@OFFSET N@OFFSET …" of the profile that RECORDING and LOG make. */
static char *
convert (const struct recording *recording,
         const struct bp_file_message *log, size_t count,
         uint64_t sent_start)
{
  static char text[1024];
  CLEANUP_FREE uint8_t *packed = NULL;
  CLEANUP_FREE struct bp_blob_message *messages = NULL;
  size_t packed_len, n, i, len = 0;
  uint32_t name;

  cr_assert_eq (bp_profile_encode_files (log, count, &packed, &packed_len,
                                         NULL),
                0);
  cr_assert_eq (recording_convert (recording, packed, packed_len, sent_start,
                                   false, &messages, &n, NULL, NULL),
                0);
  text[0] = '\0';
  for (i = 0; i < n; i++) {
    memcpy (&name, messages[i].root.bytes, sizeof name);
    len += (size_t) snprintf (text + len, sizeof text - len, "%s%u@%llu",
                              i ? " " : "", name,
                              (unsigned long long) messages[i].offset);
    cr_assert_lt (len, sizeof text);
  }
  return text;
}

Test (recording, is_what_the_oracle_says)
{
  /* Replay: missing, h1, h2.  Clients: h1, h3, and h3 again, reopened. */
  static const struct bp_file_message log[] = {
    { 1, 0 },
    { 2, 0 },
    { 3, 0 },
    { 4, 0 },
    { 4, 4096 },
  };
  struct recording *recording = recording_new ();

  add_key (recording, 1, 1);
  add_key (recording, 2, 2);
  add_key (recording, 3, 3);
  add_key (recording, 4, 3);
  cr_assert (touch (recording, 1, 0, false, false, 0));
  cr_assert (touch (recording, 3, 0, false, false, 2));
  cr_assert_str_eq (convert (recording, log, ARRAY_LEN (log), 0),
                    "1@0 3@0 3@4096");
  recording_free (recording);
}

Test (recording, counts_the_first_touch_of_a_window_only)
{
  struct recording *recording = recording_new ();
  struct recording_counts counts;

  cr_assert (touch (recording, 1, 0, true, true, 0));
  cr_assert_not (touch (recording, 1, 0, true, true, 5));
  cr_assert (touch (recording, 1, W, true, true, 5));
  cr_assert (touch (recording, 2, 0, false, false, 5));
  recording_count (recording, &counts);
  cr_assert_eq (counts.touches, 3);
  cr_assert_eq (counts.bytes, 3 * 8192);
  cr_assert (counts.is_complete);
  recording_free (recording);
}

Test (recording, of_a_warm_cache_is_not_empty)
{
  struct recording *recording = recording_new ();

  touch (recording, 2, 0, false, true, 100);
  touch (recording, 1, 0, false, true, 100);
  cr_assert_str_eq (convert (recording, NULL, 0, 100), "2@0 1@0");
  recording_free (recording);
}

Test (recording, puts_a_warm_touch_where_the_log_had_come_to)
{
  static const struct bp_file_message log[] = { { 1, 0 }, { 2, 0 } };
  struct recording *recording = recording_new ();

  add_key (recording, 1, 1);
  add_key (recording, 2, 2);
  touch (recording, 1, 0, false, false, 50);
  touch (recording, 8, 0, false, true, 51);
  touch (recording, 2, 0, false, false, 51);
  touch (recording, 9, 0, false, true, 90);
  touch (recording, 7, 0, false, true, 12);
  cr_assert_str_eq (convert (recording, log, 2, 50), "7@0 1@0 8@0 2@0 9@0");
  recording_free (recording);
}

/* Its read was on the wire when RECORD_START was answered: the log lacks
 * it, although the client did wait for it.
 */
Test (recording, keeps_a_window_that_was_on_its_way_at_the_start)
{
  static const struct bp_file_message log[] = { { 2, 0 } };
  struct recording *recording = recording_new ();

  add_key (recording, 1, 1);
  add_key (recording, 2, 2);
  touch (recording, 1, 0, false, false, 9);
  touch (recording, 2, 0, false, false, 10);
  cr_assert_str_eq (convert (recording, log, 1, 10), "1@0 2@0");
  recording_free (recording);
}

Test (recording, of_a_large_blob_keeps_the_windows_that_were_touched)
{
  static const struct bp_file_message log[] = {
    { 1, 0 }, { 1, W }, { 1, 2 * W }
  };
  struct recording *recording = recording_new ();

  add_key (recording, 1, 1);
  touch (recording, 1, W, true, false, 0);
  cr_assert_str_eq (convert (recording, log, 3, 0), "1@131072");
  recording_free (recording);
}

Test (recording, knows_a_key_told_twice_once)
{
  static const struct bp_file_message log[] = { { 5, 0 }, { 6, 0 } };
  struct recording *recording = recording_new ();

  add_key (recording, 5, 1);
  add_key (recording, 5, 1);
  touch (recording, 1, 0, false, false, 0);
  cr_assert_str_eq (convert (recording, log, 2, 0), "1@0");
  recording_free (recording);
}

Test (recording, drops_a_log_that_does_not_decode)
{
  struct recording *recording = recording_new ();
  struct bp_blob_message *messages;
  uint8_t log[100] = { 1 };
  size_t count;

  cr_assert_eq (recording_convert (recording, log, sizeof log, 0, false,
                                   &messages, &count, NULL, NULL),
                -EBADMSG);
  recording_free (recording);
}

Test (recording, is_bounded_and_says_so)
{
  struct recording *recording = recording_new ();
  struct recording_counts counts;

  for (uint32_t i = 0; i < BP_RECORDING_MAX; i++)
    cr_assert (touch (recording, i, 0, false, true, i));
  recording_count (recording, &counts);
  cr_assert (counts.is_complete);
  cr_assert_not (touch (recording, BP_RECORDING_MAX, 0, false, true, 0));
  recording_count (recording, &counts);
  cr_assert_eq (counts.touches, BP_RECORDING_MAX);
  cr_assert_not (counts.is_complete);
  recording_free (recording);
}

Test (recording, keeps_the_order_of_many_equal_stamps)
{
  struct recording *recording = recording_new ();

  for (uint32_t i = 1; i <= 9; i++)
    touch (recording, i, 0, false, true, i % 3);
  cr_assert_str_eq (convert (recording, NULL, 0, 0),
                    "3@0 6@0 9@0 1@0 4@0 7@0 2@0 5@0 8@0");
  recording_free (recording);
}
