/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Open blobs: reading bytes in their decoded and their stored form.
 *
 * A stored form is one frame for each window; window w's frame begins
 * where the sizes of the frames before it end.  For a large blob of codec
 * 1 these sizes stand behind its tree in the pack; a sum of every 1024th
 * is kept, made at the first read, so that finding a frame costs one
 * small read however large the blob is:
 *
 *   sizes  s0 s1 … s1023 | s1024 … | …       u32 each, in the pack
 *   sums   0               Σ          Σ      u64 each, in memory
 *
 * A blob's bytes are nobody's word but the root's: whatever in the pack
 * does not make sense, or is not there, reads as zeros, and the digest
 * says so.  Only the system's own errors are errors here.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/range.h"
#include "lib/store-internal.h"

enum {
  FRAMES_PER_SUM = 1024,
  /* What is read ahead of one blob at most, bytes. */
  WILL_NEED_BYTES = 1 << 20,
};

struct bp_blob {
  struct store_pack *pack; /* A reference, acquired. */
  int fd;                  /* The pack's. */
  struct bp_blob_info info;
  uint64_t offset;      /* Of the stored bytes in the pack. */
  uint64_t tree_offset; /* Of the tree in the pack; 0: one window. */

  pthread_mutex_t lock; /* Protects the making of sums. */
  uint64_t *sums;       /* Stored bytes before each FRAMES_PER_SUM'th
                           window; NULL before first use, const after. */
};

int
store_blob_new (struct bp_blob **ret_blob, struct store_pack *pack,
                const struct bp_pack_entry *entry, struct bp_error *err)
{
  struct bp_blob *blob = calloc (1, sizeof *blob);

  if (blob == NULL)
    return bp_error_set (err, -ENOMEM, "blob: %m");
  blob->pack = pack;
  blob->fd = bp_pack_fd (pack->pack);
  blob->info = (struct bp_blob_info){
    .root = entry->root,
    .object_id = entry->object_id,
    .size = entry->size,
    .stored_size = entry->stored_size,
    .codec = (enum bp_codec) entry->codec,
  };
  blob->offset = entry->offset;
  blob->tree_offset = entry->tree_offset;
  pthread_mutex_init (&blob->lock, NULL);
  *ret_blob = blob;
  return 0;
}

int
bp_store_open_blob (struct bp_store *store, const struct bp_root *root,
                    struct bp_blob **ret_blob, struct bp_error *err)
{
  struct bp_pack_entry entry;
  struct store_pack *pack;
  int r = store_packs_find (store, root, true, &pack, &entry, err);

  if (r < 0)
    return r;
  r = store_blob_new (ret_blob, pack, &entry, err);
  if (r < 0) {
    store_pack_release (pack);
    store_pack_unref (pack);
  }
  return r;
}

void
bp_blob_close (struct bp_blob *blob)
{
  if (blob == NULL)
    return;
  store_pack_release (blob->pack);
  store_pack_unref (blob->pack);
  pthread_mutex_destroy (&blob->lock);
  free (blob->sums);
  free (blob);
}

const struct bp_blob_info *
bp_blob_get_info (const struct bp_blob *blob)
{
  return &blob->info;
}

/* ---- Reading the pack ---- */

static int
read_error (const struct bp_blob *blob, int code, const char *what,
            struct bp_error *err)
{
  char hex[BP_ROOT_HEX_SIZE];

  return bp_error_set (err, code, "blob '%s': read %s: %m",
                       bp_root_format (&blob->info.root, hex), what);
}

static int
range_error (const struct bp_blob *blob, const char *what,
             struct bp_error *err)
{
  char hex[BP_ROOT_HEX_SIZE];

  return bp_error_set (err, -EINVAL, "blob '%s': read %s: outside of it",
                       bp_root_format (&blob->info.root, hex), what);
}

/* LEN bytes at OFFSET of the pack; zeros where it has been cut short. */
static int
read_pack (const struct bp_blob *blob, void *buf, size_t len,
           uint64_t offset)
{
  const ssize_t r = bp_pread_all (blob->fd, buf, len, offset);

  if (r < 0)
    return (int) r;
  memset ((uint8_t *) buf + r, 0, len - (size_t) r);
  return 0;
}

int
bp_blob_read_stored (struct bp_blob *blob, void *buf, size_t len,
                     uint64_t offset, struct bp_error *err)
{
  int r;

  if (!range_is_within (blob->info.stored_size, offset, len))
    return range_error (blob, "stored bytes", err);
  r = read_pack (blob, buf, len, blob->offset + offset);
  return r < 0 ? read_error (blob, r, "stored bytes", err) : 0;
}

int
bp_blob_read_tree (struct bp_blob *blob, unsigned level, uint64_t first,
                   uint32_t count, uint8_t *out, struct bp_error *err)
{
  const uint64_t size = blob->info.size;
  uint64_t offset;
  int r;

  if (blob->tree_offset == 0 || level >= bp_merkle_nr_levels (size) ||
      !range_is_within (bp_merkle_level_count (size, level), first, count))
    return range_error (blob, "tree", err);
  offset = blob->tree_offset + bp_merkle_level_offset (size, level) +
           first * BP_ROOT_SIZE;
  r = read_pack (blob, out, (size_t) count * BP_ROOT_SIZE, offset);
  return r < 0 ? read_error (blob, r, "tree", err) : 0;
}

/* ---- Frames ---- */

static uint64_t
window_len (const struct bp_blob *blob, uint64_t w)
{
  return MIN (BP_WINDOW_SIZE, blob->info.size - w * BP_WINDOW_SIZE);
}

static bool
has_frame_sizes (const struct bp_blob *blob)
{
  return blob->tree_offset != 0 && blob->info.codec == BP_CODEC_ZSTD;
}

/* The stored sizes of COUNT windows from FIRST on, as they stand in the
 * pack.
 */
static int
read_frame_sizes (const struct bp_blob *blob, uint64_t first,
                  uint32_t count, uint32_t *out)
{
  const uint64_t size = blob->info.size;
  const uint64_t offset =
    blob->tree_offset +
    bp_merkle_level_offset (size, bp_merkle_nr_levels (size)) + first * 4;
  const int r = read_pack (blob, out, (size_t) count * 4, offset);

  if (r < 0)
    return r;
  for (uint32_t i = 0; i < count; i++)
    out[i] = le32toh (out[i]);
  return 0;
}

int
bp_blob_read_frames (struct bp_blob *blob, uint64_t first, uint32_t count,
                     uint32_t *out, struct bp_error *err)
{
  int r;

  if (!range_is_within (bp_nr_windows (blob->info.size), first, count))
    return range_error (blob, "frame sizes", err);
  if (has_frame_sizes (blob)) {
    r = read_frame_sizes (blob, first, count, out);
    return r < 0 ? read_error (blob, r, "frame sizes", err) : 0;
  }
  for (uint32_t i = 0; i < count; i++)
    out[i] = (uint32_t) (blob->tree_offset == 0
                           ? blob->info.stored_size
                           : window_len (blob, first + i));
  return 0;
}

static int
make_sums (struct bp_blob *blob)
{
  const uint64_t windows = bp_nr_windows (blob->info.size);
  const uint64_t nr_sums = div_round_up (windows, FRAMES_PER_SUM);
  CLEANUP_FREE uint64_t *sums = calloc (nr_sums, sizeof *sums);
  uint32_t sizes[FRAMES_PER_SUM];
  uint64_t sum = 0;

  if (sums == NULL)
    return -ENOMEM;
  for (uint64_t i = 0; i < nr_sums; i++) {
    const uint64_t first = i * FRAMES_PER_SUM;
    const uint32_t count = (uint32_t) MIN (FRAMES_PER_SUM, windows - first);
    const int r = read_frame_sizes (blob, first, count, sizes);

    if (r < 0)
      return r;
    sums[i] = sum;
    for (uint32_t j = 0; j < count; j++)
      sum += sizes[j]; /* At most 2^23 sizes of 32 bits: does not wrap. */
  }
  blob->sums = steal_ptr (&sums);
  return 0;
}

static int
need_sums (struct bp_blob *blob)
{
  LOCKED (&blob->lock);

  return blob->sums ? 0 : make_sums (blob);
}

/* Where window W's frame lies in the stored form.  Returns 0 with *RET_LEN
 * 0 if it lies nowhere that makes sense.
 */
static int
find_frame (struct bp_blob *blob, uint64_t w, uint64_t *ret_offset,
            size_t *ret_len)
{
  const uint64_t first = round_down (w, FRAMES_PER_SUM);
  uint32_t sizes[FRAMES_PER_SUM];
  uint64_t offset;
  uint32_t len;
  int r = need_sums (blob);

  if (r == 0)
    r = read_frame_sizes (blob, first, (uint32_t) (w - first) + 1, sizes);
  if (r < 0)
    return r;
  offset = blob->sums[w / FRAMES_PER_SUM];
  for (uint64_t i = 0; i < w - first; i++)
    offset += sizes[i];
  len = sizes[w - first];
  *ret_offset = offset;
  *ret_len = len <= window_len (blob, w) &&
                 range_is_within (blob->info.stored_size, offset, len)
               ? len
               : 0;
  return 0;
}

/* Decode window W into OUT, all of it. */
static int
decode_window (struct bp_blob *blob, struct frame_lease *lease, uint64_t w,
               uint8_t *out)
{
  const size_t len = window_len (blob, w);
  uint64_t offset = 0;
  size_t stored_len = blob->info.stored_size;
  int r = 0;

  if (blob->tree_offset != 0)
    r = find_frame (blob, w, &offset, &stored_len);
  if (r == 0)
    r = read_pack (blob, lease->stored, stored_len, blob->offset + offset);
  if (r == 0)
    frame_decode (lease, lease->stored, stored_len, out, len);
  return r;
}

/* LEN bytes at OFFSET of codec 1, window by window. */
static int
read_frames_into (struct bp_blob *blob, struct frame_lease *lease,
                  uint8_t *buf, size_t len, uint64_t offset)
{
  while (len > 0) {
    const uint64_t w = offset / BP_WINDOW_SIZE;
    const size_t skip = offset % BP_WINDOW_SIZE;
    const size_t whole = window_len (blob, w);
    const size_t n = MIN (len, whole - skip);
    uint8_t *const out = n == whole ? buf : lease->decoded;
    const int r = decode_window (blob, lease, w, out);

    if (r < 0)
      return r;
    if (n != whole)
      memcpy (buf, out + skip, n);
    buf += n;
    offset += n;
    len -= n;
  }
  return 0;
}

int
bp_blob_read (struct bp_blob *blob, void *buf, size_t len, uint64_t offset,
              struct bp_error *err)
{
  struct frame_pool *pool = &blob->pack->store->frames;
  struct frame_lease *lease;
  int r;

  if (!range_is_within (blob->info.size, offset, len))
    return range_error (blob, "bytes", err);
  if (blob->info.codec == BP_CODEC_RAW) {
    r = read_pack (blob, buf, len, blob->offset + offset);
    return r < 0 ? read_error (blob, r, "bytes", err) : 0;
  }
  lease = frame_pool_take (pool);
  r = lease ? read_frames_into (blob, lease, buf, len, offset) : -ENOMEM;
  frame_pool_give (pool, lease);
  return r < 0 ? read_error (blob, r, "bytes", err) : 0;
}

/* ---- Reading ahead ---- */

static uint64_t
will_need_end (const struct bp_blob *blob)
{
  return blob->offset + MIN (blob->info.stored_size, WILL_NEED_BYTES);
}

static int
compare_places (const void *a, const void *b)
{
  const struct bp_blob *x = *(struct bp_blob *const *) a;
  const struct bp_blob *y = *(struct bp_blob *const *) b;

  if (x->pack != y->pack)
    return x->pack < y->pack ? -1 : 1;
  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void
bp_blobs_will_need (struct bp_blob **blobs, size_t count)
{
  size_t next;

  if (count > 0)
    qsort (blobs, count, sizeof *blobs, compare_places);
  for (size_t i = 0; i < count; i = next) {
    uint64_t end = will_need_end (blobs[i]);

    for (next = i + 1; next < count; next++) {
      if (blobs[next]->pack != blobs[i]->pack || blobs[next]->offset > end)
        break;
      end = MAX (end, will_need_end (blobs[next]));
    }
    /* Advice: what it does not bring, the read will. */
    posix_fadvise (blobs[i]->fd, (off_t) blobs[i]->offset,
                   (off_t) (end - blobs[i]->offset), POSIX_FADV_WILLNEED);
  }
}

/* ---- Verified ---- */

static int
mismatch (const struct bp_blob *blob, uint64_t offset, struct bp_error *err)
{
  char hex[BP_ROOT_HEX_SIZE];

  return bp_error_set (err, -EBADMSG,
                       "blob '%s': window at offset %llu: digest mismatch",
                       bp_root_format (&blob->info.root, hex),
                       (unsigned long long) offset);
}

/* Read the nodes that lead to WINDOW into BYTES, and point NODES at them. */
static int
read_path (struct bp_blob *blob, const struct bp_window *window,
           uint8_t *bytes, const uint8_t *nodes[BP_MERKLE_MAX_LEVELS],
           struct bp_error *err)
{
  struct bp_merkle_node path[BP_MERKLE_MAX_LEVELS];
  const unsigned n = bp_merkle_path (window->size, window->offset, path);
  int r = 0;

  for (unsigned i = 0; r == 0 && i < n; i++) {
    nodes[i] = bytes;
    r = bp_blob_read_tree (blob, path[i].level, path[i].first,
                           path[i].count, bytes, err);
    bytes += BP_BLOCK_SIZE;
  }
  return r;
}

int
bp_blob_read_verified (struct bp_blob *blob, void *buf, size_t len,
                       uint64_t offset, struct bp_error *err)
{
  const uint8_t *nodes[BP_MERKLE_MAX_LEVELS];
  CLEANUP_FREE uint8_t *bytes = NULL;
  struct bp_window window = {
    .size = blob->info.size,
    .offset = offset,
    .data = buf,
    .len = len,
    .root = &blob->info.root,
  };
  int r;

  if (!bp_is_window (window.size, offset, len))
    return range_error (blob, "window", err);
  r = bp_blob_read (blob, buf, len, offset, err);
  if (r == 0 && window.size > BP_WINDOW_SIZE) {
    bytes = malloc (BP_MERKLE_MAX_LEVELS * BP_BLOCK_SIZE);
    if (bytes == NULL)
      return bp_error_set (err, -ENOMEM, "blob: %m");
    window.nodes = nodes;
    r = read_path (blob, &window, bytes, nodes, err);
  }
  if (r < 0)
    return r;
  bp_verify_windows (&window, 1);
  return window.status == 0 ? 0 : mismatch (blob, offset, err);
}
