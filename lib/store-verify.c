/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Verifying what is stored.
 *
 * One image: its index, window by window, and every blob that it places.
 *
 * The whole store: every blob of every pack once, in the order they lie
 * in, then every image, whose blobs need only be found then:
 *
 *   packs ──▶ bad roots ──▶ images: a bad root that one places is told
 *                                   with its name and place
 *                       ──▶ the rest is told without
 *
 * Each blob is told once, at its first place.  A blob that lies in two
 * packs counts as bad if the copy that readers find is.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/bad-roots.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/base/range.h"
#include "lib/store-index.h"
#include "lib/store-internal.h"

enum {
  STOPPED = 1
}; /* The caller's function wants no more. */

struct verify {
  struct bp_store *store;
  bp_verify_fn fn;
  bp_progress_fn progress;
  void *opaque;
  struct bp_error *err;

  struct bad_roots bad;
  bool packs_are_done; /* Blobs need only be found. */
  uint8_t *window;     /* BP_WINDOW_SIZE bytes. */
  uint64_t done;       /* Bytes verified. */
  uint64_t total;
};

static int
verify_start (struct verify *verify)
{
  verify->window = malloc (BP_WINDOW_SIZE);
  return verify->window ? 0 : bp_error_set (verify->err, -ENOMEM, "verify: %m");
}

static void
verify_done (struct verify *verify)
{
  bad_roots_done (&verify->bad);
  free (verify->window);
}
#define CLEANUP_VERIFY __attribute__ ((cleanup (verify_done)))

static void
advance (struct verify *verify, uint64_t bytes)
{
  verify->done += bytes;
  if (verify->progress)
    verify->progress (verify->opaque, verify->done, verify->total);
}

static int
out_of_memory (struct verify *verify)
{
  return bp_error_set (verify->err, -ENOMEM, "verify: %m");
}

/* ---- Telling ---- */

static int
tell (struct verify *verify, const struct bp_root *root, const char *image,
      uint64_t offset, int code, const char *why)
{
  return verify->fn (verify->opaque, root, image, offset, code, why) != 0
           ? STOPPED
           : 0;
}

static const char *
why_of (int code)
{
  switch (code) {
  case -EBADMSG: return "digest mismatch";
  case -ENOENT: return "not in the store";
  case -EPROTO: return "malformed";
  default: return strerror (-code);
  }
}

/* ROOT is bad in the way CODE: tell it unless it has been told. */
static int
tell_blob (struct verify *verify, const struct bp_root *root,
           const char *image, uint64_t offset, int code)
{
  struct bad_root *row = bad_roots_find (&verify->bad, root);

  if (row == NULL)
    row = bad_roots_add (&verify->bad, root, code, 0);
  if (row == NULL)
    return out_of_memory (verify);
  if (row->is_reported)
    return 0;
  row->is_reported = true;
  return tell (verify, root, image, offset, row->code, why_of (row->code));
}

/* ---- Blobs ---- */

/* Returns 0, or what is wrong with BLOB, and where in it. */
static int
verify_blob (struct verify *verify, struct bp_blob *blob,
             uint64_t *ret_offset)
{
  const uint64_t size = bp_blob_get_info (blob)->size;
  uint64_t at = 0;

  do {
    const size_t len = MIN (BP_WINDOW_SIZE, size - at);
    const int r =
      bp_blob_read_verified (blob, verify->window, len, at, NULL);

    *ret_offset = at;
    if (r < 0)
      return r;
    at += len;
  } while (at < size);
  return 0;
}

/* The blob that an image places: found, of the right size, and (unless
 * the packs have been read) verified.
 */
static int
verify_placed (struct verify *verify, const struct bp_extent *extent)
{
  struct bp_blob *blob;
  uint64_t offset;
  int r = bp_store_open_blob (verify->store, &extent->root, &blob, NULL);

  if (r < 0)
    return r;
  if (bp_blob_get_info (blob)->size != extent->blob_len)
    r = -EPROTO;
  else if (!verify->packs_are_done) {
    r = verify_blob (verify, blob, &offset);
    advance (verify, extent->blob_len);
  }
  bp_blob_close (blob);
  return r;
}

/* ---- Images ---- */

/* The segments in [START, END) of the image. */
static int
verify_part (struct verify *verify, const struct bp_tag *tag,
             struct store_index *reader, uint64_t start, uint64_t end)
{
  while (start < end) {
    struct bp_extent extent;
    int r = store_index_lookup (reader, start, &extent, NULL);

    if (r < 0)
      return tell_blob (verify, &tag->root, tag->name, 0, r);
    start += extent.len;
    if (extent.is_hole)
      continue;
    r = bad_roots_find (&verify->bad, &extent.root)
          ? -EBADMSG /* Its row knows better. */
          : verify_placed (verify, &extent);
    if (r < 0)
      r = tell_blob (verify, &extent.root, tag->name, extent.segment_offset,
                     r);
    if (r != 0)
      return r;
  }
  return 0;
}

/* Every window of the index, and what it places.  A window that is bad
 * hides its entries; the others are walked all the same.
 */
static int
verify_windows (struct verify *verify, const struct bp_tag *tag,
                struct store_index *reader)
{
  const struct bp_index *index = store_index_get (reader);

  for (uint64_t w = 0; w <= index->nr_fences; w++) {
    uint64_t start, end;
    int r = store_index_load (reader, w, &start, &end, NULL);

    r = r < 0 ? tell_blob (verify, &tag->root, tag->name, 0, r)
              : verify_part (verify, tag, reader, start, end);
    if (r != 0)
      return r;
  }
  return 0;
}

static int
verify_index (struct verify *verify, const struct bp_tag *tag,
              struct bp_blob *blob)
{
  struct store_index *reader;
  struct bp_error why;
  int r = store_index_open (&reader, blob, &why);

  if (r < 0)
    return tell_blob (verify, &tag->root, tag->name, 0, r);
  r = store_index_get (reader)->image_size == tag->size
        ? 0
        : tell (verify, &tag->root, tag->name, 0, -EPROTO,
                "the tag says another size than the index");
  if (r == 0)
    r = verify_windows (verify, tag, reader);
  store_index_close (reader);
  return r;
}

static int
verify_image (struct verify *verify, const struct bp_tag *tag)
{
  struct bp_blob *blob;
  int r = bp_store_open_blob (verify->store, &tag->root, &blob, NULL);

  if (r < 0)
    return tell_blob (verify, &tag->root, tag->name, 0, r);
  r = verify_index (verify, tag, blob);
  bp_blob_close (blob);
  return r;
}

int
bp_store_verify_image (struct bp_store *store, const char *name,
                       bp_verify_fn fn, bp_progress_fn progress,
                       void *opaque, struct bp_error *err)
{
  CLEANUP_VERIFY struct verify verify = {
    .store = store,
    .fn = fn,
    .progress = progress,
    .opaque = opaque,
    .err = err,
  };
  struct bp_tag tag;
  int r = bp_store_get_tag (store, name, &tag, err);

  if (r == 0)
    r = verify_start (&verify);
  if (r < 0)
    return r;
  verify.total = tag.bytes;
  r = verify_image (&verify, &tag);
  return MIN (r, 0);
}

/* ---- Packs ---- */

/* The entries of one pack. */
struct entries {
  struct verify *verify;
  struct bp_pack_entry *entries;
  size_t count;
  size_t max;
};

static int
collect_entry (void *opaque, const struct bp_pack_entry *entry, int code)
{
  struct entries *all = opaque;

  if (code < 0)
    return bad_roots_find (&all->verify->bad, &entry->root) ||
               bad_roots_add (&all->verify->bad, &entry->root, code, 0)
             ? 0
             : out_of_memory (all->verify);
  if (all->count < all->max)
    all->entries[all->count++] = *entry;
  return 0;
}

static int
compare_offsets (const void *a, const void *b)
{
  const struct bp_pack_entry *x = a, *y = b;

  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Verify the blob of ENTRY as it lies in PACK, which is acquired. */
static int
verify_entry (struct verify *verify, struct store_pack *pack,
              const struct bp_pack_entry *entry)
{
  struct bp_pack *open;
  struct bp_blob *blob;
  uint64_t offset = 0;
  int r = store_pack_acquire (pack, &open, verify->err);

  if (r < 0)
    return r;
  atomic_fetch_add (&pack->refs, 1);
  r = store_blob_new (&blob, pack, entry, verify->err);
  if (r < 0) {
    store_pack_release (pack);
    store_pack_unref (pack);
    return r;
  }
  r = verify_blob (verify, blob, &offset);
  bp_blob_close (blob);
  advance (verify, entry->stored_size);
  if (r == 0 || bad_roots_find (&verify->bad, &entry->root))
    return 0;
  return bad_roots_add (&verify->bad, &entry->root, r, offset)
           ? 0
           : out_of_memory (verify);
}

/* Every blob of PACK, which is acquired, in the order they lie in. */
static int
verify_blobs (struct verify *verify, struct store_pack *pack,
              struct bp_pack *open)
{
  const size_t max = bp_pack_count (open);
  CLEANUP_FREE struct bp_pack_entry *entries =
    malloc ((max + 1) * sizeof *entries);
  struct entries all = { verify, entries, 0, max };
  struct bp_error why;
  int r;

  if (entries == NULL)
    return out_of_memory (verify);
  r = bp_pack_walk (open, collect_entry, &all, &why);
  if (r < 0) {
    r = r == -ENOMEM ? out_of_memory (verify)
                     : tell (verify, NULL, NULL, 0, r, why.msg);
    if (r != 0)
      return r;
  }
  qsort (entries, all.count, sizeof *entries, compare_offsets);
  for (size_t i = 0; i < all.count && r == 0; i++)
    r = verify_entry (verify, pack, &entries[i]);
  return r;
}

static int
verify_pack (struct verify *verify, struct store_pack *pack)
{
  struct bp_pack *open;
  struct bp_error why;
  int r = store_pack_acquire (pack, &open, &why);

  if (r == -ENOENT)
    return 0; /* Removed meanwhile. */
  if (r < 0)
    return tell (verify, NULL, NULL, 0, r, why.msg);
  r = verify_blobs (verify, pack, open);
  store_pack_release (pack);
  return r;
}

/* The bytes of all packs, for progress. */
static uint64_t
bytes_of (const struct bp_store *store, const struct pack_list *list)
{
  uint64_t bytes = 0;
  struct stat st;

  for (size_t i = 0; i < list->count; i++)
    if (fstatat (store->packs_fd, list->packs[i]->name, &st,
                 AT_SYMLINK_NOFOLLOW) == 0)
      bytes += (uint64_t) st.st_size;
  return bytes;
}

static int
verify_packs (struct verify *verify)
{
  struct pack_list *list = store_packs_get (verify->store);
  int r = 0;

  verify->total = bytes_of (verify->store, list);
  for (size_t i = 0; i < list->count && r == 0; i++)
    r = verify_pack (verify, list->packs[i]);
  pack_list_unref (list);
  verify->packs_are_done = true;
  return r;
}

/* ---- Everything ---- */

static int
verify_tag_file (void *opaque, const char *file)
{
  struct verify *verify = opaque;
  char name[STORE_FILE_NAME_SIZE];
  struct bp_error why;
  struct bp_tag tag;
  int r;

  if (!store_split_name (file, ".json", name) || !bp_is_tag_name (name))
    return 0;
  r = bp_store_get_tag (verify->store, name, &tag, &why);
  if (r == 0)
    return verify_image (verify, &tag);
  if (r == -ENOENT)
    return 0; /* Removed meanwhile. */
  return tell (verify, NULL, NULL, 0, r, why.msg);
}

static int
verify_profile_file (void *opaque, const char *file)
{
  struct verify *verify = opaque;
  char name[STORE_FILE_NAME_SIZE];
  CLEANUP_FREE char *meta = NULL;
  CLEANUP_FREE uint8_t *data = NULL;
  struct bp_error why;
  size_t len;
  int r;

  if (!store_split_name (file, ".json", name) || !bp_is_profile_name (name))
    return 0;
  r = bp_store_get_profile (verify->store, name, true, &meta, &data, &len,
                            &why);
  if (r == 0 || r == -ENOENT)
    return 0;
  return tell (verify, NULL, NULL, 0, r, why.msg);
}

/* The bad blobs that no image places, or none that could be read. */
static int
tell_rest (struct verify *verify)
{
  for (size_t i = 0; i < verify->bad.count; i++) {
    const struct bad_root *row = &verify->bad.roots[i];

    if (!row->is_reported) {
      const int r = tell (verify, &row->root, NULL, row->offset, row->code,
                          why_of (row->code));

      if (r != 0)
        return r;
    }
  }
  return 0;
}

int
bp_store_verify_all (struct bp_store *store, bp_verify_fn fn,
                     bp_progress_fn progress, void *opaque,
                     struct bp_error *err)
{
  CLEANUP_VERIFY struct verify verify = {
    .store = store,
    .fn = fn,
    .progress = progress,
    .opaque = opaque,
    .err = err,
  };
  int r = verify_start (&verify);

  if (r == 0)
    r = store_packs_rescan (store, err);
  if (r == 0)
    r = verify_packs (&verify);
  if (r == 0)
    r = store_each_name (store, "images", verify_tag_file, &verify, err);
  if (r == 0)
    r = tell_rest (&verify);
  if (r == 0)
    r = store_each_name (store, "profiles", verify_profile_file, &verify,
                         err);
  return MIN (r, 0);
}

int
bp_store_read_index (struct bp_store *store, const struct bp_root *root,
                     struct bp_index *ret_index, struct bp_error *err)
{
  struct store_index *reader;
  struct bp_blob *blob;
  int r = bp_store_open_blob (store, root, &blob, err);

  if (r < 0)
    return r;
  r = store_index_open (&reader, blob, err);
  if (r == 0) {
    *ret_index = *store_index_get (reader);
    store_index_close (reader);
  }
  bp_blob_close (blob);
  return r;
}
