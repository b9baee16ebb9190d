/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The fake pager: one thread completes what is not complete at once, in
 * order, so that completions race with the event loops as real ones do.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "daemon/pager/pager.h"
#include "harness/check.h"
#include "harness/fake-map.h"
#include "harness/fake-pager.h"

enum {
  PIECE_BYTES = FAKE_PIECE_BYTES,
  HOLE_EVERY = FAKE_HOLE_EVERY,
};

static const char *const names[] = { "fast", "slow", "mixed", "held",
                                     "corrupt", "healing", "failing", "later",
                                     "ending", "late" };

struct export
{
  struct pager *pager;
  struct export_info info;
  unsigned refs; /* Lock. */
};

/* Something for the thread to do. */
struct job {
  TAILQ_ENTRY (job)
  entry;
  bool held;              /* Waits for let_go; not if cancelled. */
  struct read_op *op;     /* Complete this, or: */
  struct export_map *map; /* With this, or NULL. */
  bool cancelled;
  export_open_fn opened;
  struct export *export;
  int status;
  export_list_fn listed;
  void *opaque;
};

struct pager {
  uint8_t *image;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  TAILQ_HEAD (, job)
  jobs;                      /* Lock. */
  bool letting_go;           /* Lock. */
  bool ending;               /* Lock. */
  unsigned nr_exports;       /* Lock.  Open. */
  struct fake_counts counts; /* Lock. */
};

/* ---- The thread ---- */

static struct job *
next_job (struct pager *pager)
{
  struct job *job;

  TAILQ_FOREACH (job, &pager->jobs, entry)
  {
    if (!job->held || job->cancelled || pager->letting_go)
      return job;
  }
  return NULL;
}

static void
list_names (const struct job *job)
{
  struct bp_tag tags[ARRAY_LEN (names)];
  size_t i;

  memset (tags, 0, sizeof tags);
  for (i = 0; i < ARRAY_LEN (names); i++) {
    strcpy (tags[i].name, names[i]);
    tags[i].size = FAKE_SIZE;
  }
  job->listed (job->opaque, tags, ARRAY_LEN (names), 0);
}

static void fill_op (struct pager *pager, struct read_op *op);
static void fill_map (struct read_op *op, struct export_map *map);

static void
run_job (struct pager *pager, struct job *job)
{
  if (job->op) {
    if (job->cancelled)
      job->op->status = -ESHUTDOWN;
    else if (job->map)
      fill_map (job->op, job->map);
    else
      fill_op (pager, job->op);
    job->op->complete (job->op);
  }
  else if (job->listed)
    list_names (job);
  else
    job->opened (job->opaque, job->export, job->status, "as it was asked");
  free (job);
}

static void *
run_thread (void *opaque)
{
  struct pager *pager = opaque;
  struct job *job;

  pthread_mutex_lock (&pager->lock);
  while ((job = next_job (pager)) != NULL || !pager->ending) {
    if (job == NULL) {
      pthread_cond_wait (&pager->changed, &pager->lock);
      continue;
    }
    TAILQ_REMOVE (&pager->jobs, job, entry);
    pager->counts.waiting -= job->held;
    if (job->op)
      job->op->private = NULL;
    pthread_mutex_unlock (&pager->lock);
    run_job (pager, job);
    pthread_mutex_lock (&pager->lock);
  }
  pthread_mutex_unlock (&pager->lock);
  return NULL;
}

static void
add_job (struct pager *pager, const struct job *template)
{
  struct job *job = malloc (sizeof *job);

  CHECK (job != NULL);
  *job = *template;
  LOCKED (&pager->lock);
  if (job->op)
    job->op->private = job;
  pager->counts.waiting += job->held;
  TAILQ_INSERT_TAIL (&pager->jobs, job, entry);
  pthread_cond_broadcast (&pager->changed);
}

/* ---- The image ---- */

static bool
is_hole (uint64_t piece)
{
  return piece % HOLE_EVERY == HOLE_EVERY - 1;
}

static uint8_t *
make_image (void)
{
  uint8_t *image = malloc (FAKE_SIZE + 4);
  uint64_t i, end;

  CHECK (image != NULL);
  for (i = 0; i < FAKE_SIZE; i += 4)
    put_le32 (image + i, (uint32_t) (i / 4 * 2654435761u));
  for (i = 0; i * PIECE_BYTES < FAKE_SIZE; i++) {
    end = MIN ((i + 1) * PIECE_BYTES, FAKE_SIZE);
    if (is_hole (i))
      memset (image + i * PIECE_BYTES, 0, end - i * PIECE_BYTES);
  }
  return image;
}

static void
count_unreleased (struct pager *pager, int64_t bytes)
{
  struct fake_counts *counts = &pager->counts;

  LOCKED (&pager->lock);
  counts->unreleased += (uint64_t) bytes;
  counts->completed += bytes > 0 ? (uint64_t) bytes : 0;
  counts->max_unreleased = MAX (counts->max_unreleased, counts->unreleased);
  pthread_cond_broadcast (&pager->changed);
}

static void
count_failed (struct pager *pager)
{
  LOCKED (&pager->lock);
  pager->counts.failed++;
}

static bool
has_healed (const struct read_op *op)
{
  struct pager *pager = op->export->pager;
  LOCKED (&pager->lock);

  return strcmp (op->export->info.name, "healing") == 0 &&
         pager->letting_go;
}

static bool
is_bad (const struct read_op *op)
{
  return (strcmp (op->export->info.name, "corrupt") == 0 ||
          strcmp (op->export->info.name, "healing") == 0 ||
          strcmp (op->export->info.name, "failing") == 0) &&
         !has_healed (op) &&
         op->offset < FAKE_BAD_OFFSET + FAKE_BAD_LEN &&
         op->offset + op->len > FAKE_BAD_OFFSET;
}

/* The result of OP. */
static void
fill_op (struct pager *pager, struct read_op *op)
{
  uint64_t end = op->offset + op->len, offset, stop;

  op->status = 0;
  op->nr_pieces = 0;
  if (is_bad (op)) {
    op->status = -EBADMSG;
    end = op->bad_offset = MAX (op->offset, FAKE_BAD_OFFSET);
    count_failed (pager);
  }
  if (strcmp (op->export->info.name, "ending") == 0) {
    op->status = -ESHUTDOWN;
    return;
  }
  op->pieces = calloc (op->len / PIECE_BYTES + 2, sizeof *op->pieces);
  CHECK (op->pieces != NULL);
  for (offset = op->offset; offset < end; offset = stop) {
    stop = MIN (end, round_down (offset, PIECE_BYTES) + PIECE_BYTES);
    op->pieces[op->nr_pieces++] = (struct read_piece){
      .data = is_hole (offset / PIECE_BYTES) ? NULL : pager->image + offset,
      .len = (uint32_t) (stop - offset),
    };
  }
  count_unreleased (pager, op->len);
}

/* ---- pager.h: reads ---- */

static bool
is_held (const struct read_op *op)
{
  const char *name = op->export->info.name;

  return strcmp (name, "held") == 0 ||
         (strcmp (name, "failing") == 0 && !is_bad (op)) ||
         (strcmp (name, "later") == 0 && op->offset >= FAKE_LATER_OFFSET);
}

bool
export_read (struct read_op *op)
{
  struct pager *pager = op->export->pager;
  const char *name = op->export->info.name;
  struct job job = { .op = op, .held = is_held (op) };

  CHECK (op->len > 0 && op->len <= 32 << 20);
  CHECK (range_is_within (FAKE_SIZE, op->offset, op->len));
  if (!job.held && strcmp (name, "slow") != 0 &&
      ((strcmp (name, "mixed") != 0 && strcmp (name, "corrupt") != 0 &&
        strcmp (name, "ending") != 0) ||
       op->offset / 512 % 3 == 0)) {
    fill_op (pager, op);
    return true;
  }
  add_job (pager, &job);
  return false;
}

void
read_op_release (struct read_op *op)
{
  if (op->pieces)
    count_unreleased (op->export->pager, -(int64_t) op->len);
  free (op->pieces);
  op->pieces = NULL;
  free (op->touches); /* Of a map. */
  op->touches = NULL;
}

static void
fill_map (struct read_op *op, struct export_map *map)
{
  op->status = 0;
  if (strcmp (op->export->info.name, "corrupt") == 0 &&
      op->offset == FAKE_BAD_OFFSET) {
    op->status = -EIO;
    op->bad_offset = op->offset;
  }
  else
    fake_fill_map (op, map);
}

bool
export_map (struct read_op *op, struct export_map *map)
{
  struct pager *pager = op->export->pager;
  const char *name = op->export->info.name;
  struct job job = { .op = op, .map = map };

  CHECK (op->len > 0);
  CHECK (range_is_within (FAKE_SIZE, op->offset, op->len));
  job.held = strcmp (name, "held") == 0;
  if (!job.held && strcmp (name, "slow") != 0) {
    fill_map (op, map);
    return true;
  }
  add_job (pager, &job);
  return false;
}

void
read_op_cancel (struct read_op *op)
{
  struct pager *pager = op->export->pager;
  struct job *job;

  LOCKED (&pager->lock);
  job = op->private;
  if (job == NULL)
    return; /* Complete, or about to be. */
  job->cancelled = true;
  pager->counts.cancelled++;
  pthread_cond_broadcast (&pager->changed);
}

void
export_prefetch (struct export *export, uint64_t offset, uint64_t len)
{
  struct pager *pager = export->pager;

  CHECK (range_is_within (FAKE_SIZE, offset, len));
  LOCKED (&pager->lock);
  pager->counts.prefetched += len;
}

/* ---- pager.h: exports ---- */

const struct export_info *
export_get_info (const struct export *export)
{
  return &export->info;
}

static struct export *
make_export (struct pager *pager, const char *name)
{
  struct export *export = calloc (1, sizeof *export);

  CHECK (export != NULL);
  export->pager = pager;
  export->refs = 1;
  export->info.size = FAKE_SIZE;
  strcpy (export->info.name, name);
  strcpy (export->info.description, "an image in memory");
  LOCKED (&pager->lock);
  pager->nr_exports++;
  return export;
}

static bool
is_known (const char *name)
{
  size_t i;

  for (i = 0; i < ARRAY_LEN (names); i++) {
    if (strcmp (names[i], name) == 0)
      return true;
  }
  return false;
}

void
pager_open_export (struct pager *pager, const char *name,
                   export_open_fn done, void *opaque)
{
  struct job job = { .opened = done, .opaque = opaque };

  if (name[0] == '\0')
    name = "fast";
  if (strcmp (name, "broken") == 0)
    job.status = -EPROTO;
  else if (strcmp (name, "denied") == 0)
    job.status = -EPERM;
  else if (!is_known (name))
    job.status = -ENOENT;
  else
    job.export = make_export (pager, name);
  job.held = strcmp (name, "late") == 0;
  add_job (pager, &job);
}

void
export_unref (struct export *export)
{
  struct pager *pager = export->pager;

  LOCKED (&pager->lock);
  if (--export->refs > 0)
    return;
  pager->nr_exports--;
  free (export);
  pthread_cond_broadcast (&pager->changed);
}

void
export_client_entered (struct export *export)
{
  LOCKED (&export->pager->lock);
  export->pager->counts.clients++;
}

void
export_client_left (struct export *export)
{
  LOCKED (&export->pager->lock);
  export->pager->counts.clients--;
}

void
pager_list_exports (struct pager *pager, export_list_fn done, void *opaque)
{
  const struct job job = { .listed = done, .opaque = opaque };

  add_job (pager, &job);
}

/* ---- For the tests ---- */

struct pager *
fake_pager_new (void)
{
  struct pager *pager = calloc (1, sizeof *pager);

  CHECK (pager != NULL);
  pager->image = make_image ();
  pthread_mutex_init (&pager->lock, NULL);
  pthread_cond_init (&pager->changed, NULL);
  TAILQ_INIT (&pager->jobs);
  CHECK_EQ (pthread_create (&pager->thread, NULL, run_thread, pager), 0);
  return pager;
}

void
fake_pager_free (struct pager *pager)
{
  {
    LOCKED (&pager->lock);
    pager->ending = true;
    pager->letting_go = true;
    pthread_cond_broadcast (&pager->changed);
  }
  pthread_join (pager->thread, NULL);
  CHECK_EQ (pager->nr_exports, 0);
  CHECK_EQ (pager->counts.clients, 0);
  CHECK_EQ (pager->counts.unreleased, 0);
  pthread_cond_destroy (&pager->changed);
  pthread_mutex_destroy (&pager->lock);
  free (pager->image);
  free (pager);
}

const uint8_t *
fake_pager_bytes (const struct pager *pager, uint64_t offset)
{
  return pager->image + offset;
}

static void
set_letting_go (struct pager *pager, bool letting_go)
{
  LOCKED (&pager->lock);
  pager->letting_go = letting_go;
  pthread_cond_broadcast (&pager->changed);
}

void
fake_pager_let_go (struct pager *pager)
{
  set_letting_go (pager, true);
}

void
fake_pager_hold_again (struct pager *pager)
{
  set_letting_go (pager, false);
}

struct fake_counts
fake_pager_counts (struct pager *pager)
{
  LOCKED (&pager->lock);
  return pager->counts;
}

bool
fake_pager_wait_idle (struct pager *pager)
{
  struct timespec end;

  clock_gettime (CLOCK_REALTIME, &end);
  end.tv_sec += 10;
  LOCKED (&pager->lock);
  while (pager->counts.unreleased > 0 || pager->nr_exports > 0) {
    if (pthread_cond_timedwait (&pager->changed, &pager->lock, &end) != 0)
      return false;
  }
  return true;
}
