/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Slow requests: tags, profiles and recordings, over the real driver. */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "lib/base/cleanup.h"
#include "lib/profile.h"
#include "lib/store.h"
#include "tests/harness/fetching.h"

enum {
  NR_BLOBS = 40
};

static struct test_store store;
static struct driver *driver;
static struct fetcher *fetcher;
static struct bp_root key_roots[4096]; /* By key. */

static void
note_key (void *opaque, uint64_t key, const struct bp_root *root)
{
  (void) opaque;
  CHECK (key < sizeof key_roots / sizeof key_roots[0]);
  key_roots[key] = *root;
}

static const struct driver_observer observer = { .key_opened = note_key };

static void
add_tag (const char *name)
{
  struct bp_tag tag = { .size = 12345, .root = store.blobs[0].root };
  struct bp_import *import;
  struct bp_store *bp_store;
  struct bp_error err;

  strcpy (tag.name, name);
  strcpy (tag.created, "2026-01-01T00:00:00Z");
  CHECK_EQ (bp_store_open (&bp_store, store.path, BP_STORE_WRITE, &err), 0);
  CHECK_EQ (bp_import_begin (&import, bp_store, BP_CODEC_RAW, &err), 0);
  CHECK_EQ (bp_import_commit (import, &tag, &err), 0);
  bp_import_free (import);
  bp_store_close (bp_store);
}

static void
tags_are_got_and_listed (void)
{
  CLEANUP_FREE struct bp_tag *tags = NULL;
  struct bp_error err;
  struct bp_tag tag;
  size_t count;

  add_tag ("one");
  add_tag ("two");
  CHECK_EQ (driver_get_image (driver, "one", &tag, &err), 0);
  CHECK_EQ (tag.size, 12345);
  CHECK (bp_root_equal (&tag.root, &store.blobs[0].root));
  CHECK_EQ (driver_get_image (driver, "three", &tag, &err), -ENOENT);
  CHECK_EQ (driver_get_image (driver, "../one", &tag, &err), -ENOENT);
  CHECK_EQ (driver_list_images (driver, &tags, &count, &err), 0);
  CHECK_EQ (count, 2);
  CHECK_EQ (strcmp (tags[0].name, "one"), 0);
  CHECK_EQ (strcmp (tags[1].name, "two"), 0);
}

static void
a_large_profile_comes_back_as_it_was_written (void)
{
  const size_t len = 200 * BP_PROFILE_BLOCK;
  CLEANUP_FREE uint8_t *data = calloc (1, len), *got = NULL;
  CLEANUP_FREE char *meta = NULL, *list = NULL, *again = NULL;
  struct bp_error err;
  struct bp_root root;
  size_t got_len;

  CHECK (data != NULL);
  for (size_t i = 0; i < len; i += BP_PROFILE_BLOCK)
    memset (data + i, (int) (i / BP_PROFILE_BLOCK) + 1, 40);
  CHECK_EQ (driver_get_profile (driver, "p", &meta, &got, &got_len, &err),
            -ENOENT);
  CHECK_EQ (driver_write_profile (driver, "p", "{}", data, len, &err), 0);
  CHECK_EQ (driver_get_profile (driver, "p", &meta, &got, &got_len, &err),
            0);
  CHECK_EQ (got_len, len);
  CHECK_EQ (memcmp (got, data, len), 0);
  CHECK_EQ (bp_merkle_root (data, len, &root), 0);
  CHECK_EQ (driver_profile_used (driver, "p", &root, "{\"late\":3}", &err),
            0);
  CHECK_EQ (driver_list_profiles (driver, &list, &err), 0);
  CHECK (strstr (list, "\"late\":3") != NULL);
  CHECK_EQ (driver_delete_profile (driver, "p", &err), 0);
  CHECK_EQ (driver_delete_profile (driver, "p", &err), -ENOENT);
  CHECK_EQ (driver_list_profiles (driver, &again, &err), 0);
  CHECK (strstr (again, "late") == NULL);
}

/* MESSAGES are the windows of blobs FIRST, FIRST + 1, …, in order. */
static void
expect_messages (const uint8_t *data, size_t len, size_t first,
                 size_t wanted)
{
  CLEANUP_FREE struct bp_file_message *messages = NULL;
  struct bp_error err;
  size_t count;

  CHECK_EQ (bp_profile_decode_files (data, len, &messages, &count, &err), 0);
  CHECK_EQ (count, wanted);
  for (size_t i = 0; i < count; i++) {
    CHECK_EQ (messages[i].offset, 0);
    CHECK (bp_root_equal (&key_roots[messages[i].id],
                          &store.blobs[first + i].root));
  }
}

static void
a_recording_holds_what_was_read_in_order (void)
{
  CLEANUP_FREE uint8_t *data = NULL;
  struct driver_recording recording;
  struct bp_error err;
  size_t len;

  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[0], 0, NULL), 0);
  CHECK_EQ (driver_record_start (driver, &recording, &err), 0);
  CHECK_EQ (recording.sent_start, fetcher_windows_sent (fetcher));
  for (int i = 0; i < NR_BLOBS; i++)
    CHECK_EQ (test_fetch_one (fetcher, &store.blobs[i], 0, NULL), 0);
  CHECK_EQ (fetcher_windows_sent (fetcher) - recording.sent_start, NR_BLOBS);
  CHECK_EQ (driver_record_stop (driver, &recording, &data, &len, &err), 0);
  expect_messages (data, len, 0, NR_BLOBS);

  CHECK_EQ (driver_record_stop (driver, &recording, &data, &len, &err),
            -EINVAL);
}

static void
an_aborted_recording_is_gone (void)
{
  CLEANUP_FREE uint8_t *data = NULL;
  struct driver_recording recording;
  struct bp_error err;
  size_t len;

  CHECK_EQ (driver_record_start (driver, &recording, &err), 0);
  CHECK_EQ (driver_record_abort (driver, &recording, &err), 0);
  CHECK_EQ (driver_record_stop (driver, &recording, &data, &len, &err),
            -EINVAL);
}

static void
a_recording_does_not_outlive_its_session (void)
{
  CLEANUP_FREE uint8_t *data = NULL;
  struct driver_recording old, recording;
  struct bp_error err;
  struct bp_tag tag;
  size_t len;

  CHECK_EQ (driver_record_start (driver, &old, &err), 0);
  CHECK_EQ (kill (test_captive_pid (), SIGKILL), 0);
  /* What may be asked twice waits for the next session. */
  CHECK_EQ (driver_get_image (driver, "one", &tag, &err), 0);
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[1], 0, NULL), 0);
  CHECK_EQ (driver_record_start (driver, &recording, &err), 0);
  CHECK (recording.epoch > old.epoch);
  CHECK_EQ (driver_record_stop (driver, &old, &data, &len, &err), -EIO);
  CHECK_EQ (driver_record_abort (driver, &old, &err), -EIO);
  CHECK_EQ (driver_record_stop (driver, &recording, &data, &len, &err), 0);
  CHECK_EQ (len, 0);
}

static void
a_request_that_is_not_answered_fails_and_the_next_one_works (void)
{
  struct driver *impatient = NULL;
  struct bp_error err;
  struct bp_tag tag;
  pid_t pid;

  driver_free (driver);
  impatient = test_driver (&store, 1);
  pid = test_captive_pid ();
  test_freeze (pid);
  CHECK_EQ (driver_get_image (impatient, "one", &tag, &err), -EIO);
  CHECK_EQ (kill (pid, SIGCONT), 0);
  while (driver_get_image (impatient, "one", &tag, &err) == -EIO)
    ;
  CHECK_EQ (driver_get_image (impatient, "one", &tag, &err), 0);
  driver_shut_down (impatient);
  CHECK_EQ (driver_get_image (impatient, "one", &tag, &err), -ESHUTDOWN);
  driver_free (impatient);
}

int
main (void)
{
  test_requires_plugin ();
  log_init ("test-fetcher-requests", false);
  test_store_init (&store);
  test_store_add (&store, NR_BLOBS, 20000, 1);
  driver = test_driver (&store, 20);
  fetcher = driver_fetcher (driver);
  driver_observe (driver, &observer);

  RUN (tags_are_got_and_listed);
  RUN (a_large_profile_comes_back_as_it_was_written);
  RUN (a_recording_holds_what_was_read_in_order);
  RUN (an_aborted_recording_is_gone);
  RUN (a_recording_does_not_outlive_its_session);
  RUN (a_request_that_is_not_answered_fails_and_the_next_one_works);

  test_store_done (&store);
  return 0;
}
