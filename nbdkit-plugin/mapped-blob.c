/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Reads of an open blob, and which windows they cover.
 *
 * Decoded bytes belong to window offset / 128 KiB.  In the stored form of
 * a compressed blob of several windows, window w is the frame that starts
 * where the stored sizes of the windows before it add up to:
 *
 *   frames       │ 0 │  1  │2│ … │ 1023 │ 1024 │ …
 *   checkpoints  ▲ 0                    ▲ 1
 *
 * A checkpoint, the stored offset of every 1024th frame, is kept for each
 * such blob once a recording has asked for it: 64 KiB for the largest.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "nbdkit-plugin/mapped-blob.h"

enum {
  CHECKPOINT_FRAMES = 1024
};

struct mapped_blob {
  atomic_uint refs;
  uint64_t key;
  struct bp_blob *blob;
  pthread_mutex_t lock;
  uint64_t *checkpoints; /* lock; NULL until needed, then constant. */
};

int
mapped_blob_new (struct mapped_blob **ret_mapped, uint64_t key,
                 struct bp_blob *blob)
{
  struct mapped_blob *mapped = calloc (1, sizeof *mapped);

  if (mapped == NULL)
    return -ENOMEM;
  atomic_init (&mapped->refs, 1);
  mapped->key = key;
  mapped->blob = blob;
  pthread_mutex_init (&mapped->lock, NULL);
  *ret_mapped = mapped;
  return 0;
}

struct mapped_blob *
mapped_blob_ref (struct mapped_blob *mapped)
{
  atomic_fetch_add (&mapped->refs, 1);
  return mapped;
}

void
mapped_blob_unref (struct mapped_blob *mapped)
{
  if (mapped == NULL || atomic_fetch_sub (&mapped->refs, 1) > 1)
    return;
  bp_blob_close (mapped->blob);
  free (mapped->checkpoints);
  pthread_mutex_destroy (&mapped->lock);
  free (mapped);
}

uint64_t
mapped_blob_key (const struct mapped_blob *mapped)
{
  return mapped->key;
}

struct bp_blob *
mapped_blob_get (const struct mapped_blob *mapped)
{
  return mapped->blob;
}

static uint64_t
nr_windows (const struct mapped_blob *mapped)
{
  return bp_nr_windows (bp_blob_get_info (mapped->blob)->size);
}

/* Stored sizes of the frames behind checkpoint I; returns their number,
 * or a negative errno.
 */
static int
read_frames (struct mapped_blob *mapped, uint64_t i,
             uint32_t frames[CHECKPOINT_FRAMES], struct bp_error *err)
{
  const uint64_t first = i * CHECKPOINT_FRAMES;
  const uint32_t count =
    (uint32_t) MIN (CHECKPOINT_FRAMES, nr_windows (mapped) - first);
  const int r =
    bp_blob_read_frames (mapped->blob, first, count, frames, err);

  return r < 0 ? r : (int) count;
}

/* Called with the lock held. */
static int
make_checkpoints (struct mapped_blob *mapped, struct bp_error *err)
{
  const uint64_t count =
    div_round_up (nr_windows (mapped), CHECKPOINT_FRAMES);
  CLEANUP_FREE uint64_t *checkpoints = calloc (count, sizeof *checkpoints);
  uint64_t stored = 0;

  if (checkpoints == NULL)
    return bp_error_set (err, -ENOMEM, "key %" PRIu64 ": %m", mapped->key);
  for (uint64_t i = 0; i < count; i++) {
    uint32_t frames[CHECKPOINT_FRAMES];
    const int nr_frames = read_frames (mapped, i, frames, err);

    if (nr_frames < 0)
      return nr_frames;
    checkpoints[i] = stored;
    for (int j = 0; j < nr_frames; j++)
      stored += frames[j];
  }
  mapped->checkpoints = steal_ptr (&checkpoints);
  return 0;
}

static int
need_checkpoints (struct mapped_blob *mapped, struct bp_error *err)
{
  LOCKED (&mapped->lock);

  return mapped->checkpoints ? 0 : make_checkpoints (mapped, err);
}

/* The last checkpoint at or before OFFSET. */
static uint64_t
checkpoint_before (const struct mapped_blob *mapped, uint64_t offset)
{
  uint64_t low = 0, high = div_round_up (nr_windows (mapped),
                                         CHECKPOINT_FRAMES);

  /* checkpoints[low] <= offset, and everything from high on is beyond. */
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;

    if (mapped->checkpoints[middle] <= offset)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* The window whose frame holds the stored byte at OFFSET; the last one,
 * if the frames (the store's word) end before.
 */
static int
window_of_stored (struct mapped_blob *mapped, uint64_t offset,
                  uint64_t *ret_window, struct bp_error *err)
{
  const uint64_t i = checkpoint_before (mapped, offset);
  uint64_t end = mapped->checkpoints[i];
  uint32_t frames[CHECKPOINT_FRAMES];
  const int nr_frames = read_frames (mapped, i, frames, err);
  int j = 0;

  if (nr_frames < 0)
    return nr_frames;
  while (j < nr_frames - 1 && (end += frames[j]) <= offset)
    j++;
  *ret_window = i * CHECKPOINT_FRAMES + (uint64_t) j;
  return 0;
}

int
mapped_blob_windows (struct mapped_blob *mapped, uint64_t offset,
                     uint64_t len, bool is_stored, uint64_t *ret_first,
                     uint64_t *ret_last, struct bp_error *err)
{
  const struct bp_blob_info *info = bp_blob_get_info (mapped->blob);
  int r;

  assert (len > 0);
  if (nr_windows (mapped) == 1) {
    *ret_first = *ret_last = 0;
    return 0;
  }
  if (!is_stored || info->codec == BP_CODEC_RAW) {
    *ret_first = offset / BP_WINDOW_SIZE;
    *ret_last = (offset + len - 1) / BP_WINDOW_SIZE;
    return 0;
  }
  r = need_checkpoints (mapped, err);
  if (r == 0)
    r = window_of_stored (mapped, offset, ret_first, err);
  if (r == 0)
    r = window_of_stored (mapped, offset + len - 1, ret_last, err);
  return r;
}

static int
log_read (struct mapped_blob *mapped, struct recording_set *recordings,
          size_t len, uint64_t offset, bool is_stored, struct bp_error *err)
{
  uint64_t first, last;
  int r;

  if (!recording_is_active (recordings))
    return 0;
  r = mapped_blob_windows (mapped, offset, len, is_stored, &first, &last,
                           err);
  if (r < 0)
    return r;
  recording_append (recordings, mapped->key, first, last);
  return 0;
}

int
mapped_blob_read (struct mapped_blob *mapped,
                  struct recording_set *recordings, void *buf, size_t len,
                  uint64_t offset, bool is_stored, struct bp_error *err)
{
  const struct bp_blob_info *info = bp_blob_get_info (mapped->blob);
  const uint64_t size = is_stored ? info->stored_size : info->size;
  int r;

  if (len == 0 || !range_is_within (size, offset, len))
    return bp_error_set (err, -EINVAL,
                         "key %" PRIu64 ": %zu bytes at offset %" PRIu64
                         ": beyond the end, %" PRIu64,
                         mapped->key, len, offset, size);
  r = log_read (mapped, recordings, len, offset, is_stored, err);
  if (r < 0)
    return r;
  return is_stored
           ? bp_blob_read_stored (mapped->blob, buf, len, offset, err)
           : bp_blob_read (mapped->blob, buf, len, offset, err);
}
