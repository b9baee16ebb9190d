/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Image indexes.  An input that starts with the magic is a whole index:
 * if every window passes its check, a walk over the image by lookups meets
 * every entry once, and writing those entries gives the same bytes.
 *
 * Any other input is one window of a larger index:
 *
 *    0  u64 image size      8  u64 entry count     16  u64 window
 *   24  u64 first fence    32  u64 next fence      40  the window
 *
 * What passes the check holds only entries within the limits.
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz/fuzz.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/image-index.h"
#include "lib/segmenter.h"

const char fuzz_target[] = "image-index";
bool fuzz_decoded;

enum {
  PROLOGUE_SIZE = 40
};

/* The input, as the windows of a blob. */
struct blob {
  const uint8_t *data;
  size_t size;
};

static const uint8_t *
get_window (void *opaque, uint64_t w)
{
  const struct blob *blob = opaque;

  MUST (w < bp_nr_windows (blob->size));
  return blob->data + w * BP_WINDOW_SIZE;
}

static bool
check_windows (const struct bp_index *index, struct blob *blob)
{
  for (uint64_t w = 0; w < bp_nr_windows (blob->size); w++) {
    uint64_t first, next, missing;
    int r;

    MUST (bp_index_fences_of (index, get_window, blob, w, &first, &next,
                              &missing) == 0);
    r = bp_index_check_window (
      index, w, blob->data + w * BP_WINDOW_SIZE,
      MIN (blob->size - w * BP_WINDOW_SIZE, BP_WINDOW_SIZE), first, next,
      NULL);
    MUST (r == 0 || r == -EPROTO);
    if (r < 0)
      return false;
  }
  return true;
}

static void
check_extent (const struct bp_index *index, uint64_t offset,
              const struct bp_extent *extent)
{
  MUST (extent->offset == offset);
  MUST (extent->len > 0);
  MUST (range_is_within (index->image_size, offset, extent->len));
  if (extent->is_hole)
    return;
  MUST (extent->segment_offset == offset && extent->blob_offset == 0);
  MUST (extent->blob_len == extent->len && extent->len <= BP_SEGMENT_MAX);
}

/* Walk the image from end to end into WRITER.  All fences stand in window
 * 0 of an input of this size, so no window can contradict another.
 */
static void
copy_entries (const struct bp_index *index, struct blob *blob,
              struct bp_index_writer *writer)
{
  uint64_t offset = 0, missing;

  while (offset < index->image_size) {
    struct bp_extent extent;

    MUST (bp_index_lookup (index, get_window, blob, offset, &extent,
                           &missing) == 0);
    check_extent (index, offset, &extent);
    if (!extent.is_hole)
      MUST (bp_index_writer_add (writer, offset, extent.blob_len,
                                 &extent.root, NULL) == 0);
    offset += extent.len;
  }
}

static void
check_whole (const uint8_t *data, size_t size)
{
  struct blob blob = { data, size };
  CLEANUP_CLOSE int fd = -1;
  CLEANUP_FREE uint8_t *written = malloc (size);
  struct bp_index_writer *writer;
  struct bp_index index, again;

  if (bp_index_decode_header (data, MIN (size, BP_WINDOW_SIZE), size, &index,
                              NULL) < 0 ||
      !check_windows (&index, &blob))
    return;
  fuzz_decoded = true;
  MUST (index.image_size <= BP_IMAGE_MAX_SIZE);
  fd = memfd_create ("spool", MFD_CLOEXEC);
  MUST (fd >= 0 && written != NULL);
  MUST (bp_index_writer_new (&writer, fd) == 0);
  copy_entries (&index, &blob, writer);
  MUST (bp_index_writer_finish (writer, index.image_size, &again, NULL) == 0);
  MUST (again.nr_entries == index.nr_entries && again.blob_size == size);
  MUST (bp_index_writer_read (writer, 0, written, size, NULL) == 0);
  MUST (memcmp (written, data, size) == 0);
  bp_index_writer_free (writer);
}

/* ---- One window ---- */

/* Only window W is at hand. */
struct one_window {
  uint64_t w;
  const uint8_t *bytes;
};

static const uint8_t *
get_one_window (void *opaque, uint64_t w)
{
  const struct one_window *one = opaque;

  return w == one->w ? one->bytes : NULL;
}

static void
check_one (const uint8_t *data, size_t size)
{
  const uint64_t max_entries = BP_BLOB_MAX_SIZE / BP_INDEX_ENTRY_SIZE;
  struct bp_index index = {
    .image_size = get_le64 (data) % (BP_IMAGE_MAX_SIZE + 1),
    .nr_entries = get_le64 (data + 8) % (max_entries + 1),
  };
  struct one_window one = { get_le64 (data + 16), data + PROLOGUE_SIZE };
  const uint64_t first = get_le64 (data + 24);
  struct bp_extent extent;
  uint64_t missing;
  int r;

  index.nr_fences = bp_index_nr_fences (index.nr_entries);
  index.blob_size = bp_index_blob_size (index.nr_entries);
  MUST (bp_nr_windows (index.blob_size) == (uint64_t) index.nr_fences + 1);
  r = bp_index_check_window (&index, one.w, one.bytes, size - PROLOGUE_SIZE,
                             first, get_le64 (data + 32), NULL);
  MUST (r == 0 || r == -EPROTO);
  if (r < 0)
    return;
  fuzz_decoded = true;
  if (first >= index.image_size)
    return;
  r = bp_index_lookup (&index, get_one_window, &one, first, &extent,
                       &missing);
  MUST (r == 0 || r == -EAGAIN || r == -EPROTO);
  if (r == 0)
    MUST (extent.offset == first && extent.len > 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  if (size >= 8 && memcmp (data, "BPIMAGE1", 8) == 0)
    check_whole (data, size);
  else if (size >= PROLOGUE_SIZE)
    check_one (data, size);
  return 0;
}
