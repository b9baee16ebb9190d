/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The logs of a session's recordings. */
#include <config.h>

#include <errno.h>

#include <criterion/criterion.h>

#include "lib/base/cleanup.h"
#include "lib/profile.h"
#include "nbdkit-plugin/recording-log.h"

static struct recording_set *
new_set (void)
{
  struct recording_set *set;

  cr_assert_eq (recording_set_new (&set), 0);
  return set;
}

static uint64_t
start (struct recording_set *set)
{
  uint64_t id;

  cr_assert_eq (recording_start (set, &id, NULL), 0);
  return id;
}

/* Stop recording ID and expect COUNT messages; returns them. */
static struct bp_file_message *
stop (struct recording_set *set, uint64_t id, size_t count)
{
  CLEANUP_FREE uint8_t *data = NULL;
  struct bp_file_message *messages;
  size_t len, got;

  cr_assert_eq (recording_stop (set, id, &data, &len, NULL), 0);
  cr_assert_eq (bp_profile_decode_files (data, len, &messages, &got, NULL),
                0);
  cr_assert_eq (got, count, "%zu messages, wanted %zu", got, count);
  return messages;
}

Test (recording_log, has_one_message_a_window_in_order)
{
  CLEANUP_FREE struct bp_file_message *messages = NULL;
  struct recording_set *set = new_set ();
  const uint64_t id = start (set);

  recording_append (set, 5, 3, 5);
  recording_append (set, 4, 0, 0);
  recording_append (set, 5, 3, 3);
  messages = stop (set, id, 5);
  for (uint64_t i = 0; i < 3; i++) {
    cr_assert_eq (messages[i].id, 5);
    cr_assert_eq (messages[i].offset, (3 + i) * 131072);
  }
  cr_assert_eq (messages[3].id, 4);
  cr_assert_eq (messages[3].offset, 0);
  cr_assert_eq (messages[4].offset, 3 * 131072);
  recording_set_free (set);
}

Test (recording_log, of_each_recording_has_its_own_start_and_end)
{
  struct recording_set *set = new_set ();
  uint64_t a, b;

  cr_assert_not (recording_is_active (set));
  recording_append (set, 1, 0, 9);
  a = start (set);
  cr_assert (recording_is_active (set));
  recording_append (set, 1, 0, 1);
  b = start (set);
  cr_assert_neq (a, b);
  recording_append (set, 1, 0, 2);
  free (stop (set, a, 5));
  recording_append (set, 1, 0, 3);
  free (stop (set, b, 7));
  cr_assert_not (recording_is_active (set));
  free (stop (set, start (set), 0));
  recording_set_free (set);
}

Test (recording_log, ends_once)
{
  struct recording_set *set = new_set ();
  const uint64_t id = start (set);
  uint8_t *data;
  size_t len;

  cr_assert_eq (recording_abort (set, id, NULL), 0);
  cr_assert_eq (recording_abort (set, id, NULL), -EINVAL);
  cr_assert_eq (recording_stop (set, id, &data, &len, NULL), -EINVAL);
  cr_assert_eq (recording_stop (set, 0, &data, &len, NULL), -EINVAL);
  cr_assert_gt (start (set), id);
  recording_set_free (set);
}

Test (recording_log, of_a_million_messages_is_the_longest)
{
  struct recording_set *set = new_set ();
  const uint64_t full = start (set);
  uint64_t over;
  uint8_t *data;
  size_t len;

  recording_append (set, 1, 1, BP_RECORDING_MAX - 1);
  over = start (set);
  recording_append (set, 1, 0, 0);
  free (stop (set, full, BP_RECORDING_MAX));

  recording_append (set, 1, 1, BP_RECORDING_MAX - 1);
  recording_append (set, 1, 0, 0);
  cr_assert_eq (recording_stop (set, over, &data, &len, NULL), -ERANGE);
  cr_assert_not (recording_is_active (set));

  /* One read that covers more than fits, and beyond any sum. */
  over = start (set);
  recording_append (set, 1, 5, 5);
  recording_append (set, 1, 0, UINT64_MAX - 1);
  cr_assert_eq (recording_stop (set, over, &data, &len, NULL), -ERANGE);
  recording_set_free (set);
}

Test (recording_log, refuses_the_17th_recording)
{
  struct recording_set *set = new_set ();
  uint64_t id;

  for (int i = 0; i < RECORDING_LOG_MAX_ACTIVE; i++)
    start (set);
  cr_assert_eq (recording_start (set, &id, NULL), -EBUSY);
  cr_assert_eq (recording_abort (set, 3, NULL), 0);
  start (set);
  recording_set_free (set);
}
