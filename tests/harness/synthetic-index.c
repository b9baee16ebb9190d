/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Making windows.  The layout is written down here a second time, on
 * purpose: these windows are what lib/image-index*.c is held against.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/synthetic-index.h"
#include "harness/vectors.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

enum {
  WINDOW = 131072,
  HEADER = 64,
  FENCE = 8,
  ENTRY = 48,
  PER_WINDOW = 2730, /* Entries of a window without fences. */
  SPACING = 8192,
};

uint64_t
synthetic_index_offset (uint64_t i)
{
  return i * SPACING + SPACING / 2;
}

struct bp_root
synthetic_index_root (uint64_t i)
{
  struct bp_root root;

  fill_splitmix (root.bytes, sizeof root.bytes, i);
  return root;
}

void
synthetic_index_init (struct synthetic_index *synthetic, uint64_t nr_entries)
{
  memset (synthetic, 0, sizeof *synthetic);
  synthetic->index = (struct bp_index){
    .image_size = nr_entries * SPACING + 4096,
    .nr_entries = nr_entries,
    .nr_fences = bp_index_nr_fences (nr_entries),
    .blob_size = bp_index_blob_size (nr_entries),
  };
}

/* Where entry 0 stands in the blob. */
static uint64_t
first_entry_at (const struct synthetic_index *synthetic)
{
  uint64_t at = HEADER + (uint64_t) synthetic->index.nr_fences * FENCE;

  if (at % WINDOW > WINDOW - ENTRY)
    at += WINDOW - at % WINDOW;
  return at;
}

/* The number of the first entry in window W, counting on past the last. */
static uint64_t
first_in_window (const struct synthetic_index *synthetic, uint64_t w)
{
  const uint64_t at = first_entry_at (synthetic);

  if (w <= at / WINDOW)
    return 0;
  return (WINDOW - at % WINDOW) / ENTRY +
         (w - at / WINDOW - 1) * PER_WINDOW;
}

static void
put_entry (uint8_t *p, uint64_t i)
{
  const struct bp_root root = synthetic_index_root (i);

  put_le64 (p, synthetic_index_offset (i));
  put_le32 (p + 8, 4096);
  memcpy (p + 16, root.bytes, sizeof root.bytes);
}

static void
put_fences (const struct synthetic_index *synthetic, uint64_t w, uint8_t *p)
{
  const uint64_t e = first_entry_at (synthetic) / WINDOW;

  for (uint64_t i = 0; i < synthetic->index.nr_fences; i++) {
    const uint64_t at = HEADER + i * FENCE;

    if (at / WINDOW == w && i + 1 >= e)
      put_le64 (p + at % WINDOW,
                synthetic_index_offset (first_in_window (synthetic, i + 1)));
  }
}

static void
put_entries (const struct synthetic_index *synthetic, uint64_t w, uint8_t *p)
{
  const uint64_t at = first_entry_at (synthetic);
  size_t place = w == at / WINDOW ? at % WINDOW : 0;

  if (w < at / WINDOW)
    return;
  for (uint64_t i = first_in_window (synthetic, w);
       i < synthetic->index.nr_entries && place + ENTRY <= WINDOW;
       i++, place += ENTRY)
    put_entry (p + place, i);
}

static uint8_t *
make_window (const struct synthetic_index *synthetic, uint64_t w)
{
  uint8_t *p = calloc (1, WINDOW);

  if (p == NULL)
    abort ();
  if (w == 0) {
    memcpy (p, "BPIMAGE1", 8);
    put_le64 (p + 8, synthetic->index.image_size);
    put_le64 (p + 16, synthetic->index.nr_entries);
    put_le32 (p + 24, ENTRY);
    put_le32 (p + 28, synthetic->index.nr_fences);
  }
  put_fences (synthetic, w, p);
  put_entries (synthetic, w, p);
  return p;
}

const uint8_t *
synthetic_index_window (void *opaque, uint64_t w)
{
  struct synthetic_index *synthetic = opaque;
  const size_t n = synthetic->nr_windows;

  for (size_t i = 0; i < n; i++)
    if (synthetic->numbers[i] == w)
      return synthetic->windows[i];
  if (n == SYNTHETIC_MOST_WINDOWS) {
    fprintf (stderr, "synthetic index: too many windows asked for\n");
    abort ();
  }
  synthetic->numbers[n] = w;
  synthetic->windows[n] = make_window (synthetic, w);
  synthetic->nr_windows++;
  return synthetic->windows[n];
}

size_t
synthetic_index_window_len (const struct synthetic_index *synthetic,
                            uint64_t w)
{
  return MIN (synthetic->index.blob_size - w * WINDOW, WINDOW);
}

void
synthetic_index_forget (struct synthetic_index *synthetic)
{
  for (size_t i = 0; i < synthetic->nr_windows; i++)
    free (synthetic->windows[i]);
  synthetic->nr_windows = 0;
}
