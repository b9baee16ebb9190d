/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Keys: taken when a blob is needed, closed when it is not, never more
 * than so many, never the same one twice.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/pager/fetcher-internal.h"
#include "lib/base/cleanup.h"
#include "tests/harness/fetching.h"

enum {
  NR_BLOBS = 500,
  KEY_LIMIT = 64,
};

static struct test_store store;
static struct driver *driver;
static struct fetcher *fetcher;

/* What the observer saw. */
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_key;
static size_t nr_keys, most_taken;

static void
note_key (void *opaque, uint64_t key, const struct bp_root *root)
{
  size_t taken;

  (void) opaque;
  (void) root;
  pthread_mutex_lock (&fetcher->lock);
  taken = fetcher->keys.nr_taken;
  pthread_mutex_unlock (&fetcher->lock);
  pthread_mutex_lock (&seen_lock);
  if (key > last_key)
    last_key = key;
  if (taken > most_taken)
    most_taken = taken;
  nr_keys++;
  pthread_mutex_unlock (&seen_lock);
}

static const struct driver_observer observer = { .key_opened = note_key };

/* Slots taken, so keys that the driver may have open. */
static bool
has_taken (void *opaque)
{
  LOCKED (&fetcher->lock);

  return fetcher->keys.nr_taken == *(const size_t *) opaque;
}

static void
expect_taken (size_t count)
{
  test_wait_until (has_taken, &count);
}

static void
a_key_is_closed_with_its_last_user (void)
{
  struct fetch_user *a = fetcher_user_new (fetcher);
  struct fetch_user *b = fetcher_user_new (fetcher);

  test_fetch_all (fetcher, &store, 0, 30, FETCH_DEMAND, a);
  test_fetch_all (fetcher, &store, 20, 20, FETCH_REPLAY, b);
  expect_taken (40);
  fetcher_user_free (fetcher, a);
  expect_taken (20);
  fetcher_user_free (fetcher, b);
  expect_taken (0);
}

static void
a_user_may_be_freed_while_its_fetches_are_under_way (void)
{
  struct fetch_user *user = fetcher_user_new (fetcher);
  struct test_fetch *fetches = test_fetches (NR_BLOBS);

  for (int i = 0; i < NR_BLOBS; i++)
    test_fetch_set (&fetches[i], &store.blobs[i], 0, FETCH_DEMAND, user);
  test_submit (fetcher, fetches, NR_BLOBS);
  fetcher_user_free (fetcher, user);
  test_wait (fetches, NR_BLOBS);
  for (int i = 0; i < NR_BLOBS; i++) {
    test_expect (&fetches[i], 0);
    fetcher_blob_evicted (fetcher, &store.blobs[i].root);
  }
  expect_taken (0);
  test_fetches_free (fetches, NR_BLOBS);
}

static void
a_blob_without_bytes_in_the_cache_is_closed_and_takes_a_new_key (void)
{
  struct fetch_user *user = fetcher_user_new (fetcher);
  uint64_t key;

  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[0], 0, user), 0);
  expect_taken (1);
  key = last_key;
  fetcher_blob_evicted (fetcher, &store.blobs[0].root);
  expect_taken (0);
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[0], 0, user), 0);
  CHECK_EQ (last_key, key + 1);
  fetcher_user_free (fetcher, user);
  expect_taken (0);
}

/* Opens that are waited for. */
static _Atomic unsigned nr_opened;
static int open_status;

static void
open_done (struct blob_open *open, int status)
{
  open_status = status;
  (void) open;
  nr_opened++;
}

static bool
all_opened (void *opaque)
{
  return nr_opened == *(const unsigned *) opaque;
}

static void
opening_says_the_size_and_keeps_the_blob_open (void)
{
  struct fetch_user *user = fetcher_user_new (fetcher);
  struct blob_open open = { .root = store.blobs[7].root,
                            .class = FETCH_REPLAY,
                            .user = user,
                            .done = open_done };
  struct blob_open absent = { .class = FETCH_DEMAND, .done = open_done };
  unsigned wanted;

  for (wanted = 1; wanted <= 2; wanted++) {
    open.size = 0;
    fetcher_open_blobs (fetcher, (struct blob_open *[]){ &open }, 1);
    test_wait_until (all_opened, &wanted);
    CHECK_EQ (open_status, 0);
    CHECK_EQ (open.size, store.blobs[7].size);
  }
  expect_taken (1);
  fetcher_open_blobs (fetcher, (struct blob_open *[]){ &absent }, 1);
  test_wait_until (all_opened, &wanted);
  CHECK_EQ (open_status, -ENOENT);
  expect_taken (1);
  fetcher_user_free (fetcher, user);
  expect_taken (0);
}

static void
no_more_keys_are_open_than_allowed (void)
{
  struct fetch_user *user = fetcher_user_new (fetcher);

  fetcher_limit_keys (fetcher, KEY_LIMIT);
  nr_keys = most_taken = 0;
  for (int round = 0; round < 3; round++)
    test_fetch_all (fetcher, &store, 0, NR_BLOBS,
                    round % 2 ? FETCH_REPLAY : FETCH_DEMAND, user);
  CHECK (nr_keys >= 3 * (NR_BLOBS - KEY_LIMIT));
  CHECK (most_taken <= KEY_LIMIT);
  fetcher_user_free (fetcher, user);
  expect_taken (0);
  fetcher_limit_keys (fetcher, KEYS_MAX);
}

static void
keys_that_are_taken_are_skipped (void)
{
  struct fetch_user *user = fetcher_user_new (fetcher);
  uint64_t first;

  /* A blob that stays open while the numbers go all the way round. */
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[0], 0, user), 0);
  first = last_key;
  pthread_mutex_lock (&fetcher->lock);
  fetcher->keys.next = first + BP_NR_SLOTS;
  pthread_mutex_unlock (&fetcher->lock);
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[1], 0, user), 0);
  CHECK_EQ (last_key, first + BP_NR_SLOTS + 1);

  /* Slot 0 is no slot. */
  pthread_mutex_lock (&fetcher->lock);
  fetcher->keys.next = (uint64_t) 7 * BP_NR_SLOTS;
  pthread_mutex_unlock (&fetcher->lock);
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[2], 0, user), 0);
  CHECK_EQ (last_key, (uint64_t) 7 * BP_NR_SLOTS + 1);
  CHECK_EQ (test_fetch_one (fetcher, &store.blobs[0], 0, user), 0);
  fetcher_user_free (fetcher, user);
  expect_taken (0);
}

static void
count_key (void *opaque, uint64_t key, const struct bp_root *root)
{
  size_t *count = opaque;

  (void) root;
  CHECK (key > 0);
  ++*count;
}

static void
all_open_keys_can_be_listed (void)
{
  struct fetch_user *user = fetcher_user_new (fetcher);
  size_t count = 0;

  test_fetch_all (fetcher, &store, 0, 50, FETCH_DEMAND, user);
  fetcher_for_each_key (fetcher, count_key, &count);
  CHECK_EQ (count, 50);
  fetcher_user_free (fetcher, user);
  expect_taken (0);
}

static void
a_lost_session_takes_every_key_with_it (void)
{
  struct fetch_user *user = fetcher_user_new (fetcher);
  const uint64_t opens = METRIC_GET (driver_opens);

  test_fetch_all (fetcher, &store, 0, 50, FETCH_DEMAND, user);
  kill (test_captive_pid (), SIGKILL);
  expect_taken (0);
  test_fetch_all (fetcher, &store, 0, 50, FETCH_DEMAND, user);
  CHECK_EQ (METRIC_GET (driver_opens), opens + 100);
  fetcher_user_free (fetcher, user);
  expect_taken (0);
}

int
main (void)
{
  test_requires_plugin ();
  log_init ("test-fetcher-keys", false);
  test_store_init (&store);
  test_store_add (&store, NR_BLOBS, 20000, 1);
  driver = test_driver (&store, 20);
  fetcher = driver_fetcher (driver);
  driver_observe (driver, &observer);

  RUN (a_key_is_closed_with_its_last_user);
  RUN (a_user_may_be_freed_while_its_fetches_are_under_way);
  RUN (a_blob_without_bytes_in_the_cache_is_closed_and_takes_a_new_key);
  RUN (opening_says_the_size_and_keeps_the_blob_open);
  RUN (no_more_keys_are_open_than_allowed);
  RUN (keys_that_are_taken_are_skipped);
  RUN (all_open_keys_can_be_listed);
  RUN (a_lost_session_takes_every_key_with_it);

  driver_free (driver);
  test_store_done (&store);
  return 0;
}
