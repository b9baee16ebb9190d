/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Import: blobs become packs, and a tag names them.
 *
 *   begin    make tmp/ID, hold its lock                 (store's lock held)
 *   add …    hash, look for the root, compress, append to tmp/ID/X.pack
 *   full     take object ids (store's lock held), write the table, sync
 *   commit   the same for the last pack; then, with the store's lock held,
 *            rename the packs, sync packs/, write the tag
 *
 * A kill before the renames leaves a directory in tmp/ that the next
 * writer sweeps; one between them leaves packs that no tag needs yet, and
 * that the next import of the same image finds and uses.
 *
 * A root is looked for in the pack being written, in the packs this
 * import has finished, and in the store; memory grows with none of them
 * but the first.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/range.h"
#include "lib/store-internal.h"

enum {
  ZSTD_LEVEL = 1,
  /* Compression is kept where it saves at least this many bytes. */
  WORTHWHILE_BYTES = 4096,
  /* Descriptors that finished packs may keep open. */
  MAX_OPEN_FINISHED = 16,
};

struct bp_import {
  struct bp_store *store; /* Borrowed. */
  enum bp_codec codec;
  ZSTD_CCtx *zstd;
  uint8_t *frame;  /* BP_WINDOW_SIZE bytes: a compressed window. */
  uint8_t *window; /* BP_WINDOW_SIZE bytes: of add_blob. */

  char dir[STORE_FILE_NAME_SIZE]; /* tmp/ID */
  int dirfd;                      /* … open. */
  int lock_fd;                    /* tmp/ID/lock, with a flock. */

  struct bp_pack_writer *writer; /* NULL: no pack begun. */
  int fd;                        /* Its file. */
  char name[STORE_FILE_NAME_SIZE];

  struct store_pack **finished; /* In tmp/ID until commit. */
  size_t nr_finished;
  uint64_t finished_bytes; /* Stored in these. */
};

/* ---- Beginning ---- */

/* tmp/ID and its lock.  Called with the store's lock held. */
static int
make_directory (struct bp_import *import, struct bp_error *err)
{
  const int store_fd = import->store->dirfd;
  char id[STORE_ID_SIZE];
  int r = store_new_id (id, err);

  if (r < 0)
    return r;
  store_path (import->dir, "tmp", id, "");
  if (mkdirat (store_fd, import->dir, 0777) == -1)
    r = -errno;
  if (r == 0)
    r = import->dirfd = bp_openat_beneath (store_fd, import->dir,
                                           O_RDONLY | O_DIRECTORY, 0);
  if (r >= 0)
    r = import->lock_fd = bp_openat_beneath (
      import->dirfd, "lock", O_RDWR | O_CREAT | O_EXCL, 0666);
  if (r >= 0)
    r = flock (import->lock_fd, LOCK_EX | LOCK_NB) == -1 ? -errno : 0;
  if (r < 0)
    return bp_error_set (err, r, "store '%s': make '%s': %m",
                         import->store->path, import->dir);
  return 0;
}

static int
make_buffers (struct bp_import *import, struct bp_error *err)
{
  import->frame = malloc (BP_WINDOW_SIZE);
  import->window = malloc (BP_WINDOW_SIZE);
  if (import->codec == BP_CODEC_ZSTD)
    import->zstd = ZSTD_createCCtx ();
  if (import->frame == NULL || import->window == NULL ||
      (import->codec == BP_CODEC_ZSTD && import->zstd == NULL))
    return bp_error_set (err, -ENOMEM, "import: %m");
  return 0;
}

static int
begin (struct bp_import *import, struct bp_error *err)
{
  CLEANUP_STORE_LOCK struct store_lock lock = { -1 };
  int r = make_buffers (import, err);

  if (r == 0)
    r = store_lock (import->store, &lock, err);
  if (r == 0)
    r = make_directory (import, err);
  return r < 0 ? r : store_packs_rescan (import->store, err);
}

int
bp_import_begin (struct bp_import **ret_import, struct bp_store *store,
                 enum bp_codec codec, struct bp_error *err)
{
  struct bp_import *import = calloc (1, sizeof *import);
  int r;

  if (import == NULL)
    return bp_error_set (err, -ENOMEM, "import: %m");
  import->store = store;
  import->codec = codec;
  import->dirfd = import->lock_fd = import->fd = -1;
  r = begin (import, err);
  if (r < 0) {
    bp_import_free (import);
    return r;
  }
  *ret_import = import;
  return 0;
}

/* ---- Ending ---- */

/* Forget the pack being written. */
static void
drop_writer (struct bp_import *import)
{
  bp_pack_writer_free (import->writer);
  import->writer = NULL;
  cleanup_close (&import->fd);
  import->fd = -1;
}

static void
forget_finished (struct bp_import *import)
{
  for (size_t i = 0; i < import->nr_finished; i++)
    store_pack_unref (import->finished[i]);
  free (import->finished);
  import->finished = NULL;
  import->nr_finished = 0;
}

static int
remove_name (void *opaque, const char *name)
{
  const struct bp_import *import = opaque;

  unlinkat (import->dirfd, name, 0);
  return 0;
}

void
bp_import_free (struct bp_import *import)
{
  if (import == NULL)
    return;
  drop_writer (import);
  forget_finished (import);
  if (import->dirfd >= 0) {
    /* What stays in spite of this is swept by the next writer. */
    store_each_name (import->store, import->dir, remove_name, import, NULL);
    unlinkat (import->store->dirfd, import->dir, AT_REMOVEDIR);
  }
  cleanup_close (&import->dirfd);
  cleanup_close (&import->lock_fd);
  ZSTD_freeCCtx (import->zstd);
  free (import->frame);
  free (import->window);
  free (import);
}

/* ---- Packs ---- */

static int
new_file (struct bp_import *import, char name[STORE_FILE_NAME_SIZE],
          const char *suffix, struct bp_error *err)
{
  char id[STORE_ID_SIZE];
  int fd = store_new_id (id, err);

  if (fd < 0)
    return fd;
  snprintf (name, STORE_FILE_NAME_SIZE, "%s%s", id, suffix);
  fd = bp_openat_beneath (import->dirfd, name, O_RDWR | O_CREAT | O_EXCL,
                          0666);
  if (fd < 0)
    return bp_error_set (err, fd, "store '%s': make '%s/%s': %m",
                         import->store->path, import->dir, name);
  return fd;
}

static int
start_pack (struct bp_import *import, struct bp_error *err)
{
  int r;

  import->fd = new_file (import, import->name, ".pack", err);
  if (import->fd < 0)
    return import->fd;
  r = bp_pack_writer_new (&import->writer, import->fd);
  return r < 0 ? bp_error_set (err, r, "pack: start: %m") : 0;
}

static int
take_object_ids (struct bp_import *import, uint64_t count,
                 uint64_t *ret_first, struct bp_error *err)
{
  CLEANUP_STORE_LOCK struct store_lock lock = { -1 };
  const int r = store_lock (import->store, &lock, err);

  return r < 0 ? r : store_take_object_ids (&lock, count, ret_first, err);
}

/* The pack just finished becomes one that is searched. */
static int
keep_finished (struct bp_import *import, struct bp_error *err)
{
  struct store_pack **finished =
    reallocarray (import->finished, import->nr_finished + 1,
                  sizeof *finished);

  if (finished == NULL)
    return bp_error_set (err, -ENOMEM, "import: %m");
  import->finished = finished;
  if (store_pack_new (&finished[import->nr_finished], import->store,
                      import->dirfd, import->name) < 0)
    return bp_error_set (err, -ENOMEM, "import: %m");
  import->nr_finished++;
  return 0;
}

static int
finish_pack (struct bp_import *import, struct bp_error *err)
{
  uint64_t first;
  int r;

  if (import->writer == NULL)
    return 0;
  if (bp_pack_writer_count (import->writer) == 0) {
    drop_writer (import);
    unlinkat (import->dirfd, import->name, 0);
    return 0;
  }
  r = take_object_ids (import, bp_pack_writer_count (import->writer), &first,
                       err);
  if (r == 0) {
    import->finished_bytes += bp_pack_writer_size (import->writer);
    r = bp_pack_writer_finish (import->writer, first, err);
  }
  if (r < 0)
    return r;
  drop_writer (import);
  return keep_finished (import, err);
}

/* A pack begun that has room for a blob of SIZE bytes. */
static int
need_room (struct bp_import *import, uint64_t size, struct bp_error *err)
{
  const struct bp_pack_writer *writer = import->writer;

  if (writer && bp_pack_writer_count (writer) > 0 &&
      (bp_pack_writer_count (writer) == BP_PACK_MAX_BLOBS ||
       size > BP_PACK_MAX_STORED ||
       bp_pack_writer_size (writer) > BP_PACK_MAX_STORED - size)) {
    const int r = finish_pack (import, err);

    if (r < 0)
      return r;
  }
  return import->writer ? 0 : start_pack (import, err);
}

uint64_t
bp_import_stored (const struct bp_import *import)
{
  return import->finished_bytes +
         (import->writer ? bp_pack_writer_size (import->writer) : 0);
}

/* ---- Blobs ---- */

static bool
has_finished (struct bp_import *import, const struct bp_root *root)
{
  struct bp_pack_entry entry;

  for (size_t i = import->nr_finished; i-- > 0;) {
    struct store_pack *pack = import->finished[i];
    const bool found = store_pack_find (pack, root, &entry, NULL) == 0;

    if (found)
      store_pack_release (pack);
    if (import->nr_finished > MAX_OPEN_FINISHED)
      store_pack_close_idle (pack);
    if (found)
      return true;
  }
  return false;
}

/* A pack that is damaged has nothing: what it held is stored again. */
static bool
store_has (struct bp_store *store, const struct bp_root *root)
{
  struct bp_pack_entry entry;
  struct store_pack *pack;

  if (store_packs_find (store, root, false, &pack, &entry, NULL) < 0)
    return false;
  store_pack_release (pack);
  store_pack_unref (pack);
  return true;
}

static bool
has_root (struct bp_import *import, const struct bp_root *root)
{
  return (import->writer && bp_pack_writer_has (import->writer, root)) ||
         has_finished (import, root) || store_has (import->store, root);
}

/* Append the stored form of one window.  *RET_LEN is its length: less
 * than LEN if it was compressed.
 */
static int
append_window (struct bp_import *import, const void *data, size_t len,
               size_t *ret_len, struct bp_error *err)
{
  const void *stored = data;

  *ret_len = len;
  if (import->zstd && len > WORTHWHILE_BYTES) {
    /* With no more room than is worthwhile, what is not fails. */
    const size_t n =
      ZSTD_compressCCtx (import->zstd, import->frame, len - WORTHWHILE_BYTES,
                         data, len, ZSTD_LEVEL);

    if (!ZSTD_isError (n)) {
      stored = import->frame;
      *ret_len = n;
    }
  }
  return bp_pack_writer_append (import->writer, stored, *ret_len, err);
}

int
bp_import_add_segment (struct bp_import *import, const void *data,
                       uint32_t len, struct bp_root *ret_root,
                       bool *ret_is_new, struct bp_error *err)
{
  struct bp_root root;
  size_t stored;
  int r;

  assert (len <= BP_WINDOW_SIZE);
  r = bp_merkle_root (data, len, &root);
  if (r < 0)
    return bp_error_set (err, r, "import: %m");
  *ret_is_new = !has_root (import, &root);
  *ret_root = root;
  if (!*ret_is_new)
    return 0;
  r = need_room (import, len, err);
  if (r == 0)
    r = append_window (import, data, len, &stored, err);
  if (r < 0)
    return r;
  return bp_pack_writer_add_blob (
    import->writer, &root, len, stored < len ? BP_CODEC_ZSTD : BP_CODEC_RAW,
    NULL, 0, NULL, 0, err);
}

/* A large blob on its way into the pack. */
struct large_blob {
  struct bp_merkle_builder *builder;
  uint8_t *frames; /* u32 for each window. */
  uint64_t size;
  bool is_compressed; /* At least one window is. */
};

static void
large_blob_done (struct large_blob *blob)
{
  bp_merkle_builder_free (blob->builder);
  free (blob->frames);
}

static int
append_large (struct bp_import *import, struct large_blob *blob,
              bp_import_read_fn read, void *opaque, struct bp_error *err)
{
  for (uint64_t at = 0; at < blob->size; at += BP_WINDOW_SIZE) {
    const size_t len = MIN (BP_WINDOW_SIZE, blob->size - at);
    size_t stored;
    int r = read (opaque, at, import->window, len, err);

    if (r < 0)
      return r;
    r = bp_merkle_builder_add (blob->builder, import->window, len);
    if (r < 0)
      return bp_error_set (err, r, "import: %m");
    r = append_window (import, import->window, len, &stored, err);
    if (r < 0)
      return r;
    put_le32 (blob->frames + at / BP_WINDOW_SIZE * 4, (uint32_t) stored);
    blob->is_compressed |= stored < len;
  }
  return 0;
}

/* The bytes are in the pack: give them their name, or take them out again
 * if it is known.
 */
static int
finish_large (struct bp_import *import, struct large_blob *blob,
              struct bp_root *ret_root, bool *ret_is_new,
              struct bp_error *err)
{
  const bool zstd = blob->is_compressed;
  const uint8_t *tree;
  size_t tree_len;
  uint64_t size;
  int r = bp_merkle_builder_finish (blob->builder, ret_root, &size, &tree,
                                    &tree_len);

  if (r < 0)
    return bp_error_set (err, r, "import: %m");
  *ret_is_new = !has_root (import, ret_root);
  if (!*ret_is_new) {
    bp_pack_writer_discard (import->writer);
    return 0;
  }
  return bp_pack_writer_add_blob (
    import->writer, ret_root, size, zstd ? BP_CODEC_ZSTD : BP_CODEC_RAW,
    tree, tree_len, zstd ? blob->frames : NULL,
    zstd ? bp_nr_windows (size) * 4 : 0, err);
}

static int
add_large (struct bp_import *import, uint64_t size, bp_import_read_fn read,
           void *opaque, struct bp_root *ret_root, bool *ret_is_new,
           struct bp_error *err)
{
  __attribute__ ((cleanup (large_blob_done))) struct large_blob blob = {
    .size = size,
    .frames = malloc (bp_nr_windows (size) * 4),
  };
  int r;

  if (blob.frames == NULL || bp_merkle_builder_new (&blob.builder, true) < 0)
    return bp_error_set (err, -ENOMEM, "import: %m");
  r = need_room (import, size, err);
  if (r == 0)
    r = append_large (import, &blob, read, opaque, err);
  if (r == 0)
    return finish_large (import, &blob, ret_root, ret_is_new, err);
  if (import->writer)
    bp_pack_writer_discard (import->writer);
  return r;
}

int
bp_import_add_blob (struct bp_import *import, uint64_t size,
                    bp_import_read_fn read, void *opaque,
                    struct bp_root *ret_root, bool *ret_is_new,
                    struct bp_error *err)
{
  int r;

  if (size > BP_BLOB_MAX_SIZE)
    return bp_error_set (err, -EFBIG, "blob: larger than 2^40 bytes");
  if (size > BP_WINDOW_SIZE)
    return add_large (import, size, read, opaque, ret_root, ret_is_new, err);
  r = size > 0 ? read (opaque, 0, import->window, size, err) : 0;
  if (r < 0)
    return r;
  return bp_import_add_segment (import, import->window, (uint32_t) size,
                                ret_root, ret_is_new, err);
}

int
bp_import_spool (struct bp_import *import, struct bp_error *err)
{
  char name[STORE_FILE_NAME_SIZE];
  const int fd = new_file (import, name, ".spool", err);

  if (fd >= 0)
    unlinkat (import->dirfd, name, 0);
  return fd;
}

/* ---- Commit ---- */

/* Called with the store's lock held. */
static int
publish_packs (struct bp_import *import, struct bp_error *err)
{
  struct bp_store *store = import->store;
  int r;

  for (size_t i = 0; i < import->nr_finished; i++)
    if (renameat (import->dirfd, import->finished[i]->name, store->packs_fd,
                  import->finished[i]->name) == -1)
      return bp_error_set (err, -errno, "store '%s': publish pack: %m",
                           store->path);
  r = bp_sync_dir (store->dirfd, "packs");
  return r < 0 ? bp_error_set (err, r, "store '%s': sync 'packs': %m",
                               store->path)
               : 0;
}

/* Called with the store's lock held. */
static int
publish_tag (struct bp_import *import, const struct bp_tag *tag,
             struct bp_error *err)
{
  char path[STORE_FILE_NAME_SIZE];
  CLEANUP_FREE char *text = NULL;
  const int r = bp_tag_encode (tag, &text, err);

  if (r < 0)
    return r;
  store_path (path, "images", tag->name, ".json");
  return store_replace_file (import->store, path, text, strlen (text), err);
}

int
bp_import_commit (struct bp_import *import, const struct bp_tag *tag,
                  struct bp_error *err)
{
  CLEANUP_STORE_LOCK struct store_lock lock = { -1 };
  int r;

  if (tag && !bp_is_tag_name (tag->name))
    return bp_error_set (err, -EINVAL, "tag '%s': not a tag's name",
                         tag->name);
  r = finish_pack (import, err);
  if (r == 0)
    r = store_lock (import->store, &lock, err);
  if (r == 0)
    r = publish_packs (import, err);
  if (r == 0 && tag)
    r = publish_tag (import, tag, err);
  if (r < 0)
    return r;
  forget_finished (import);
  return store_packs_rescan (import->store, err);
}
