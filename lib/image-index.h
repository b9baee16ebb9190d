/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The image index: the blob that places segments at offsets of a disk
 * (blobpager-store(5)).
 *
 *    0  "BPIMAGE1"
 *    8  u64 image size
 *   16  u64 entry count
 *   24  u32 entry size = 48
 *   28  u32 F, the number of fences
 *   32  zeros
 *   64  F fences, u64 each
 *       entries: u64 offset, u32 length, u32 flags (0), root
 *
 * Entry 0 stands at 64 + 8 F; each next one 48 bytes on, or at the start
 * of the next 128 KiB window where it would straddle.  The blob has F + 1
 * windows.  Fence w is the image offset of the first entry that stands in
 * window w + 1 (0 if that window holds only fences).
 *
 * Readers look at one window at a time.  A window has been verified by
 * its digest, and then checked once by bp_index_check_window; only a
 * checked window may be given to the lookup.
 *
 * Threads: pure functions; a writer belongs to one thread.
 */
#ifndef BP_IMAGE_INDEX_H
#define BP_IMAGE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/merkle.h"

enum {
  BP_INDEX_HEADER_SIZE = 64,
  BP_INDEX_ENTRY_SIZE = 48,
};
#define BP_IMAGE_MAX_SIZE (UINT64_C (1) << 62)

/* What window 0 says of the whole. */
struct bp_index {
  uint64_t image_size; /* Bytes. */
  uint64_t nr_entries;
  uint32_t nr_fences;
  uint64_t blob_size; /* Bytes of the index itself. */
};

/* The number of fences and the size of the index of NR_ENTRIES. */
uint32_t bp_index_nr_fences (uint64_t nr_entries);
uint64_t bp_index_blob_size (uint64_t nr_entries);

/* Decode and check the header in the LEN bytes of window 0 of a blob of
 * BLOB_SIZE bytes.  Returns 0 or -EPROTO.
 */
int bp_index_decode_header (const uint8_t *window, size_t len,
                            uint64_t blob_size, struct bp_index *ret_index,
                            struct bp_error *err);

/* Check everything that window W (its LEN bytes, verified) says: entries
 * ascending, not overlapping, aligned, inside the image, flags zero,
 * gaps zero; fences ascending.  FIRST_FENCE is the fence that belongs to
 * the window and NEXT_FENCE the one after it (bp_index_fences_of); the
 * first entry must be at the one, and the last end at or before the
 * other.  Either is ignored where no such fence exists.  Returns 0 or
 * -EPROTO.
 */
int bp_index_check_window (const struct bp_index *index, uint64_t w,
                           const uint8_t *window, size_t len,
                           uint64_t first_fence, uint64_t next_fence,
                           struct bp_error *err);

/* A run of an image: one segment (or the part of it from the offset that
 * was asked), or a gap.
 */
struct bp_extent {
  uint64_t offset;         /* Where the run starts: the offset asked for. */
  uint64_t len;            /* Bytes to the end of the segment or gap; a gap
                          may be cut short at the end of a window's
                          knowledge, never to 0. */
  bool is_hole;            /* Reads as zeros; the rest is not set. */
  struct bp_root root;     /* The segment's blob. */
  uint32_t blob_len;       /* Bytes of the whole blob. */
  uint32_t blob_offset;    /* Where the run starts in the blob. */
  uint64_t segment_offset; /* Image offset of the whole segment. */
};

/* Gives the bytes of window W (borrowed at least until the lookup
 * returns) or NULL if it is not at hand.
 */
typedef const uint8_t *(*bp_index_window_fn) (void *opaque, uint64_t w);

/* What lies at OFFSET (inside the image).  Asks GET for window 0, for
 * the windows that hold the fences it needs, and for the one window that
 * holds the entry.  Returns 0; -EAGAIN if GET had not got a window, with
 * its number in *ret_missing; -EPROTO if windows contradict each other;
 * -EINVAL for an offset outside the image.
 */
int bp_index_lookup (const struct bp_index *index, bp_index_window_fn get,
                     void *opaque, uint64_t offset,
                     struct bp_extent *ret_extent, uint64_t *ret_missing);

/* The same for what lies from OFFSET on: fills EXTENTS, at most MAX (at
 * least 1) of them, each of which starts where the one before it ends, as
 * far as the window that holds the first knows them.
 */
int bp_index_lookup_some (const struct bp_index *index,
                          bp_index_window_fn get, void *opaque,
                          uint64_t offset, struct bp_extent *extents,
                          size_t max, size_t *ret_count,
                          uint64_t *ret_missing);

/* The two fences that bp_index_check_window needs for window W, read
 * through GET in the same manner.  Asked for a window that holds fences
 * itself, GET may hand out its bytes before they are checked.
 */
int bp_index_fences_of (const struct bp_index *index, bp_index_window_fn get,
                        void *opaque, uint64_t w, uint64_t *ret_first,
                        uint64_t *ret_next, uint64_t *ret_missing);

/* ---- Writing ----
 *
 * Entries are spooled to a temporary file, since the fences that precede
 * them in the blob are known only at the end: memory does not grow with
 * the image.
 */
struct bp_index_writer;

/* SPOOL_FD is an empty file open for reading and writing (borrowed until
 * the writer is freed).
 */
int bp_index_writer_new (struct bp_index_writer **ret_writer, int spool_fd);

/* The next segment; offsets ascend. */
int bp_index_writer_add (struct bp_index_writer *writer, uint64_t offset,
                         uint32_t len, const struct bp_root *root,
                         struct bp_error *err);

/* No more entries.  Fills *RET_INDEX. */
int bp_index_writer_finish (struct bp_index_writer *writer,
                            uint64_t image_size, struct bp_index *ret_index,
                            struct bp_error *err);

/* After finish: bytes of the blob at OFFSET (inside it), LEN of them. */
int bp_index_writer_read (struct bp_index_writer *writer, uint64_t offset,
                          void *buf, size_t len, struct bp_error *err);

void bp_index_writer_free (struct bp_index_writer *writer);

#endif /* BP_IMAGE_INDEX_H */
