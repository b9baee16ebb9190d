/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A few windows of an image index, verified when they are read and
 * checked before their entries are used:
 *
 *   store ── verified ──▶ slot ── checked ──▶ lookup
 *
 * The fences that a check needs may stand in windows that are verified but
 * not checked yet; only entries must have been.  A walk goes from window
 * to window, so the slots are few and the oldest is replaced.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/store-index.h"

enum {
  NR_SLOTS = 6
};

struct slot {
  bool is_verified;
  bool is_checked;
  uint64_t w;
  uint64_t used; /* The reader's clock. */
  uint8_t *data; /* BP_WINDOW_SIZE bytes. */
};

struct store_index {
  struct bp_blob *blob; /* Borrowed. */
  struct bp_index index;
  uint64_t clock;
  struct slot slots[NR_SLOTS];
};

void
store_index_close (struct store_index *reader)
{
  if (reader == NULL)
    return;
  for (size_t i = 0; i < NR_SLOTS; i++)
    free (reader->slots[i].data);
  free (reader);
}

const struct bp_index *
store_index_get (const struct store_index *reader)
{
  return &reader->index;
}

static size_t
window_len (const struct store_index *reader, uint64_t w)
{
  const uint64_t size = bp_blob_get_info (reader->blob)->size;

  return MIN (BP_WINDOW_SIZE, size - w * BP_WINDOW_SIZE);
}

static struct slot *
find_slot (struct store_index *reader, uint64_t w)
{
  for (size_t i = 0; i < NR_SLOTS; i++) {
    struct slot *slot = &reader->slots[i];

    if (slot->is_verified && slot->w == w) {
      slot->used = ++reader->clock;
      return slot;
    }
  }
  return NULL;
}

static struct slot *
oldest_slot (struct store_index *reader)
{
  struct slot *oldest = &reader->slots[0];

  for (size_t i = 1; i < NR_SLOTS; i++)
    if (reader->slots[i].used < oldest->used)
      oldest = &reader->slots[i];
  return oldest;
}

/* Read and verify window W, unless it is there. */
static int
need_window (struct store_index *reader, uint64_t w, struct slot **ret_slot,
             struct bp_error *err)
{
  struct slot *slot = find_slot (reader, w);
  int r;

  if (slot == NULL) {
    slot = oldest_slot (reader);
    slot->is_verified = slot->is_checked = false;
    if (slot->data == NULL)
      slot->data = malloc (BP_WINDOW_SIZE);
    if (slot->data == NULL)
      return bp_error_set (err, -ENOMEM, "image index: %m");
    r = bp_blob_read_verified (reader->blob, slot->data,
                               window_len (reader, w), w * BP_WINDOW_SIZE,
                               err);
    if (r < 0)
      return r;
    slot->is_verified = true;
    slot->w = w;
    slot->used = ++reader->clock;
  }
  *ret_slot = slot;
  return 0;
}

static const uint8_t *
give_verified (void *opaque, uint64_t w)
{
  const struct slot *slot = find_slot (opaque, w);

  return slot ? slot->data : NULL;
}

int
store_index_open (struct store_index **ret_reader, struct bp_blob *blob,
                  struct bp_error *err)
{
  struct store_index *reader = calloc (1, sizeof *reader);
  struct slot *slot;
  int r;

  if (reader == NULL)
    return bp_error_set (err, -ENOMEM, "image index: %m");
  reader->blob = blob;
  r = need_window (reader, 0, &slot, err);
  if (r == 0)
    r = bp_index_decode_header (slot->data, window_len (reader, 0),
                                bp_blob_get_info (blob)->size,
                                &reader->index, err);
  if (r < 0) {
    store_index_close (reader);
    return r;
  }
  *ret_reader = reader;
  return 0;
}

/* The two fences of window W; reads the windows that hold them. */
static int
find_fences (struct store_index *reader, uint64_t w, uint64_t *ret_first,
             uint64_t *ret_next, struct bp_error *err)
{
  for (;;) {
    struct slot *slot;
    uint64_t missing;
    int r = bp_index_fences_of (&reader->index, give_verified, reader, w,
                                ret_first, ret_next, &missing);

    if (r != -EAGAIN)
      return r < 0 ? bp_error_set (err, r, "image index: fences: %m") : 0;
    r = need_window (reader, missing, &slot, err);
    if (r < 0)
      return r;
  }
}

int
store_index_load (struct store_index *reader, uint64_t w,
                  uint64_t *ret_start, uint64_t *ret_end,
                  struct bp_error *err)
{
  const uint64_t nr_fences = reader->index.nr_fences;
  struct slot *slot;
  uint64_t first, next;
  int r;

  assert (w <= nr_fences);
  r = find_fences (reader, w, &first, &next, err);
  if (r == 0)
    r = need_window (reader, w, &slot, err);
  if (r < 0)
    return r;
  if (!slot->is_checked) {
    r = bp_index_check_window (&reader->index, w, slot->data,
                               window_len (reader, w), first, next, err);
    if (r < 0)
      return r;
    slot->is_checked = true;
  }
  *ret_start = w == 0 ? 0 : first;
  *ret_end = w < nr_fences ? next : reader->index.image_size;
  return 0;
}

/* Only checked windows may be looked up in; window 0 is always one by the
 * time a lookup comes to it, as the walk begins there.
 */
int
store_index_lookup (struct store_index *reader, uint64_t offset,
                    struct bp_extent *ret_extent, struct bp_error *err)
{
  for (;;) {
    uint64_t missing, start, end;
    int r = bp_index_lookup (&reader->index, give_verified, reader, offset,
                             ret_extent, &missing);

    if (r == -EAGAIN)
      r = store_index_load (reader, missing, &start, &end, err);
    else
      return r < 0 ? bp_error_set (err, r, "image index: offset %llu: %m",
                                   (unsigned long long) offset)
                   : 0;
    if (r < 0)
      return r;
  }
}
