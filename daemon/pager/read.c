/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The life of a read.
 *
 *   export_read ─▶ admitted? ─▶ PLAN ─▶ REQUEST ─▶ ARRIVED ─▶ complete
 *                    │ queue      ▲ │      │ wait for all       │
 *                    └────────────┘ └──────┘                    ▼
 *                                 index window              release
 *
 * Whoever runs the engine holds one count of PENDING while it sets up
 * waits; each wait holds one more.  The one who takes the last goes on,
 * so there is always exactly one thread in the engine, and none of them
 * touches the read after it has given up its count.
 *
 * The result belongs to the thread that claims the read: the engine, or
 * read_op_cancel.  After a cancel the engine goes on as a ghost, until
 * its waits are over; it then only cleans up.
 *
 * A read whose windows are all verified runs through in export_read: two
 * counters for the admission, a reference to each window, no lock, and no
 * memory but recycled.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "daemon/metrics.h"
#include "daemon/pager/read.h"

/* ---- Waiting ---- */

static void read_run_and_complete (struct read *read);

/* One count of PENDING is over.  True if it was the last. */
static bool
take_pending (struct read *read)
{
  return atomic_fetch_sub (&read->pending, 1) == 1;
}

static void
wake_slot (struct waiter *waiter, int status)
{
  struct read_slot *slot = (struct read_slot *) waiter;
  struct read *read = slot->read;

  slot->status = status;
  if (take_pending (read))
    read_run_and_complete (read);
}

/* Wait for the window of SLOT, unless it is there.  Returns true if it is
 * waited for.
 */
static bool
wait_for (struct read *read, struct read_slot *slot,
          struct fetch_batch *batch)
{
  int r;

  slot->waiter.wake = wake_slot;
  atomic_fetch_add (&read->pending, 1);
  r = cache_wait (read->pager->cache, &slot->waiter, batch);
  if (r == 1)
    return true;
  slot->status = r;
  atomic_fetch_sub (&read->pending, 1);
  return false;
}

static void
begin_stall (struct read *read)
{
  read->has_waited = true;
  if (read->is_quiet)
    return;
  LOCKED (&read->export->stall_lock);

  if (read->stall != STALL_NONE)
    return;
  read->stall = STALL_ON;
  export_stall_begin (read->export);
}

/* By the one who has claimed READ. */
static void
end_stall (struct read *read)
{
  if (read->is_quiet)
    return;
  LOCKED (&read->export->stall_lock);

  if (read->stall == STALL_ON)
    export_stall_end (read->export);
  read->stall = STALL_OVER;
}

/* ---- The phases.  Each returns true if the engine goes on at once. ---- */

/* The plan ends at read->pos with STATUS.  What comes before is read.  A
 * map that has begun ends where it would fail.
 */
static void
fail_plan (struct read *read, int status)
{
  read->phase = READ_REQUEST;
  if (read->map && read->pos > read->offset)
    return;
  read->failure = status;
  read->bad_offset = read->pos;
}

/* An index window is needed to go on with the plan. */
static bool
await_index (struct read *read)
{
  struct read_slot *slot = &read->index_slot;
  struct export *export = read->export;
  struct fetch_batch batch = { .user = export->user };

  slot->waiter.window =
    cache_get (read->pager->cache, &export->info.root,
               read->view.missing * BP_WINDOW_SIZE,
               export->index.blob_size);
  if (slot->waiter.window == NULL) {
    fail_plan (read, -ENOMEM);
    return true;
  }
  read->view.awaited = slot->waiter.window;
  atomic_store (&read->pending, 1);
  if (wait_for (read, slot, &batch)) {
    begin_stall (read);
    if (!read->is_quiet)
      METRIC_ADD (cache_misses, 1);
  }
  cache_submit (read->pager->cache, &batch);
  return take_pending (read);
}

/* Whatever was waited for is in the view now, if it came.  Returns 0 or
 * what failed.
 */
static int
let_index_slot_go (struct read *read)
{
  struct read_slot *slot = &read->index_slot;

  if (slot->waiter.window == NULL)
    return 0;
  cache_put (read->pager->cache, slot->waiter.window);
  slot->waiter.window = NULL;
  return slot->status;
}

static bool
do_plan (struct read *read)
{
  int r = read->map ? map_plan (read) : read_plan (read);
  const int failed = let_index_slot_go (read);

  if (r == -EAGAIN && failed == 0)
    return await_index (read);
  if (r == -EAGAIN)
    r = failed;
  if (r < 0)
    fail_plan (read, r);
  else
    read->phase = READ_REQUEST;
  return true;
}

/* What the windows take, now that they are known. */
static void
settle_charge (struct read *read)
{
  uint64_t bytes = 0;
  uint32_t i;

  for (i = 0; i < read->nr_slots; i++)
    bytes += window_memory (read->slots[i].waiter.window);
  if (read->is_watched)
    bytes += (uint64_t) read->view.nr_held * BP_WINDOW_SIZE;
  admission_set_charge (&read->pager->admission, &read->entry,
                        MAX (bytes, 1));
}

/* Ask for every window that was not verified.  Returns how many are
 * waited for.
 */
static uint32_t
request_windows (struct read *read, struct fetch_batch *batch)
{
  uint32_t nr_waits = 0, i;

  for (i = 0; i < read->nr_slots; i++)
    if (!read->slots[i].warm)
      nr_waits += wait_for (read, &read->slots[i], batch);
  return nr_waits;
}

static void
count_windows (const struct read *read, uint32_t nr_waits)
{
  if (read->is_quiet)
    return;
  METRIC_ADD (cache_hits, read->nr_slots - nr_waits);
  if (nr_waits > 0)
    METRIC_ADD (cache_misses, nr_waits);
}

/* Everything was there when it was looked for: nobody is to be asked. */
static bool
is_hot (const struct read *read)
{
  return read->around_from >= read->around_to && read->marked == UINT64_MAX;
}

static bool
do_request (struct read *read)
{
  struct fetch_batch batch = { .user = read->export->user };
  uint32_t nr_waits = 0;

  read->phase = READ_ARRIVED;
  settle_charge (read);
  if (is_hot (read)) {
    count_windows (read, 0);
    return true;
  }
  atomic_store (&read->pending, 1);
  if (read->around_from < read->around_to)
    nr_waits = request_windows (read, &batch);
  if (nr_waits > 0)
    begin_stall (read);
  count_windows (read, nr_waits);
  if (!read->is_quiet) {
    if (batch.head)
      read_ahead_missed (&read->view, &batch, read->around_window,
                         read->around_from, read->around_to);
    if (read->marked != UINT64_MAX)
      read_ahead_marked (&read->view, &batch, read->marked);
  }
  cache_submit (read->pager->cache, &batch);
  return take_pending (read);
}

/* ---- The end ---- */

/* The first window that failed, in order of the image: the answer ends
 * before it.
 */
static void
find_failure (struct read *read)
{
  uint64_t offset = read->offset;
  uint32_t i;

  for (i = 0; i < read->nr_parts; i++) {
    const uint32_t slot = read->parts[i].slot;

    if (slot != NO_SLOT && read->slots[slot].status < 0) {
      read->failure = read->slots[slot].status;
      read->bad_offset = offset;
      read->nr_parts = i;
      return;
    }
    offset += read->pieces[i].len;
  }
}

static void
fill_pieces (struct read *read)
{
  uint32_t i;

  for (i = 0; i < read->nr_parts; i++) {
    const struct read_part *part = &read->parts[i];

    if (part->slot == NO_SLOT)
      continue;
    read->pieces[i].data =
      read->slots[part->slot].waiter.window->data + part->skip;
  }
}

static void
touch_windows (struct read *read)
{
  uint32_t i;

  for (i = 0; i < read->nr_slots; i++)
    window_touch (read->slots[i].waiter.window);
  for (i = 0; i < read->view.nr_held; i++) {
    window_touch (read->view.held[i].window);
    kept_index_add (read->export, read->view.held[i].window);
  }
}

/* Fill in the op, which READ has claimed. */
static void
set_result (struct read *read)
{
  struct read_counts *counts = &read->export->counts[thread_slot ()];
  struct read_op *op = read->op;

  /* Without memory a recording loses these touches, not the client. */
  if (read->failure == 0 && read->is_watched)
    read_make_touches (read);
  op->status = read->failure;
  op->bad_offset = read->failure == 0 ? 0 : read->bad_offset;
  if (!read->is_quiet)
    atomic_fetch_add_explicit (&counts->reads, 1, memory_order_relaxed);
  fill_pieces (read);
  op->pieces = read->pieces;
  op->nr_pieces = read->nr_parts;
  if (read->failure < 0)
    return;
  if (read->map)
    map_set_result (read->map);
  op->touches = read->touches;
  op->nr_touches = read->nr_touches;
  if (read->is_quiet)
    return;
  touch_windows (read);
  atomic_fetch_add_explicit (&counts->bytes_read, op->len,
                             memory_order_relaxed);
}

static void
tell_observer (const struct read *read)
{
  const struct pager_observer *observer =
    atomic_load_explicit (&read->pager->observer, memory_order_acquire);

  if (read->is_watched && read->failure == 0 && observer)
    observer->read_served (observer->opaque, read->op);
}

static bool
claim (struct read *read)
{
  return !atomic_exchange (&read->is_claimed, true);
}

/* All windows have come or failed, and READ, which is claimed, gets its
 * result.
 */
static void
conclude (struct read *read)
{
  find_failure (read);
  set_result (read);
  if (read->has_waited)
    end_stall (read);
  tell_observer (read);
  if (!read->is_watched)
    index_view_done (&read->view);
}

/* Returns true if READ has its result; false if it was cancelled. */
static bool
finish (struct read *read)
{
  if (!claim (read)) {
    (void) let_index_slot_go (read);
    export_unref (read->export);
    return false;
  }
  conclude (read);
  return true;
}

/* Run the engine until it waits (false) or has nothing left to do (true).
 * A ghost asks for no more.
 */
static bool
run (struct read *read)
{
  bool goes_on = true;

  while (goes_on && read->phase != READ_ARRIVED &&
         !atomic_load (&read->is_claimed))
    goes_on = read->phase == READ_PLAN ? do_plan (read)
                                       : do_request (read);
  return goes_on;
}

static void
read_run_and_complete (struct read *read)
{
  struct read_op *op = read->op;

  if (!run (read))
    return;
  if (finish (read))
    op->complete (op);
  read_unref (read);
}

static void
run_admitted (struct admission_entry *entry)
{
  struct read *read = (struct read *) entry;

  read->is_admitted = true;
  read_run_and_complete (read);
}

/* ---- The interface ---- */

static void
clear_result (struct read_op *op)
{
  op->status = 0;
  op->bad_offset = 0;
  op->pieces = NULL;
  op->nr_pieces = 0;
  op->touches = NULL;
  op->nr_touches = 0;
  op->private = NULL;
}

static bool
is_watched (const struct export *export)
{
  return atomic_load_explicit (&export->watchers, memory_order_relaxed) > 0;
}

static void
watch (struct read *read)
{
  const struct pager_observer *observer =
    atomic_load_explicit (&read->pager->observer, memory_order_acquire);

  if (read->is_quiet || observer == NULL || !is_watched (read->export))
    return;
  observer->read_started (observer->opaque, read->export, read->op->offset,
                          read->op->len);
  read->is_watched = true;
  read->view.wants_sent = true;
}

bool
read_start (struct read_op *op, struct read *read)
{
  assert (op->len > 0 &&
          range_is_within (op->export->info.size, op->offset, op->len));
  clear_result (op);
  if (read == NULL) {
    op->status = -ENOMEM;
    op->bad_offset = op->offset;
    return true;
  }
  op->private = read;
  watch (read);
  read->entry.admitted = run_admitted;
  if (!admission_enter (&read->pager->admission, &read->entry))
    return false;
  read->is_admitted = true;
  if (!run (read))
    return false;
  /* Nobody can have cancelled what the caller has not been given yet: so
   * it is ours, and so is the engine's reference.
   */
  atomic_store_explicit (&read->is_claimed, true, memory_order_relaxed);
  conclude (read);
  atomic_store_explicit (&read->refs, 1, memory_order_relaxed);
  return true;
}

bool
export_read (struct read_op *op)
{
  return read_start (op, read_new (op->export->pager, op, false));
}

bool
read_start_quiet (struct read_op *op)
{
  return read_start (op, read_new (op->export->pager, op, true));
}

void
read_op_release (struct read_op *op)
{
  struct read *read = op->private;

  clear_result (op);
  if (read)
    read_unref (read);
}

void
read_op_cancel (struct read_op *op)
{
  struct read *read = op->private;
  bool never_ran;

  if (read == NULL)
    return;
  export_ref (read->export); /* For the engine, which may outlive OP. */
  if (!claim (read)) {
    export_unref (read->export);
    return;
  }
  op->status = -ESHUTDOWN;
  op->bad_offset = op->offset;
  never_ran = admission_withdraw (&read->pager->admission, &read->entry);
  end_stall (read);
  if (never_ran) {
    export_unref (read->export);
    read_unref (read);
  }
  op->complete (op);
}
