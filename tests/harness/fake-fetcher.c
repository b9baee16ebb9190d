/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The driver in memory. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/fetcher.h"
#include "tests/harness/check.h"
#include "tests/harness/fake-fetcher.h"
#include "tests/harness/image.h"

enum {
  NR_THREADS = 2,
  NR_BUCKETS = 4096,
  MAX_TAGS = 8,
  MAX_LOG = 4096
};

struct blob {
  struct blob *next;
  struct bp_root root;
  const uint8_t *data;
  uint64_t size;
  uint64_t told; /* The size that an open is told. */
  int status;
  size_t fetches;
  size_t evicted;
};

struct fetch_user {
  int unused;
};

struct fetcher {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct blob *buckets[NR_BUCKETS];
  struct fetch_list queues[2]; /* By class. */
  struct fetch_list timed_out;
  size_t nr_queued;
  size_t nr_busy;
  size_t nr_fetches;
  size_t nr_promotions;
  struct bp_root log[MAX_LOG];
  size_t nr_log;
  bool is_held;
  unsigned may_pass; /* While held. */
  bool is_ending;
  int nr_users;
  _Atomic uint64_t sent;
  pthread_t threads[NR_THREADS];
};

struct owned {
  struct owned *next;
  struct index_blob index;
};

struct driver {
  struct fetcher fetcher;
  struct bp_tag tags[MAX_TAGS];
  size_t nr_tags;
  struct owned *owned;
};

/* ---- Blobs ---- */

static struct blob **
blob_place (struct fetcher *fetcher, const struct bp_root *root)
{
  struct blob **place;
  uint32_t n;

  memcpy (&n, root->bytes, sizeof n);
  place = &fetcher->buckets[n % NR_BUCKETS];
  while (*place && !bp_root_equal (&(*place)->root, root))
    place = &(*place)->next;
  return place;
}

/* Called with the lock held; a root without bytes is missing. */
static struct blob *
blob_of (struct fetcher *fetcher, const struct bp_root *root)
{
  struct blob **place = blob_place (fetcher, root);

  if (*place == NULL) {
    *place = calloc (1, sizeof **place);
    CHECK (*place != NULL);
    (*place)->root = *root;
    (*place)->status = -ENOENT;
  }
  return *place;
}

static void
set_blob (struct driver *driver, const struct bp_root *root,
          const uint8_t *data, uint64_t size)
{
  LOCKED (&driver->fetcher.lock);
  struct blob *blob = blob_of (&driver->fetcher, root);

  blob->data = data;
  blob->size = blob->told = size;
  blob->status = 0;
}

struct bp_root
fake_add_blob (struct driver *driver, const uint8_t *data, size_t len)
{
  struct bp_root root;

  CHECK_EQ (bp_merkle_root (data, len, &root), 0);
  set_blob (driver, &root, data, len);
  return root;
}

void
fake_set_tag (struct driver *driver, const char *name,
              const struct bp_root *root, uint64_t size, uint64_t segments)
{
  LOCKED (&driver->fetcher.lock);
  struct bp_tag *tag = driver->tags;

  while (tag < driver->tags + driver->nr_tags &&
         strcmp (tag->name, name) != 0)
    tag++;
  if (tag == driver->tags + driver->nr_tags) {
    CHECK (driver->nr_tags < MAX_TAGS);
    driver->nr_tags++;
  }
  snprintf (tag->name, sizeof tag->name, "%s", name);
  tag->root = *root;
  tag->size = size;
  tag->segments = segments;
  tag->bytes = size;
}

struct bp_root
fake_add_image (struct driver *driver, const char *name,
                const uint8_t *data, size_t len)
{
  struct owned *owned = calloc (1, sizeof *owned);
  struct segments segments;
  struct bp_root root;
  size_t i;

  CHECK (owned != NULL);
  segments_of (&segments, data, len, 1 << 20);
  for (i = 0; i < segments.count; i++)
    set_blob (driver, &segments.list[i].root,
              data + segments.list[i].offset, segments.list[i].len);
  index_of (&owned->index, &segments);
  owned->next = driver->owned;
  driver->owned = owned;
  root = fake_add_blob (driver, owned->index.bytes,
                        owned->index.index.blob_size);
  fake_set_tag (driver, name, &root, len, segments.count);
  segments_done (&segments);
  return root;
}

/* ---- Serving ---- */

static struct fetch *
pop (struct fetch_list *list)
{
  struct fetch *fetch = TAILQ_FIRST (list);

  if (fetch)
    TAILQ_REMOVE (list, fetch, link);
  return fetch;
}

/* Called with the lock held. */
static bool
may_serve (struct fetcher *fetcher)
{
  return fetcher->nr_queued > 0 &&
         (!fetcher->is_held || fetcher->may_pass > 0);
}

static int
answer (const struct fetch *fetch, const struct blob *blob)
{
  if (blob->status < 0)
    return blob->status;
  if (fetch->blob_size != blob->size)
    return -EPROTO;
  CHECK (range_is_within (blob->size, fetch->offset, fetch->len));
  memcpy (fetch->buf, blob->data + fetch->offset, fetch->len);
  return 0;
}

static struct fetch *
take (struct fetcher *fetcher, int *ret_status)
{
  struct fetch *fetch = pop (&fetcher->queues[FETCH_DEMAND]);
  struct blob *blob;

  if (fetch == NULL)
    fetch = pop (&fetcher->queues[FETCH_REPLAY]);
  fetcher->nr_queued--;
  fetcher->nr_busy++;
  if (fetcher->is_held)
    fetcher->may_pass--;
  blob = blob_of (fetcher, &fetch->root);
  *ret_status = answer (fetch, blob);
  if (*ret_status == -ETIMEDOUT)
    TAILQ_INSERT_TAIL (&fetcher->timed_out, fetch, link);
  return fetch;
}

static void *
serve (void *opaque)
{
  struct fetcher *fetcher = opaque;
  struct fetch *fetch;
  int status;

  pthread_mutex_lock (&fetcher->lock);
  while (!fetcher->is_ending) {
    if (!may_serve (fetcher)) {
      pthread_cond_wait (&fetcher->changed, &fetcher->lock);
      continue;
    }
    fetch = take (fetcher, &status);
    pthread_mutex_unlock (&fetcher->lock);
    fetch->done (fetch, status);
    pthread_mutex_lock (&fetcher->lock);
    fetcher->nr_busy--;
    pthread_cond_broadcast (&fetcher->changed);
  }
  pthread_mutex_unlock (&fetcher->lock);
  return NULL;
}

static struct fetch *
take_timed_out (struct fetcher *fetcher)
{
  LOCKED (&fetcher->lock);

  return pop (&fetcher->timed_out);
}

void
fake_retire (struct driver *driver)
{
  struct fetch *fetch;

  while ((fetch = take_timed_out (&driver->fetcher)) != NULL) {
    memset (fetch->buf, 0xdd, fetch->len); /* The late answer. */
    fetch->retired (fetch);
  }
}

/* ---- Control ---- */

void
fake_fail (struct driver *driver, const struct bp_root *root, int status)
{
  LOCKED (&driver->fetcher.lock);

  blob_of (&driver->fetcher, root)->status = status;
}

void
fake_lie (struct driver *driver, const struct bp_root *root, uint64_t size)
{
  LOCKED (&driver->fetcher.lock);

  blob_of (&driver->fetcher, root)->told = size;
}

void
fake_hold (struct driver *driver)
{
  LOCKED (&driver->fetcher.lock);

  driver->fetcher.is_held = true;
  driver->fetcher.may_pass = 0;
}

void
fake_let_go (struct driver *driver)
{
  LOCKED (&driver->fetcher.lock);

  driver->fetcher.is_held = false;
  pthread_cond_broadcast (&driver->fetcher.changed);
}

void
fake_let_some (struct driver *driver, unsigned count)
{
  LOCKED (&driver->fetcher.lock);

  driver->fetcher.may_pass += count;
  pthread_cond_broadcast (&driver->fetcher.changed);
}

void
fake_wait_idle (struct driver *driver)
{
  struct fetcher *fetcher = &driver->fetcher;
  LOCKED (&fetcher->lock);

  while (fetcher->nr_queued > 0 || fetcher->nr_busy > 0)
    pthread_cond_wait (&fetcher->changed, &fetcher->lock);
}

void
fake_wait_queued (struct driver *driver, size_t count)
{
  struct fetcher *fetcher = &driver->fetcher;
  LOCKED (&fetcher->lock);

  while (fetcher->nr_queued < count)
    pthread_cond_wait (&fetcher->changed, &fetcher->lock);
}

size_t
fake_fetches (struct driver *driver, const struct bp_root *root)
{
  LOCKED (&driver->fetcher.lock);

  return root ? blob_of (&driver->fetcher, root)->fetches
              : driver->fetcher.nr_fetches;
}

size_t
fake_promotions (struct driver *driver)
{
  LOCKED (&driver->fetcher.lock);

  return driver->fetcher.nr_promotions;
}

size_t
fake_evicted (struct driver *driver, const struct bp_root *root)
{
  LOCKED (&driver->fetcher.lock);

  return blob_of (&driver->fetcher, root)->evicted;
}

struct bp_root
fake_submitted (struct driver *driver, size_t i)
{
  LOCKED (&driver->fetcher.lock);

  CHECK (i < driver->fetcher.nr_log && i < MAX_LOG);
  return driver->fetcher.log[i];
}

void
fake_wait_users (struct driver *driver, int count)
{
  struct fetcher *fetcher = &driver->fetcher;
  LOCKED (&fetcher->lock);

  while (fetcher->nr_users != count)
    pthread_cond_wait (&fetcher->changed, &fetcher->lock);
}

/* ---- fetcher.h ---- */

struct fetch_user *
fetcher_user_new (struct fetcher *fetcher)
{
  LOCKED (&fetcher->lock);

  fetcher->nr_users++;
  return calloc (1, sizeof (struct fetch_user));
}

void
fetcher_user_free (struct fetcher *fetcher, struct fetch_user *user)
{
  LOCKED (&fetcher->lock);

  fetcher->nr_users--;
  pthread_cond_broadcast (&fetcher->changed);
  free (user);
}

void
fetcher_submit (struct fetcher *fetcher, struct fetch *const *fetches,
                size_t count)
{
  LOCKED (&fetcher->lock);
  size_t i;

  for (i = 0; i < count; i++) {
    struct fetch *fetch = fetches[i];

    blob_of (fetcher, &fetch->root)->fetches++;
    if (fetcher->nr_log < MAX_LOG)
      fetcher->log[fetcher->nr_log] = fetch->root;
    fetcher->nr_log++;
    TAILQ_INSERT_TAIL (&fetcher->queues[fetch->class], fetch, link);
  }
  fetcher->nr_queued += count;
  fetcher->nr_fetches += count;
  atomic_fetch_add (&fetcher->sent, count);
  pthread_cond_broadcast (&fetcher->changed);
}

void
fetcher_promote (struct fetcher *fetcher, struct fetch *fetch)
{
  LOCKED (&fetcher->lock);
  struct fetch *other;

  TAILQ_FOREACH (other, &fetcher->queues[FETCH_REPLAY], link)
  if (other == fetch)
    break;
  if (other == NULL)
    return;
  TAILQ_REMOVE (&fetcher->queues[FETCH_REPLAY], fetch, link);
  fetch->class = FETCH_DEMAND;
  TAILQ_INSERT_TAIL (&fetcher->queues[FETCH_DEMAND], fetch, link);
  fetcher->nr_promotions++;
}

void
fetcher_open_blobs (struct fetcher *fetcher, struct blob_open *const *opens,
                    size_t count)
{
  size_t i;

  for (i = 0; i < count; i++) {
    int status;

    pthread_mutex_lock (&fetcher->lock);
    opens[i]->size = blob_of (fetcher, &opens[i]->root)->told;
    status = blob_of (fetcher, &opens[i]->root)->status;
    pthread_mutex_unlock (&fetcher->lock);
    opens[i]->done (opens[i], status);
  }
}

void
fetcher_blob_evicted (struct fetcher *fetcher, const struct bp_root *root)
{
  LOCKED (&fetcher->lock);

  blob_of (fetcher, root)->evicted++;
}

uint64_t fake_table_bytes;

uint64_t
fetcher_table_bytes (const struct fetcher *fetcher)
{
  (void) fetcher;
  return fake_table_bytes;
}

uint64_t
fetcher_windows_sent (struct fetcher *fetcher)
{
  return atomic_load (&fetcher->sent);
}

/* ---- driver.h ---- */

struct fetcher *
driver_fetcher (struct driver *driver)
{
  return &driver->fetcher;
}

int
driver_get_image (struct driver *driver, const char *name,
                  struct bp_tag *ret_tag, struct bp_error *err)
{
  LOCKED (&driver->fetcher.lock);
  size_t i;

  for (i = 0; i < driver->nr_tags; i++)
    if (strcmp (driver->tags[i].name, name) == 0) {
      *ret_tag = driver->tags[i];
      return 0;
    }
  return bp_error_set (err, -ENOENT, "image '%s': %m", name);
}

int
driver_list_images (struct driver *driver, struct bp_tag **ret_tags,
                    size_t *ret_count, struct bp_error *err)
{
  LOCKED (&driver->fetcher.lock);

  (void) err;
  *ret_tags = calloc (MAX_TAGS, sizeof driver->tags[0]);
  CHECK (*ret_tags != NULL);
  memcpy (*ret_tags, driver->tags, sizeof driver->tags);
  *ret_count = driver->nr_tags;
  return 0;
}

struct driver *
fake_driver_new (void)
{
  struct driver *driver = calloc (1, sizeof *driver);
  unsigned i;

  CHECK (driver != NULL);
  pthread_mutex_init (&driver->fetcher.lock, NULL);
  pthread_cond_init (&driver->fetcher.changed, NULL);
  TAILQ_INIT (&driver->fetcher.queues[FETCH_DEMAND]);
  TAILQ_INIT (&driver->fetcher.queues[FETCH_REPLAY]);
  TAILQ_INIT (&driver->fetcher.timed_out);
  for (i = 0; i < NR_THREADS; i++)
    CHECK_EQ (pthread_create (&driver->fetcher.threads[i], NULL, serve,
                              &driver->fetcher),
              0);
  return driver;
}

static void
free_blobs (struct fetcher *fetcher)
{
  unsigned i;

  for (i = 0; i < NR_BUCKETS; i++)
    while (fetcher->buckets[i]) {
      struct blob *blob = fetcher->buckets[i];

      fetcher->buckets[i] = blob->next;
      free (blob);
    }
}

void
fake_driver_free (struct driver *driver)
{
  struct fetcher *fetcher = &driver->fetcher;
  unsigned i;

  pthread_mutex_lock (&fetcher->lock);
  fetcher->is_ending = true;
  pthread_cond_broadcast (&fetcher->changed);
  pthread_mutex_unlock (&fetcher->lock);
  for (i = 0; i < NR_THREADS; i++)
    pthread_join (fetcher->threads[i], NULL);
  CHECK_EQ (fetcher->nr_queued, 0);
  CHECK_EQ (fetcher->nr_users, 0);
  free_blobs (fetcher);
  while (driver->owned) {
    struct owned *owned = driver->owned;

    driver->owned = owned->next;
    index_done (&owned->index);
    free (owned);
  }
  pthread_cond_destroy (&fetcher->changed);
  pthread_mutex_destroy (&fetcher->lock);
  free (driver);
}
