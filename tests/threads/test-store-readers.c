/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Many threads read one store, each blob verified, while imports add packs
 * to it and packs that nobody needs are removed.
 */
#include <config.h>

#include <errno.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "harness/check.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/store.h"

enum {
  NR_READERS = 6,
  NR_IMPORTS = 12,
  NR_SMALL = 40, /* Blobs of an import, one window each. */
  SMALL = 20000,
  LARGE = 400000, /* One more, of several windows. */
  READS = 400,    /* Of each reader at least. */
};

static char parent[64];
static char path[80];
static struct bp_store *store;
static struct bp_root roots[NR_IMPORTS * (NR_SMALL + 1)];
static _Atomic size_t nr_roots; /* Pairs with the loads of readers. */
static _Atomic bool done;

/* Bytes that compress and are those of NUMBER alone. */
static void
fill (uint8_t *bytes, size_t len, uint64_t number)
{
  for (size_t i = 0; i + 8 <= len; i += 8)
    put_le64 (bytes + i, i % 64 == 0 ? number : i % 512);
}

static int
read_memory (void *opaque, uint64_t offset, void *buf, size_t len,
             struct bp_error *err)
{
  (void) err;
  memcpy (buf, (const uint8_t *) opaque + offset, len);
  return 0;
}

/* Import number N, through a handle of its own or through the readers'. */
static void
import_some (struct bp_store *target, uint64_t n)
{
  CLEANUP_FREE uint8_t *bytes = calloc (1, LARGE);
  const size_t first = n * (NR_SMALL + 1);
  struct bp_import *import;
  bool is_new;

  CHECK (bp_import_begin (&import, target,
                          n % 3 ? BP_CODEC_ZSTD : BP_CODEC_RAW, NULL) == 0);
  for (size_t i = 0; i < NR_SMALL; i++) {
    fill (bytes, SMALL, first + i);
    CHECK (bp_import_add_segment (import, bytes, SMALL, &roots[first + i],
                                  &is_new, NULL) == 0);
    CHECK (is_new);
  }
  fill (bytes, LARGE, first + NR_SMALL);
  CHECK (bp_import_add_blob (import, LARGE, read_memory, bytes,
                             &roots[first + NR_SMALL], &is_new, NULL) == 0);
  CHECK (bp_import_commit (import, NULL, NULL) == 0);
  bp_import_free (import);
}

static void
read_blob (const struct bp_root *root, uint8_t *buf)
{
  struct bp_blob *blob;
  struct bp_error err;
  const int r = bp_store_open_blob (store, root, &blob, &err);
  uint64_t size;

  if (r < 0)
    fprintf (stderr, "%s\n", err.msg);
  CHECK (r == 0);
  size = bp_blob_get_info (blob)->size;
  for (uint64_t at = 0; at < size; at += BP_WINDOW_SIZE) {
    const size_t len = size - at < BP_WINDOW_SIZE ? size - at
                                                  : BP_WINDOW_SIZE;

    CHECK (bp_blob_read_verified (blob, buf, len, at, NULL) == 0);
  }
  bp_blobs_will_need (&blob, 1);
  bp_blob_close (blob);
}

static void *
reader (void *arg)
{
  CLEANUP_FREE uint8_t *buf = malloc (BP_WINDOW_SIZE);
  unsigned seed = (unsigned) (uintptr_t) arg;
  struct bp_root absent = { .bytes = { (uint8_t) seed } };

  for (unsigned i = 0; i < READS || !atomic_load (&done); i++) {
    const size_t count = atomic_load (&nr_roots);
    struct bp_blob *blob;

    read_blob (&roots[(unsigned) rand_r (&seed) % count], buf);
    /* Absent: every pack is asked, filters come, packs are looked for. */
    if (i % 8 == 0)
      CHECK (bp_store_open_blob (store, &absent, &blob, NULL) == -ENOENT);
  }
  return NULL;
}

static int
remove_path (const char *name, const struct stat *st, int type,
             struct FTW *ftw)
{
  (void) st;
  (void) type;
  (void) ftw;
  return remove (name);
}

int
main (void)
{
  pthread_t threads[NR_READERS];
  struct bp_store *other;

  snprintf (parent, sizeof parent, "/tmp/test-readers.XXXXXX");
  CHECK (mkdtemp (parent) != NULL);
  snprintf (path, sizeof path, "%s/s", parent);
  CHECK (bp_store_open (&store, path, BP_STORE_CREATE, NULL) == 0);
  CHECK (bp_store_open (&other, path, BP_STORE_WRITE, NULL) == 0);
  import_some (store, 0);
  atomic_store (&nr_roots, NR_SMALL + 1);

  for (uintptr_t i = 0; i < NR_READERS; i++)
    CHECK (pthread_create (&threads[i], NULL, reader, (void *) (i + 1)) == 0);
  for (uint64_t n = 1; n < NR_IMPORTS; n++) {
    import_some (n % 2 ? store : other, n);
    atomic_store (&nr_roots, (n + 1) * (NR_SMALL + 1));
  }
  atomic_store (&done, true);
  for (size_t i = 0; i < NR_READERS; i++)
    CHECK (pthread_join (threads[i], NULL) == 0);

  bp_store_close (other);
  bp_store_close (store);
  nftw (parent, remove_path, 8, FTW_DEPTH | FTW_PHYS);
  return 0;
}
