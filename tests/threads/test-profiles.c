/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The profile manager over a world in memory: what a person starts, stops
 * and aborts (rules 1 to 8 and 11).  Each test is a sentence.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/clock.h"
#include "harness/check.h"
#include "harness/fake-world.h"

#define CHECK_STR(got, wanted)                                             \
  do {                                                                     \
    const char *got_ = (got), *wanted_ = (wanted);                         \
                                                                           \
    if (strcmp (got_ ? got_ : "(none)", wanted_) != 0) {                   \
      fprintf (stderr, "%s:%d: %s: %s is '%s', wanted '%s'\n",             \
               __FILE__, __LINE__, __func__, #got, got_ ? got_ : "(none)", \
               wanted_);                                                   \
      exit (EXIT_FAILURE);                                                 \
    }                                                                      \
  } while (0)

static struct export *client;

static bool
is_drained (void)
{
  return strstr (world_replays (), "drained") != NULL;
}

static void
read_while_starting (void)
{
  world_read (client, 7, 0, false);
}

/* ---- Rule 1 ---- */

static void
recording_is_marked_before_record_start_and_the_profile_read_after (void)
{
  world_start (20, false);
  client = world_enter ("debian");
  world.in_record_start = read_while_starting;
  CHECK_EQ (world_start_recording ("p", ""), 0);
  world.in_record_start = NULL;
  CHECK_STR (world_calls (), "OPEN:7 RECORD_START GET_PROFILE");
  CHECK_EQ (world_stop ("p", NULL), 0);
  CHECK_STR (world_calls (), "RECORD_STOP WRITE_PROFILE");
  CHECK_STR (world_get_profile ("p"), "7@0");
  world_leave (client);
  world_end ();
}

static void
what_is_being_recorded_is_busy (void)
{
  world_start (20, false);
  CHECK_EQ (world_start_recording ("p", "debian"), 0);
  CHECK_EQ (world_start_recording ("p", "other"), -EBUSY);
  CHECK_EQ (world_start_recording ("q", "debian"), -EBUSY);
  CHECK_EQ (world_start_recording ("q", ""), -EBUSY);
  CHECK_EQ (world_start_recording ("q", "other"), 0);
  CHECK_EQ (world_stop ("p", NULL), 0);
  CHECK_EQ (world_start_recording ("p", "debian"), 0);
  world_end ();
}

static void
a_start_that_fails_leaves_nothing (void)
{
  world_start (20, false);
  world_put_profile ("p", "1@0");
  world.get_profile = -EIO;
  CHECK_EQ (world_start_recording ("p", ""), -EIO);
  CHECK_STR (world_calls (), "RECORD_START GET_PROFILE RECORD_ABORT");
  CHECK_STR (world_recordings (), "");
  world.get_profile = 0;
  world.record_start = -EIO;
  CHECK_EQ (world_start_recording ("p", ""), -EIO);
  CHECK_STR (world_calls (), "RECORD_START");
  world.record_start = 0;
  CHECK_EQ (world_start_recording ("p", ""), 0);
  world_end ();
}

/* ---- Rules 2 and 5: the oracle ---- */

enum {
  H1 = 1,
  H2 = 2,
  H3 = 3,
  MISSING = 4
};

static void
a_profile_is_renewed_by_what_clients_opened (void)
{
  world_start (20, false);
  world.missing[MISSING] = true;
  world_put_profile (".boot", "4@0 4@4096 1@0 2@0");
  client = world_enter ("debian");
  CHECK_EQ (world_start_recording (".boot", ""), 0);
  world_wait (is_drained);
  CHECK_STR (world_calls (), "RECORD_START GET_PROFILE OPEN:4 CLOSE:4 "
                             "OPEN:1 OPEN:2");
  CHECK_EQ (world_pinned (), 2);

  world_read (client, H1, 0, false);
  world_read (client, H3, 0, false);
  world_evict (H3);
  world_read (client, H3, 0, false);
  world_log (H3, 4096);
  CHECK_EQ (world_start_recording (".boot", ""), -EBUSY);
  CHECK_EQ (world_stop (".boot", NULL), 0);
  CHECK_STR (world_get_profile (".boot"), "1@0 3@0 3@4096");
  CHECK_EQ (world_pinned (), 0);
  world_leave (client);
  world_end ();
}

static void
what_does_not_fit_the_pin_share_is_left_out_last_first (void)
{
  world_start (20, false);
  world.pin_room = 2;
  world_put_profile ("p", "1@0 2@0 3@0 5@0");
  CHECK_EQ (world_start_recording ("p", ""), 0);
  world_wait (is_drained);
  CHECK (world_is_resident (1) && world_is_resident (2));
  CHECK (!world_is_resident (3) && !world_is_resident (5));
  CHECK_EQ (world_stop ("p", NULL), 0);
  CHECK (strstr (world_get_meta ("p"), "\"not_pinned\":2") != NULL);
  world_end ();
}

/* ---- Rule 3 ---- */

static void
a_profile_that_cannot_be_decoded_is_in_the_way (void)
{
  static const int codes[] = { -EBADMSG, -ERANGE };
  struct profile_start start = { .name = "p" };
  struct bp_error err;

  world_start (20, false);
  for (unsigned i = 0; i < 2; i++) {
    world.get_profile = codes[i];
    CHECK_EQ (profiles_start (world_profiles, &start, &err), codes[i]);
    CHECK (strstr (err.msg, "blobpager profile delete p") != NULL);
    CHECK_STR (world_recordings (), "");
  }
  world_end ();
}

/* ---- Rule 4 ---- */

static void
a_stop_waits_for_the_replay_but_not_for_ever (void)
{
  uint64_t began;

  world_start (1, false);
  world_put_profile ("p", "1@0 2@0");
  client = world_enter ("debian");
  world_hold_lane ();
  CHECK_EQ (world_start_recording ("p", ""), 0);
  world_read (client, 5, 0, false);
  began = now_ns ();
  CHECK_EQ (world_stop ("p", NULL), 0);
  CHECK (now_ns () - began >= NS_PER_SEC);
  CHECK (now_ns () - began < 15 * NS_PER_SEC);
  CHECK_STR (world_get_profile ("p"), "5@0");
  CHECK_EQ (world_pinned (), 0);
  world_leave (client);
  world_end ();
}

static void *
release_soon (void *opaque)
{
  const struct timespec soon = { .tv_nsec = 50 * NS_PER_MS };

  nanosleep (&soon, NULL);
  world_release_lane ();
  return opaque;
}

static void
a_stop_lets_the_replay_drain_first (void)
{
  pthread_t thread;

  world_start (20, false);
  world_put_profile ("p", "1@0 2@0");
  world_hold_lane ();
  CHECK_EQ (world_start_recording ("p", ""), 0);
  CHECK_EQ (pthread_create (&thread, NULL, release_soon, NULL), 0);
  CHECK_EQ (world_stop ("p", NULL), 0);
  pthread_join (thread, NULL);
  CHECK (world_is_resident (1) && world_is_resident (2));
  CHECK_STR (world_calls (), "RECORD_START GET_PROFILE OPEN:1 OPEN:2 "
                             "PROFILE_USED RECORD_STOP WRITE_PROFILE");
  world_end ();
}

static void
a_failed_record_stop_still_ends_the_recording (void)
{
  world_start (20, false);
  world.record_stop = -ERANGE;
  CHECK_EQ (world_start_recording ("p", ""), 0);
  CHECK_EQ (world_stop ("p", NULL), -ERANGE);
  CHECK_EQ (world_stop ("p", NULL), -EINVAL);
  CHECK_STR (world_recordings (), "");
  CHECK_STR (world_get_profile ("p"), "(none)");
  world_end ();
}

static void
a_shutdown_does_not_wait_for_a_replay (void)
{
  uint64_t began;

  world_start (600, false);
  world_put_profile ("p", "1@0 2@0");
  world_hold_lane ();
  CHECK_EQ (world_start_recording ("p", ""), 0);
  began = now_ns ();
  world_end ();
  CHECK (now_ns () - began < 15 * NS_PER_SEC);
}

static void *
stop_p (void *opaque)
{
  *(int *) opaque = world_stop ("p", NULL);
  return NULL;
}

static void
who_waits_at_a_shutdown_is_told (void)
{
  pthread_t thread;
  int status = 0;

  world_start (600, false);
  world_put_profile ("p", "1@0 2@0");
  world_hold_lane ();
  CHECK_EQ (world_start_recording ("p", ""), 0);
  CHECK_EQ (pthread_create (&thread, NULL, stop_p, &status), 0);
  profiles_shut_down (world_profiles);
  pthread_join (thread, NULL);
  CHECK_EQ (status, -ESHUTDOWN);
  world_end ();
}

/* ---- Rule 6 ---- */

static void
a_warm_cache_does_not_make_a_profile_empty (void)
{
  world_start (20, false);
  client = world_enter ("debian");
  world_read (client, 1, 0, false);
  world_read (client, 2, 0, false);
  CHECK_EQ (world_start_recording ("p", ""), 0);
  world_read (client, 2, 0, false);
  world_read (client, 3, 0, false);
  world_read (client, 1, 0, false);
  world_read (client, 2, 0, false);
  CHECK_EQ (world_stop ("p", NULL), 0);
  CHECK_STR (world_get_profile ("p"), "2@0 3@0 1@0");
  world_leave (client);
  world_end ();
}

/* ---- Rule 7 ---- */

static void
an_abort_writes_nothing_and_releases_the_pins (void)
{
  world_start (20, false);
  world_put_profile ("p", "1@0");
  client = world_enter ("debian");
  CHECK_EQ (world_start_recording ("p", ""), 0);
  world_wait (is_drained);
  world_read (client, 2, 0, false);
  world_calls ();
  CHECK_EQ (world_watched (client), 1);
  CHECK_EQ (profiles_abort (world_profiles, "p", NULL), 0);
  CHECK_STR (world_calls (), "PROFILE_USED RECORD_ABORT");
  CHECK_STR (world_get_profile ("p"), "1@0");
  CHECK_EQ (world_pinned (), 0);
  CHECK_EQ (world_watched (client), 0);
  CHECK_EQ (profiles_abort (world_profiles, "p", NULL), -EINVAL);
  CHECK_EQ (world_stop ("p", NULL), -EINVAL);
  world_leave (client);
  world_end ();
}

static void
a_lost_driver_aborts_what_is_recorded (void)
{
  world_start (20, false);
  world_put_profile ("p", "1@0");
  client = world_enter ("debian");
  CHECK_EQ (world_start_recording ("p", ""), 0);
  world_wait (is_drained);
  world_lose_driver ();
  world_wait (world_is_idle);
  CHECK_EQ (world_pinned (), 0);
  CHECK_STR (world_get_profile ("p"), "1@0");
  CHECK_EQ (world_stop ("p", NULL), -EINVAL);
  CHECK_EQ (world_start_recording ("p", ""), 0);
  world_leave (client);
  world_end ();
}

/* ---- Rule 8 ---- */

static void
a_scope_is_one_export (void)
{
  struct export *other;

  world_start (20, false);
  client = world_enter ("debian");
  other = world_enter ("other");
  CHECK_EQ (world_start_recording ("p", "debian"), 0);
  CHECK_EQ (world_watched (other), 0);
  world_read (client, 1, 0, false);
  world_read (other, 2, 0, false);
  CHECK_EQ (world_stop ("p", NULL), 0);
  CHECK_STR (world_get_profile ("p"), "1@0");
  world_leave (client);
  world_leave (other);
  world_end ();
}

static void
all_means_exports_opened_later_too (void)
{
  world_start (20, false);
  CHECK_EQ (world_start_recording ("p", ""), 0);
  client = world_enter ("blob/9");
  world_read (client, 9, 1, true);
  world_read (client, 9, 3, true);
  CHECK_EQ (world_stop ("p", NULL), 0);
  CHECK_STR (world_get_profile ("p"), "9@131072 9@393216");
  world_leave (client);
  world_end ();
}

static void
a_recording_ends_by_its_timer_and_stop_says_what_it_wrote (void)
{
  struct profile_start start = { .name = "p", .for_s = 1 };
  uint64_t records = 0;

  world_start (20, false);
  client = world_enter ("debian");
  CHECK_EQ (profiles_start (world_profiles, &start, NULL), 0);
  world_read (client, 1, 0, false);
  world_read (client, 2, 0, false);
  world_wait (world_is_idle);
  CHECK_EQ (world_stop ("p", &records), 0);
  CHECK_EQ (records, 2);
  CHECK_STR (world_get_profile ("p"), "1@0 2@0");
  CHECK_EQ (world_stop ("p", NULL), -EINVAL);
  world_leave (client);
  world_end ();
}

static void
a_recording_ends_when_nothing_new_is_opened (void)
{
  struct profile_start start = { .name = "p", .quiet_s = 2 };
  const struct timespec most = { .tv_sec = 1, .tv_nsec = 200 * NS_PER_MS };

  world_start (20, false);
  client = world_enter ("debian");
  CHECK_EQ (profiles_start (world_profiles, &start, NULL), 0);
  for (unsigned n = 1; n < 3; n++) {
    nanosleep (&most, NULL);
    CHECK_STR (world_recordings (), "p");
    world_read (client, n, 0, false);
  }
  nanosleep (&most, NULL);
  world_read (client, 1, 0, false); /* Not new. */
  nanosleep (&most, NULL);
  CHECK_STR (world_recordings (), "");
  CHECK_EQ (world_stop ("p", NULL), 0);
  CHECK_STR (world_get_profile ("p"), "1@0 2@0");
  world_leave (client);
  world_end ();
}

static void
a_recording_ends_with_the_last_client (void)
{
  struct profile_start start = {
    .name = "p",
    .export_tag = "debian",
    .until_exit = true,
  };
  struct export *again, *other;

  world_start (20, false);
  CHECK_EQ (profiles_start (world_profiles, &start, NULL), 0);
  other = world_enter ("other");
  world_leave (other);
  CHECK_STR (world_recordings (), "p");
  client = world_enter ("debian");
  again = world_enter ("debian");
  world_read (client, 1, 0, false);
  world_leave (client);
  world_read (again, 2, 0, false);
  CHECK_STR (world_recordings (), "p");
  world_leave (again);
  CHECK_EQ (world_stop ("p", NULL), 0);
  CHECK_STR (world_get_profile ("p"), "1@0 2@0");
  world_end ();
}

static void
replay_xor_record_does_one_of_them (void)
{
  struct profile_start start = { .name = "p",
                                 .mode = PROFILE_REPLAY_XOR_RECORD };
  uint64_t records = 0;

  world_start (20, false);
  client = world_enter ("debian");
  CHECK_EQ (profiles_start (world_profiles, &start, NULL), 0);
  world_read (client, 1, 0, false);
  CHECK_EQ (world_stop ("p", NULL), 0);
  CHECK_STR (world_get_profile ("p"), "1@0");
  world_evict (1);
  world_calls ();

  CHECK_EQ (profiles_start (world_profiles, &start, NULL), 0);
  CHECK_STR (world_recordings (), "");
  world_wait (is_drained);
  CHECK (world_is_resident (1));
  CHECK_EQ (world_watched (client), 0);
  world_read (client, 2, 0, false);
  CHECK_EQ (world_stop ("p", &records), 0);
  CHECK_EQ (records, 1);
  CHECK_STR (world_calls (), "GET_PROFILE OPEN:1 OPEN:2 PROFILE_USED");
  CHECK_STR (world_get_profile ("p"), "1@0");
  CHECK_EQ (world_pinned (), 0);
  world_leave (client);
  world_end ();
}

/* ---- Rule 9 ---- */

static void
an_attached_profile_is_named_by_its_image_and_unfiltered (void)
{
  struct profile_start start = { .attach = true, .export_tag = "debian" };
  struct bp_root root;
  char name[BP_ROOT_HEX_SIZE];

  world_start (20, false);
  root = world_root (63);
  bp_root_format (&root, name);
  CHECK_EQ (profiles_start (world_profiles, &start, NULL), 0);
  client = world_enter ("other"); /* Not in scope, but in the log. */
  world_read (client, 3, 0, false);
  CHECK_EQ (world_stop (name, NULL), 0);
  CHECK_STR (world_get_profile (name), "3@0");
  strcpy (start.export_tag, "absent");
  CHECK_EQ (profiles_start (world_profiles, &start, NULL), -ENOENT);
  strcpy (start.export_tag, "");
  CHECK_EQ (profiles_start (world_profiles, &start, NULL), -EINVAL);
  world_leave (client);
  world_end ();
}

/* ---- Rule 11 ---- */

static void
a_replay_is_counted_when_it_ends (void)
{
  const char *meta;

  world_start (20, false);
  world.missing[MISSING] = true;
  world_put_profile ("p", "1@0 4@0 2@0");
  CHECK_EQ (world_start_recording ("p", ""), 0);
  world_wait (is_drained);
  CHECK_STR (world_replays (), "p:drained");
  CHECK_EQ (world_stop ("p", NULL), 0);
  CHECK_STR (world_replays (), "p:ended");
  meta = world_get_meta ("p");
  CHECK (strstr (meta, "\"blobs_named\":3") != NULL);
  CHECK (strstr (meta, "\"blobs_opened\":2") != NULL);
  CHECK (strstr (meta, "\"blobs_missing\":1") != NULL);
  CHECK (strstr (meta, "\"bytes_prefetched\":16384") != NULL);
  CHECK (strstr (meta, "\"wasted\":16384") != NULL);
  world_end ();
}

int
main (void)
{
  RUN (recording_is_marked_before_record_start_and_the_profile_read_after);
  RUN (what_is_being_recorded_is_busy);
  RUN (a_start_that_fails_leaves_nothing);
  RUN (a_profile_is_renewed_by_what_clients_opened);
  RUN (what_does_not_fit_the_pin_share_is_left_out_last_first);
  RUN (a_profile_that_cannot_be_decoded_is_in_the_way);
  RUN (a_stop_waits_for_the_replay_but_not_for_ever);
  RUN (a_stop_lets_the_replay_drain_first);
  RUN (a_failed_record_stop_still_ends_the_recording);
  RUN (a_shutdown_does_not_wait_for_a_replay);
  RUN (who_waits_at_a_shutdown_is_told);
  RUN (a_warm_cache_does_not_make_a_profile_empty);
  RUN (an_abort_writes_nothing_and_releases_the_pins);
  RUN (a_lost_driver_aborts_what_is_recorded);
  RUN (a_scope_is_one_export);
  RUN (all_means_exports_opened_later_too);
  RUN (a_recording_ends_by_its_timer_and_stop_says_what_it_wrote);
  RUN (a_recording_ends_when_nothing_new_is_opened);
  RUN (a_recording_ends_with_the_last_client);
  RUN (replay_xor_record_does_one_of_them);
  RUN (an_attached_profile_is_named_by_its_image_and_unfiltered);
  RUN (a_replay_is_counted_when_it_ends);
  return 0;
}
