/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The automatic mode over a world in memory (rule 10).  Each test is a
 * sentence.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "harness/check.h"
#include "harness/fake-world.h"

static struct export *client;

static bool
is_drained (void)
{
  return strstr (world_replays (), "drained") != NULL;
}

static bool
has_ended (void)
{
  return strstr (world_replays (), "ended") != NULL;
}

static bool
has_profile (void)
{
  return world_get_profile ("debian") != NULL;
}

static bool
profile_is (const char *wanted)
{
  const char *got = world_get_profile ("debian");

  if (got == NULL)
    got = "(none)";
  if (strcmp (got, wanted) != 0)
    fprintf (stderr, "profile is '%s', wanted '%s'\n", got, wanted);
  return strcmp (got, wanted) == 0;
}

/* A client comes, reads blobs FIRST to LAST, and leaves. */
static void
boot (const char *name, unsigned first, unsigned last)
{
  client = world_enter (name);
  for (unsigned n = first; n <= last; n++)
    world_read (client, n, 0, false);
  world_leave (client);
  world_wait (world_is_idle);
}

static void
the_first_read_starts_a_recording_named_after_the_tag (void)
{
  world_start_auto (60);
  client = world_enter ("debian");
  CHECK_EQ (world_watched (client), 1);
  CHECK (world_is_idle ());
  world_read (client, 1, 0, false);
  world_wait (world_is_recording);
  world_read (client, 2, 0, false);
  world_leave (client);
  world_wait (has_profile);
  CHECK (profile_is ("1@0 2@0"));
  CHECK (strstr (world_get_meta ("debian"), "\"automatic\":true") != NULL);
  world_end ();
}

static void
a_recording_ends_after_its_time (void)
{
  world_start_auto (1);
  client = world_enter ("debian");
  world_read (client, 1, 0, false);
  world_wait (has_profile);
  world_read (client, 2, 0, false);
  CHECK (profile_is ("1@0"));
  CHECK_EQ (world_watched (client), 0);
  world_leave (client);
  world_end ();
}

static void
an_export_with_another_reader_is_not_recorded (void)
{
  struct export *second;

  world_start_auto (1);
  client = world_enter ("debian");
  world_read (client, 1, 0, false);
  world_wait (has_profile);
  second = world_enter ("debian");
  world_read (second, 2, 0, false);
  CHECK (world_is_idle ());
  world_leave (second);
  world_leave (client);
  CHECK (profile_is ("1@0"));
  world_end ();
}

static void
a_blob_is_not_recorded (void)
{
  world_start_auto (60);
  client = world_enter ("blob/9");
  CHECK_EQ (world_watched (client), 0);
  world_read (client, 9, 0, false);
  CHECK (world_is_idle ());
  world_leave (client);
  world_end ();
}

static void
by_root_the_first_tag_that_names_it_is_taken (void)
{
  world_start_auto (60);
  boot ("root/63", 1, 3);
  CHECK (world_get_profile ("ant") != NULL);
  CHECK (world_get_profile ("zebra") == NULL);
  boot ("root/61", 1, 3); /* No tag: no recording. */
  world_end ();
}

static void
a_client_of_a_profile_that_is_not_resident_starts_its_replay (void)
{
  struct export *second;

  world_start_auto (60);
  world_put_profile ("debian", "1@0 2@0");
  client = world_enter ("debian");
  world_wait (is_drained);
  CHECK (world_is_resident (1) && world_is_resident (2));
  CHECK_EQ (world_pinned (), 2);
  CHECK (world_is_idle ());
  second = world_enter ("debian");
  world_leave (second);
  CHECK (strcmp (world_replays (), "debian:drained") == 0);
  world_leave (client);
  world_wait (has_ended);
  CHECK_EQ (world_pinned (), 0);
  world_end ();
}

static void
however_many_other_clients_there_are (void)
{
  struct export *second;

  world_start_auto (1);
  world_put_profile ("debian", "1@0 2@0");
  client = world_enter ("debian");
  world_read (client, 1, 0, false);
  world_wait (has_ended);
  world_wait (world_is_idle);
  world_evict (1);
  second = world_enter ("debian");
  world_wait (is_drained);
  CHECK (world_is_resident (1));
  world_leave (second);
  world_leave (client);
  world_end ();
}

static void
a_profile_that_is_all_resident_is_not_replayed (void)
{
  world_start_auto (60);
  boot ("debian", 1, 2);
  world_calls ();
  client = world_enter ("debian");
  world_read (client, 1, 0, false);
  world_wait (world_is_recording);
  world_leave (client);
  world_wait (world_is_idle);
  CHECK (strcmp (world_replays (), "") == 0);
  world_end ();
}

static void
a_small_boot_does_not_replace_a_large_one (void)
{
  world_start_auto (60);
  boot ("debian", 1, 30);
  boot ("debian", 1, 2);
  CHECK (strncmp (world_get_profile ("debian"), "1@0 2@0 3@0", 11) == 0);
  boot ("debian", 1, 3);
  CHECK (profile_is ("1@0 2@0 3@0"));
  world_end ();
}

static void
a_boot_that_read_too_much_of_the_image_is_not_written (void)
{
  world_start_auto (60);
  world.placed_bytes = 10 * 8192;
  boot ("debian", 1, 3);
  CHECK (!has_profile ());
  boot ("debian", 1, 2);
  CHECK (profile_is ("1@0 2@0"));
  world_end ();
}

/* How much the image places may become known after the first read. */
static void
neither_is_one_whose_time_is_up_before_its_client_leaves (void)
{
  world_start_auto (1);
  client = world_enter ("debian");
  world_read (client, 1, 0, false);
  world.placed_bytes = 10 * 8192;
  world_read (client, 2, 0, false);
  world_read (client, 3, 0, false);
  world_wait (world_is_idle);
  CHECK (!has_profile ());
  world_leave (client);
  world_end ();
}

static void
a_copy_is_not_a_boot (void)
{
  world_start_auto (60);
  client = world_enter ("debian");
  for (unsigned n = 1; n < 40; n++)
    world_read_at (client, n, n * 8192, 8192);
  world_leave (client);
  world_wait (world_is_idle);
  CHECK (!has_profile ());
  world_end ();
}

static void
an_explicit_start_aborts_the_automatic_one (void)
{
  world_start_auto (60);
  world_put_profile ("debian", "5@0");
  client = world_enter ("debian");
  world_wait (is_drained);
  world_read (client, 1, 0, false);
  world_wait (world_is_recording);
  CHECK_EQ (world_start_recording ("mine", "debian"), 0);
  world_read (client, 2, 0, false);
  CHECK (strcmp (world_recordings (), "mine") == 0);
  CHECK_EQ (world_pinned (), 0);
  CHECK_EQ (world_stop ("mine", NULL), 0);
  CHECK (strcmp (world_get_profile ("mine"), "2@0") == 0);
  world_leave (client);
  CHECK (profile_is ("5@0"));
  world_end ();
}

static void
an_export_that_a_person_records_is_left_alone (void)
{
  world_start_auto (60);
  CHECK_EQ (world_start_recording ("mine", ""), 0);
  client = world_enter ("debian");
  world_read (client, 1, 0, false);
  CHECK (strcmp (world_recordings (), "mine") == 0);
  world_leave (client);
  CHECK_EQ (world_stop ("mine", NULL), 0);
  CHECK (!has_profile ());
  world_end ();
}

static void
a_damaged_profile_is_recorded_afresh (void)
{
  world_start_auto (60);
  world_put_profile ("debian", "5@0");
  world.get_profile = -EBADMSG;
  boot ("debian", 1, 2);
  world.get_profile = 0;
  CHECK (profile_is ("1@0 2@0"));
  CHECK (strcmp (world_replays (), "") == 0);
  world_end ();
}

static void
a_driver_that_fails_does_not_fail_a_boot (void)
{
  world_start_auto (60);
  world.record_start = -EIO;
  world.get_profile = -EIO;
  boot ("debian", 1, 2);
  world.record_start = world.get_profile = 0;
  CHECK (!has_profile ());
  world_end ();
}

static void
a_lost_driver_leaves_the_old_profile (void)
{
  world_start_auto (60);
  world_put_profile ("debian", "5@0");
  client = world_enter ("debian");
  world_wait (is_drained);
  world_read (client, 1, 0, false);
  world_wait (world_is_recording);
  world_lose_driver ();
  world_wait (world_is_idle);
  world_wait (has_ended);
  CHECK_EQ (world_pinned (), 0);
  world_leave (client);
  CHECK (profile_is ("5@0"));
  world_end ();
}

int
main (void)
{
  RUN (the_first_read_starts_a_recording_named_after_the_tag);
  RUN (a_recording_ends_after_its_time);
  RUN (an_export_with_another_reader_is_not_recorded);
  RUN (a_blob_is_not_recorded);
  RUN (by_root_the_first_tag_that_names_it_is_taken);
  RUN (a_client_of_a_profile_that_is_not_resident_starts_its_replay);
  RUN (however_many_other_clients_there_are);
  RUN (a_profile_that_is_all_resident_is_not_replayed);
  RUN (a_small_boot_does_not_replace_a_large_one);
  RUN (a_boot_that_read_too_much_of_the_image_is_not_written);
  RUN (neither_is_one_whose_time_is_up_before_its_client_leaves);
  RUN (a_copy_is_not_a_boot);
  RUN (an_explicit_start_aborts_the_automatic_one);
  RUN (an_export_that_a_person_records_is_left_alone);
  RUN (a_damaged_profile_is_recorded_afresh);
  RUN (a_driver_that_fails_does_not_fail_a_boot);
  RUN (a_lost_driver_leaves_the_old_profile);
  return 0;
}
