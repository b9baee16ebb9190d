/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* One replay.
 *
 *   plan.roots   r0 r1 r2 r3 │ r4 r5 …      opened in batches, several
 *                  opened    │ asked for    batches ahead
 *   plan.items   i0 i1 i2 i3 i4 │ i5 …      paged in, in order, when their
 *                  asked for    ▲ next      blob is open, as flight.h and
 *                                           the rate limit allow
 *
 * The thread does nothing but ask; answers come on the lanes, which lower
 * the counts and wake it.  When the pin share is full the rest of the plan
 * is left out: it is the part that the client needs last.
 *
 * Every open and page-in on its way holds a reference, so that a replay
 * can be freed at any moment; its pins and its claim on blobs go then, its
 * memory with the last answer.
 *
 * Locks: the pager and the fetcher are called without replay->lock; only
 * the rate limit's is taken inside it.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/tag.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/pager/fetcher.h"
#include "daemon/pager/pager.h"
#include "daemon/profile/flight.h"
#include "daemon/profile/rate-limit.h"
#include "daemon/profile/replay-plan.h"
#include "daemon/profile/replay.h"

enum {
  OPEN_BATCH = 256, /* Blobs of one batch of opens. */
  OPEN_BATCHES = 4, /* On their way at once. */
  RETRY_MS = 20,    /* When there was no memory and nothing is on its
                        way that would free some. */
};

enum blob_state {
  BLOB_WAITING,
  BLOB_OPENING,
  BLOB_OPEN,
  BLOB_FAILED
};

struct replay_blob {
  struct blob_open open;
  struct replay *replay;
  enum blob_state state; /* LOCK. */
};

/* A page-in on its way. */
struct page_in {
  struct replay *replay;
  uint32_t len; /* Bytes of the window. */
  uint32_t blob;
};

struct replay {
  struct replay_config config;
  char name[BP_NAME_SIZE];
  struct replay_plan plan; /* Const after start. */
  struct pin_set *pins;
  struct fetch_user *user;
  pthread_t thread;

  pthread_mutex_t lock;
  pthread_cond_t wake; /* The thread's: an answer, or stop. */
  /* All below: LOCK. */
  unsigned refs; /* The owner, and what is on its way. */
  bool stop;
  bool drained;
  struct replay_blob *blobs; /* As plan.roots. */
  size_t next_open;          /* First blob not asked for. */
  size_t opening;            /* On their way. */
  size_t paging;             /* On their way. */
  struct flight flight;
  struct replay_counts counts;
};

static void
destroy (struct replay *replay)
{
  pthread_mutex_destroy (&replay->lock);
  pthread_cond_destroy (&replay->wake);
  replay_plan_done (&replay->plan);
  free (replay->blobs);
  free (replay);
}

/* Called with the lock held, and releases it. */
static void
unref_and_unlock (struct replay *replay)
{
  const bool is_last = --replay->refs == 0;

  pthread_cond_signal (&replay->wake);
  pthread_mutex_unlock (&replay->lock);
  if (is_last)
    destroy (replay);
}

/* ---- Opens ---- */

static void
log_skipped (const struct replay *replay, uint32_t blob, int status)
{
  char hex[BP_ROOT_HEX_SIZE];

  log_debug ("profile '%s': blob %s: skipped: %s", replay->name,
             bp_root_format (&replay->plan.roots[blob], hex),
             strerror (-status));
}

static void
open_done (struct blob_open *open, int status)
{
  struct replay_blob *blob =
    (struct replay_blob *) ((char *) open -
                            offsetof (struct replay_blob, open));
  struct replay *replay = blob->replay;

  pthread_mutex_lock (&replay->lock);
  replay->opening--;
  blob->state = status == 0 ? BLOB_OPEN : BLOB_FAILED;
  if (status == 0)
    replay->counts.blobs_opened++;
  else
    log_skipped (replay, (uint32_t) (blob - replay->blobs), status);
  if (status == -ENOENT)
    replay->counts.blobs_missing++;
  unref_and_unlock (replay);
}

/* Ask for the next batches of opens.  Called with the lock held, which is
 * released meanwhile.
 */
static void
open_ahead (struct replay *replay)
{
  struct blob_open *batch[OPEN_BATCH];
  size_t i, n;

  while (!replay->stop && replay->next_open < replay->plan.nr_roots &&
         replay->opening <= (OPEN_BATCHES - 1) * OPEN_BATCH) {
    n = replay->plan.nr_roots - replay->next_open;
    if (n > OPEN_BATCH)
      n = OPEN_BATCH;
    for (i = 0; i < n; i++) {
      struct replay_blob *blob = &replay->blobs[replay->next_open + i];

      blob->state = BLOB_OPENING;
      batch[i] = &blob->open;
    }
    replay->next_open += n;
    replay->opening += n;
    replay->refs += (unsigned) n;
    pthread_mutex_unlock (&replay->lock);
    fetcher_open_blobs (replay->config.fetcher, batch, n);
    pthread_mutex_lock (&replay->lock);
  }
}

/* ---- Page-ins ---- */

static void
page_in_done (void *opaque, uint32_t len, int status)
{
  struct page_in *page_in = opaque;
  struct replay *replay = page_in->replay;

  (void) len; /* The pin set counts. */
  pthread_mutex_lock (&replay->lock);
  replay->paging--;
  flight_answered (&replay->flight, page_in->len, now_ns ());
  if (status < 0)
    log_skipped (replay, page_in->blob, status);
  free (page_in);
  unref_and_unlock (replay);
}

/* Bytes of the window that holds OFFSET of a blob of SIZE bytes. */
static uint32_t
window_bytes (uint64_t size, uint64_t offset)
{
  const uint64_t start = offset - offset % BP_WINDOW_SIZE;
  const uint64_t rest = size > start ? size - start : 0;

  return rest < BP_WINDOW_SIZE ? (uint32_t) rest : BP_WINDOW_SIZE;
}

/* Sleep until woken, at most NS (0: until woken).  Lock held. */
static void
wait_for_wake (struct replay *replay, uint64_t ns)
{
  struct timespec until;
  uint64_t end;

  if (ns == 0) {
    pthread_cond_wait (&replay->wake, &replay->lock);
    return;
  }
  end = now_ns () + ns;
  until.tv_sec = (time_t) (end / NS_PER_SEC);
  until.tv_nsec = (long) (end % NS_PER_SEC);
  pthread_cond_timedwait (&replay->wake, &replay->lock, &until);
}

/* Wait until LEN more bytes may be asked for.  Lock held. */
static void
wait_for_room (struct replay *replay, uint32_t len)
{
  uint64_t ns;

  while (!replay->stop) {
    if (!flight_has_room (&replay->flight, len)) {
      wait_for_wake (replay, 0);
      continue;
    }
    ns = rate_limit_wait (replay->config.limit, now_ns ());
    if (ns == 0)
      return;
    wait_for_wake (replay, ns);
  }
}

/* Ask for one window.  Returns what pager_prefetch does.  Called with the
 * lock held, which is released meanwhile.
 */
static int
ask_for (struct replay *replay, const struct plan_item *item, uint32_t len)
{
  struct page_in *page_in = malloc (sizeof *page_in);
  const uint64_t size = replay->blobs[item->blob].open.size;
  int r;

  if (page_in == NULL)
    return -EAGAIN;
  *page_in = (struct page_in){ replay, len, item->blob };
  replay->refs++;
  replay->paging++;
  flight_sent (&replay->flight, len);
  pthread_mutex_unlock (&replay->lock);

  r = pager_prefetch (replay->config.pager,
                      &replay->plan.roots[item->blob], size, item->offset,
                      replay->user, replay->pins, page_in_done, page_in);
  if (r == 0)
    rate_limit_spend (replay->config.limit, len, now_ns ());

  pthread_mutex_lock (&replay->lock);
  if (r != 0) {
    free (page_in);
    replay->refs--;
    replay->paging--;
    replay->flight.unanswered -= len;
  }
  return r;
}

/* Page ITEM in, whose blob is open.  Returns false if the pin share is
 * full.  Lock held.
 */
static bool
page_in (struct replay *replay, const struct plan_item *item)
{
  const uint64_t size = replay->blobs[item->blob].open.size;
  const uint32_t len = window_bytes (size, item->offset);
  int r;

  if (item->offset >= size) {
    log_skipped (replay, item->blob, -EINVAL);
    return true;
  }
  do {
    wait_for_room (replay, len);
    if (replay->stop)
      return true;
    r = ask_for (replay, item, len);
    if (r == -EAGAIN)
      wait_for_wake (replay, RETRY_MS * NS_PER_MS);
  } while (r == -EAGAIN);
  if (r == 1 && !item->was_resident)
    replay->counts.late++; /* A client has been there since the start. */
  return r != -ENOSPC;
}

/* The pin share was full at item FROM: it and what follows is left out. */
static void
leave_out (struct replay *replay, size_t from)
{
  size_t i;

  for (i = from; i < replay->plan.nr_items; i++) {
    if (replay->blobs[replay->plan.items[i].blob].state != BLOB_FAILED)
      replay->counts.not_pinned++;
  }
  log_info ("profile '%s': %llu windows left out: the pin share of the "
            "cache is full",
            replay->name,
            (unsigned long long) replay->counts.not_pinned);
}

/* ---- The thread ---- */

/* Wait for the blob of ITEM; true if it is open.  Lock held. */
static bool
wait_for_blob (struct replay *replay, const struct plan_item *item)
{
  struct replay_blob *blob = &replay->blobs[item->blob];

  for (;;) {
    open_ahead (replay);
    if (replay->stop || blob->state == BLOB_FAILED)
      return false;
    if (blob->state == BLOB_OPEN)
      return true;
    wait_for_wake (replay, 0);
  }
}

static void *
replay_main (void *opaque)
{
  struct replay *replay = opaque;
  size_t i;
  bool stop;

  pthread_mutex_lock (&replay->lock);
  for (i = 0; i < replay->plan.nr_items && !replay->stop; i++) {
    if (wait_for_blob (replay, &replay->plan.items[i]) &&
        !page_in (replay, &replay->plan.items[i])) {
      leave_out (replay, i);
      replay->next_open = replay->plan.nr_roots;
      break;
    }
  }
  open_ahead (replay); /* Roots that have open markers only. */
  while (!replay->stop && (replay->paging > 0 || replay->opening > 0))
    wait_for_wake (replay, 0);
  replay->drained = true;
  stop = replay->stop;
  pthread_mutex_unlock (&replay->lock);
  if (!stop)
    replay->config.drained (replay->config.opaque);
  return NULL;
}

/* ---- Life ---- */

static int
make_blobs (struct replay *replay)
{
  size_t i;

  replay->blobs =
    calloc (replay->plan.nr_roots + 1, sizeof replay->blobs[0]);
  if (replay->blobs == NULL)
    return -ENOMEM;
  for (i = 0; i < replay->plan.nr_roots; i++) {
    struct replay_blob *blob = &replay->blobs[i];

    blob->replay = replay;
    blob->open.root = replay->plan.roots[i];
    blob->open.class = FETCH_REPLAY;
    blob->open.user = replay->user;
    blob->open.done = open_done;
  }
  replay->counts.blobs_named = replay->plan.nr_roots;
  return 0;
}

/* What is there now, nobody waits for. */
static void
note_resident (struct replay *replay)
{
  size_t i;

  for (i = 0; i < replay->plan.nr_items; i++) {
    struct plan_item *item = &replay->plan.items[i];

    item->was_resident =
      pager_is_resident (replay->config.pager,
                         &replay->plan.roots[item->blob], item->offset);
  }
}

/* Everything but the thread.  On failure what was made is left for
 * release_claims and destroy.
 */
static int
prepare (struct replay *replay, const struct bp_blob_message *messages,
         size_t count)
{
  int r = replay_plan_make (&replay->plan, messages, count);

  if (r < 0)
    return r;
  replay->pins = pin_set_new (replay->config.pager);
  replay->user = fetcher_user_new (replay->config.fetcher);
  if (replay->pins == NULL || replay->user == NULL)
    return -ENOMEM;
  flight_init (&replay->flight, now_ns ());
  note_resident (replay);
  return make_blobs (replay);
}

static void
release_claims (struct replay *replay)
{
  if (replay->pins)
    pin_set_free (replay->pins);
  if (replay->user)
    fetcher_user_free (replay->config.fetcher, replay->user);
}

int
replay_start (struct replay **ret_replay,
              const struct replay_config *config,
              const struct bp_blob_message *messages, size_t count,
              struct bp_error *err)
{
  struct replay *replay = calloc (1, sizeof *replay);
  pthread_condattr_t attr;
  int r;

  if (replay == NULL)
    return bp_error_set (err, -ENOMEM, "profile '%s': out of memory",
                         config->name);
  replay->config = *config;
  snprintf (replay->name, sizeof replay->name, "%s", config->name);
  replay->config.name = replay->name;
  replay->refs = 1;
  pthread_mutex_init (&replay->lock, NULL);
  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&replay->wake, &attr);
  pthread_condattr_destroy (&attr);

  r = prepare (replay, messages, count);
  if (r == 0)
    r = -pthread_create (&replay->thread, NULL, replay_main, replay);
  if (r < 0) {
    release_claims (replay);
    destroy (replay);
    return bp_error_set (err, r, "profile '%s': replay: %m", config->name);
  }
  METRIC_ADD (profile_replays, 1);
  *ret_replay = replay;
  return 0;
}

bool
replay_is_drained (struct replay *replay)
{
  LOCKED (&replay->lock);

  return replay->drained;
}

void
replay_free (struct replay *replay)
{
  if (replay == NULL)
    return;
  pthread_mutex_lock (&replay->lock);
  replay->stop = true;
  pthread_cond_signal (&replay->wake);
  pthread_mutex_unlock (&replay->lock);
  pthread_join (replay->thread, NULL);
  release_claims (replay);
  pthread_mutex_lock (&replay->lock);
  unref_and_unlock (replay);
}

void
replay_count (struct replay *replay, struct replay_counts *ret_counts)
{
  struct pin_set_counts pinned;

  pin_set_count (replay->pins, &pinned);
  pthread_mutex_lock (&replay->lock);
  *ret_counts = replay->counts;
  pthread_mutex_unlock (&replay->lock);
  ret_counts->bytes_prefetched = pinned.prefetched_bytes;
  ret_counts->bytes_used = pinned.used_bytes;
  ret_counts->late += pinned.late;
  ret_counts->wasted = pinned.wasted_bytes;
}
