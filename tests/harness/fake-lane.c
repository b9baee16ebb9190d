/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The fake pager and fetcher, with their lane. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "daemon/options.h"
#include "daemon/profile/manager.h"
#include "harness/check.h"
#include "harness/fake-state.h"
#include "harness/fake-world.h"

/* ---- The lane ---- */

static void
add_job (struct job job)
{
  struct job *copy = malloc (sizeof *copy), **end = &state.jobs;

  *copy = job;
  while (*end)
    end = &(*end)->next;
  *end = copy;
  pthread_cond_broadcast (&state.wake);
}

/* Both return with the lock released while the callback runs. */
static void
run_open (struct job *job)
{
  struct blob_open *open = job->open;
  const unsigned n = number_of (&open->root);
  const uint64_t key = state.stop ? 0 : open_key (n);
  int status = state.stop ? -ESHUTDOWN : 0;

  if (status == 0 && world.missing[n]) {
    status = -ENOENT;
    state.keys[n] = 0;
    note_call ("CLOSE:%u", n);
  }
  open->size = BLOB_BYTES;
  pthread_mutex_unlock (&state.lock);
  tell_key (key, n);
  open->done (open, status);
  pthread_mutex_lock (&state.lock);
}

static void
run_page_in (struct job *job)
{
  const int status = state.stop ? -ESHUTDOWN : 0;

  if (status == 0) {
    CHECK (state.keys[job->n] != 0);
    append_log (state.keys[job->n], job->w * UINT64_C (131072));
    state.resident[job->n][job->w] = true;
    if (job->pins)
      job->pins->counts.prefetched_bytes += BLOB_BYTES;
  }
  pthread_mutex_unlock (&state.lock);
  job->done (job->opaque, BLOB_BYTES, status);
  pthread_mutex_lock (&state.lock);
}

void *
lane_main (void *opaque)
{
  LOCKED (&state.lock);

  (void) opaque;
  while (!state.stop || state.jobs) {
    struct job *job = state.jobs;

    if (job == NULL || (state.hold && !state.stop)) {
      pthread_cond_wait (&state.wake, &state.lock);
      continue;
    }
    state.jobs = job->next;
    state.running = job;
    if (job->open)
      run_open (job);
    else
      run_page_in (job);
    state.running = NULL;
    free (job);
  }
  return NULL;
}

void
world_hold_lane (void)
{
  LOCKED (&state.lock);

  state.hold = true;
}

void
world_release_lane (void)
{
  LOCKED (&state.lock);

  state.hold = false;
  pthread_cond_broadcast (&state.wake);
}

/* ---- fetcher.h ---- */

struct fetch_user *
fetcher_user_new (struct fetcher *fetcher)
{
  LOCKED (&state.lock);

  (void) fetcher;
  state.users++;
  return calloc (1, sizeof (struct fetch_user));
}

void
fetcher_user_free (struct fetcher *fetcher, struct fetch_user *user)
{
  LOCKED (&state.lock);

  (void) fetcher;
  state.users--;
  free (user);
}

void
fetcher_open_blobs (struct fetcher *fetcher, struct blob_open *const *opens,
                    size_t count)
{
  LOCKED (&state.lock);

  (void) fetcher;
  for (size_t i = 0; i < count; i++) {
    CHECK_EQ (opens[i]->class, FETCH_REPLAY);
    add_job ((struct job){ .open = opens[i] });
  }
}

uint64_t
fetcher_windows_sent (struct fetcher *fetcher)
{
  LOCKED (&state.lock);

  (void) fetcher;
  return state.sent;
}

void
fetcher_for_each_key (struct fetcher *fetcher,
                      void (*fn) (void *opaque, uint64_t key,
                                  const struct bp_root *root),
                      void *opaque)
{
  uint64_t keys[WORLD_BLOBS];

  (void) fetcher;
  pthread_mutex_lock (&state.lock);
  memcpy (keys, state.keys, sizeof keys);
  pthread_mutex_unlock (&state.lock);
  for (unsigned n = 0; n < WORLD_BLOBS; n++) {
    const struct bp_root root = world_root (n);

    if (keys[n] != 0)
      fn (opaque, keys[n], &root);
  }
}

/* ---- pager.h ---- */

struct pin_set *
pin_set_new (struct pager *pager)
{
  struct pin_set *pins = calloc (1, sizeof *pins);
  LOCKED (&state.lock);

  (void) pager;
  for (size_t i = 0; i < 8; i++) {
    if (state.pin_sets[i] == NULL) {
      state.pin_sets[i] = pins;
      return pins;
    }
  }
  CHECK (!"too many pin sets");
  return NULL;
}

void
pin_set_free (struct pin_set *pins)
{
  struct job *job;
  LOCKED (&state.lock);

  for (job = state.jobs; job; job = job->next) {
    if (job->pins == pins)
      job->pins = NULL;
  }
  if (state.running && state.running->pins == pins)
    state.running->pins = NULL;
  for (size_t i = 0; i < 8; i++) {
    if (state.pin_sets[i] == pins)
      state.pin_sets[i] = NULL;
  }
  free (pins);
}

void
pin_set_count (struct pin_set *pins, struct pin_set_counts *ret_counts)
{
  LOCKED (&state.lock);

  *ret_counts = pins->counts;
  ret_counts->wasted_bytes =
    pins->counts.prefetched_bytes - pins->counts.used_bytes;
}

unsigned
count_pinned (void)
{
  unsigned pinned = 0;

  for (size_t i = 0; i < 8; i++) {
    for (size_t j = 0; state.pin_sets[i] && j < WORLD_BLOBS; j++) {
      for (size_t w = 0; w < WORLD_WINDOWS; w++)
        pinned += state.pin_sets[i]->pinned[j][w];
    }
  }
  return pinned;
}

unsigned
world_pinned (void)
{
  LOCKED (&state.lock);

  return count_pinned ();
}

int
pager_prefetch (struct pager *pager, const struct bp_root *root,
                uint64_t blob_size, uint64_t offset,
                struct fetch_user *user, struct pin_set *pins,
                prefetch_fn done, void *opaque)
{
  const unsigned n = number_of (root);
  const unsigned w = (unsigned) (offset / 131072);
  LOCKED (&state.lock);

  (void) pager;
  CHECK (user != NULL);
  if (offset >= blob_size)
    return -EINVAL;
  if (!pins->pinned[n][w] && count_pinned () >= world.pin_room)
    return -ENOSPC;
  pins->pinned[n][w] = true;
  if (state.resident[n][w])
    return 1;
  add_job ((struct job){
    .n = n,
    .w = w,
    .pins = pins,
    .done = done,
    .opaque = opaque,
  });
  return 0;
}

bool
pager_is_resident (struct pager *pager, const struct bp_root *root,
                   uint64_t offset)
{
  LOCKED (&state.lock);

  (void) pager;
  return state.resident[number_of (root)][offset / 131072];
}

bool
world_is_resident (unsigned n)
{
  LOCKED (&state.lock);

  return state.resident[n][0];
}

const struct bp_root *
window_root (const struct window *window)
{
  return &window->root;
}

uint64_t
window_offset (const struct window *window)
{
  return window->offset;
}

uint32_t
window_len (const struct window *window)
{
  (void) window;
  return BLOB_BYTES;
}

bool
window_is_multi (const struct window *window)
{
  return window->multi;
}

void
pager_observe (struct pager *pager, const struct pager_observer *observer)
{
  (void) pager;
  if (observer)
    state.pager = *observer;
}

void
export_watch (struct export *export, int delta)
{
  LOCKED (&state.lock);

  export->watch += delta;
  CHECK (export->watch >= 0);
}

unsigned
world_watched (struct export *export)
{
  LOCKED (&state.lock);

  return (unsigned) export->watch;
}

const struct export_info *
export_get_info (const struct export *export)
{
  return &export->info;
}

void
export_get_counts (struct export *export, struct export_counts *ret_counts)
{
  LOCKED (&state.lock);

  memset (ret_counts, 0, sizeof *ret_counts);
  ret_counts->clients = export->clients;
}

uint64_t
export_placed_bytes (const struct export *export)
{
  (void) export;
  return world.placed_bytes;
}
