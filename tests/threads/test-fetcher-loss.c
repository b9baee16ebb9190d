/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A driver that dies, is not there, freezes, or fails some of its reads:
 * fetches outlive it within the driver's timeout, and fail with the code
 * that says why beyond it.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/pager/fetcher-internal.h"
#include "lib/base/clock.h"
#include "tests/harness/fetching.h"

enum {
  NR_SMALL = 400,
  LARGE = NR_SMALL + 1, /* The blob of … */
  NR_WINDOWS = 128,     /* … so many windows: more than wait one by one. */
};

static struct test_store store;
static _Atomic unsigned sessions_lost;

static void
count_loss (void *opaque)
{
  (void) opaque;
  atomic_fetch_add (&sessions_lost, 1);
}

static const struct driver_observer observer = { .session_lost = count_loss };

static bool
more_bytes_have_come (void *opaque)
{
  const uint64_t *before = opaque;

  return METRIC_GET (driver_bytes) > *before;
}

static bool
has_captive (void *opaque)
{
  (void) opaque;
  return test_captive_pid () != 0;
}

static bool
loss_is_reported (void *opaque)
{
  return atomic_load (&sessions_lost) >= *(const unsigned *) opaque;
}

/* Fetch everything COUNT times over; kill the captive nbdkit meanwhile. */
static void
every_fetch_survives_a_killed_driver (void)
{
  struct driver *driver = test_driver (&store, 20);
  struct fetcher *fetcher = driver_fetcher (driver);
  struct test_fetch *fetches = test_fetches (NR_SMALL);
  const uint64_t sessions = METRIC_GET (driver_sessions);
  uint64_t bytes;
  unsigned nr_lost;

  driver_observe (driver, &observer);
  for (unsigned round = 0; round < 5; round++) {
    nr_lost = atomic_load (&sessions_lost) + 1;
    for (int i = 0; i < NR_SMALL; i++)
      test_fetch_set (&fetches[i], &store.blobs[i], 0,
                      i % 3 ? FETCH_DEMAND : FETCH_REPLAY, NULL);
    bytes = METRIC_GET (driver_bytes);
    test_submit (fetcher, fetches, NR_SMALL);
    test_wait_until (more_bytes_have_come, &bytes);
    kill (test_captive_pid (), SIGKILL);
    test_wait (fetches, NR_SMALL);
    for (int i = 0; i < NR_SMALL; i++)
      test_expect (&fetches[i], 0);
    test_wait_until (loss_is_reported, &nr_lost);
    test_wait_until (has_captive, NULL);
  }
  CHECK (METRIC_GET (driver_sessions) >= sessions + 4);
  CHECK_EQ (METRIC_GET (verify_corrupt), 0);
  test_fetches_free (fetches, NR_SMALL);
  driver_free (driver);
}

static bool
nr_reads_is_reached (void *opaque)
{
  return METRIC_GET (driver_reads) >= *(const uint64_t *) opaque;
}

/* Few reads of one blob are sent at a time; the others wait on its key,
 * which goes with the session.
 */
static void
what_waits_on_a_key_survives_a_killed_driver (void)
{
  struct driver *driver = test_driver (&store, 10);
  struct fetcher *fetcher = driver_fetcher (driver);
  struct test_fetch *fetches = test_fetches (NR_WINDOWS);
  uint64_t reads;

  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[LARGE], 0, NULL), 0);
  test_freeze (test_captive_pid ());
  for (int i = 0; i < NR_WINDOWS; i++)
    test_fetch_set (&fetches[i], &store.blobs[LARGE],
                    (uint64_t) i * BP_WINDOW_SIZE, FETCH_DEMAND, NULL);
  reads = METRIC_GET (driver_reads) + MAX_SENT_PER_BLOB;
  test_submit (fetcher, fetches, NR_WINDOWS);
  test_wait_until (nr_reads_is_reached, &reads);
  kill (test_captive_pid (), SIGKILL);
  test_wait (fetches, NR_WINDOWS);
  for (int i = 0; i < NR_WINDOWS; i++)
    test_expect (&fetches[i], 0);
  test_fetches_free (fetches, NR_WINDOWS);
  driver_free (driver);
}

static void
the_captive_driver_and_its_directory_go_with_the_daemon (void)
{
  struct driver *driver = test_driver (&store, 5);
  char path[128];
  const char *socket = strstr (driver_uri (driver), "socket=") + 7;
  struct stat st;

  CHECK_EQ (strlen (socket) < sizeof path, true);
  strcpy (path, socket);
  CHECK_EQ (stat (path, &st), 0);
  *strrchr (path, '/') = '\0';
  CHECK_EQ (stat (path, &st), 0);
  CHECK_EQ (st.st_mode & 07777, 0700);
  driver_free (driver);
  CHECK_EQ (test_captive_pid (), 0);
  CHECK_EQ (stat (path, &st), -1);
}

static void
a_fetch_waits_for_a_driver_that_comes_in_time (void)
{
  struct driver *driver = test_driver_at (&store, "socket", 20);
  struct test_fetch *fetch = test_fetches (1);
  struct bp_error err;
  pid_t pid;

  test_fetch_set (fetch, &store.blobs[0], 0, FETCH_DEMAND, NULL);
  test_submit (driver_fetcher (driver), fetch, 1);
  CHECK (driver_wait_ready (driver, 0, &err) < 0);
  CHECK (!driver_is_connected (driver));
  pid = test_nbdkit_start (&store, NULL, NULL);
  test_wait (fetch, 1);
  test_expect (fetch, 0);
  CHECK (driver_is_connected (driver));

  /* It is restarted: the lanes learn it, and a new session is made. */
  test_kill (pid, SIGKILL);
  pid = test_nbdkit_start (&store, NULL, NULL);
  CHECK_EQ (test_fetch_one (driver_fetcher (driver), &store.blobs[0], 0,
                            NULL),
            0);
  test_fetches_free (fetch, 1);
  driver_free (driver);
  test_kill (pid, SIGTERM);
}

static void
without_a_driver_everything_fails_in_time (void)
{
  struct driver *driver = test_driver_at (&store, "nobody", 1);
  const uint64_t start = now_ns ();
  struct bp_tag tag;
  struct bp_error err;

  CHECK_EQ (test_fetch_one (driver_fetcher (driver), &store.blobs[0], 0,
                            NULL),
            -EIO);
  CHECK_EQ (driver_get_image (driver, "tag", &tag, &err), -EIO);
  CHECK (now_ns () - start < 10 * NS_PER_SEC);
  driver_free (driver);
}

static void
a_frozen_driver_keeps_the_buffer_until_it_answers (void)
{
  struct driver *driver = test_driver (&store, 1);
  struct fetcher *fetcher = driver_fetcher (driver);
  struct test_fetch *fetch = test_fetches (2);
  const pid_t pid = test_captive_pid ();

  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[0], 0, NULL), 0);
  test_freeze (pid);
  test_fetch_set (&fetch[0], &store.blobs[0], 0, FETCH_DEMAND, NULL);
  test_submit (fetcher, fetch, 1);
  test_wait (fetch, 1);
  test_expect (fetch, -ETIMEDOUT);
  CHECK (!fetch->is_retired);

  /* One request at a time: this one is not sent, so nothing is owed. */
  test_fetch_set (&fetch[1], &store.blobs[0], 0, FETCH_DEMAND, NULL);
  test_submit (fetcher, &fetch[1], 1);
  test_wait (&fetch[1], 1);
  test_expect (&fetch[1], -EIO);

  CHECK_EQ (kill (pid, SIGCONT), 0);
  test_wait_retired (fetch);
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[0], 0, NULL), 0);
  test_fetches_free (fetch, 2);
  driver_free (driver);
}

static void
the_daemon_ends_although_the_driver_is_frozen (void)
{
  struct driver *driver = test_driver (&store, 30);
  struct fetcher *fetcher = driver_fetcher (driver);
  struct test_fetch *fetches = test_fetches (NR_SMALL);
  uint64_t start;

  test_freeze (test_captive_pid ());
  for (int i = 0; i < NR_SMALL; i++)
    test_fetch_set (&fetches[i], &store.blobs[i], 0, FETCH_DEMAND, NULL);
  test_submit (fetcher, fetches, NR_SMALL);
  start = now_ns ();
  driver_shut_down (driver);
  test_wait (fetches, NR_SMALL);
  for (int i = 0; i < NR_SMALL; i++)
    test_expect (&fetches[i], -ESHUTDOWN);
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[0], 0, NULL), -ESHUTDOWN);
  CHECK (now_ns () - start < 2 * NS_PER_SEC);
  driver_free (driver);
  CHECK_EQ (test_captive_pid (), 0);
  test_fetches_free (fetches, NR_SMALL);
}

static void
reads_that_fail_are_tried_again (void)
{
  const pid_t pid = test_nbdkit_start (&store, "error",
                                       "error-pread-rate=10%");
  struct driver *driver = test_driver_at (&store, "socket", 30);
  const uint64_t retries = METRIC_GET (driver_retries);
  const uint64_t errors = METRIC_GET (driver_errors);

  test_fetch_all (driver_fetcher (driver), &store, 0, NR_SMALL, FETCH_DEMAND,
                  NULL);
  test_fetch_all (driver_fetcher (driver), &store, NR_SMALL, 1, FETCH_REPLAY,
                  NULL);
  CHECK (METRIC_GET (driver_retries) > retries);
  CHECK (METRIC_GET (driver_errors) > errors);
  CHECK_EQ (METRIC_GET (verify_corrupt), 0);
  driver_free (driver);
  test_kill (pid, SIGTERM);
}

int
main (void)
{
  test_requires_plugin ();
  log_init ("test-fetcher-loss", false);
  test_store_init (&store);
  test_store_add (&store, NR_SMALL, 50000, 1);
  test_store_add (&store, 1, 30 * BP_WINDOW_SIZE, 2);
  test_store_add (&store, 1, NR_WINDOWS * BP_WINDOW_SIZE, 3);

  RUN (every_fetch_survives_a_killed_driver);
  RUN (what_waits_on_a_key_survives_a_killed_driver);
  RUN (the_captive_driver_and_its_directory_go_with_the_daemon);
  RUN (a_fetch_waits_for_a_driver_that_comes_in_time);
  RUN (without_a_driver_everything_fails_in_time);
  RUN (a_frozen_driver_keeps_the_buffer_until_it_answers);
  RUN (the_daemon_ends_although_the_driver_is_frozen);
  RUN (reads_that_fail_are_tried_again);

  test_store_done (&store);
  return 0;
}
