/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the files of the store share (store.c, store-*.c).
 *
 * Lock order: store->lock before store_pack->lock before the locks of the
 * piece cache and the frame pool.  The store's lock *file* is taken with
 * none of them held.
 */
#ifndef BP_STORE_INTERNAL_H
#define BP_STORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/frame-pool.h"
#include "lib/pack.h"
#include "lib/piece-cache.h"
#include "lib/root-filter.h"
#include "lib/store.h"

enum {
  STORE_FILE_NAME_SIZE = 192, /* Of any file of a store, with NUL. */
  STORE_ID_SIZE = 33,         /* 32 random hex digits and NUL. */
};

struct pack_list;

struct bp_store {
  int dirfd;    /* The store's directory. */
  int packs_fd; /* Its packs/. */
  char *path;
  enum bp_store_mode mode;
  struct bp_piece_cache *pieces;
  struct frame_pool frames;

  _Atomic unsigned nr_open_packs; /* Of the packs below; for trimming. */
  pthread_mutex_t lock;           /* Protects the rest. */
  struct pack_list *list;         /* Known packs; never NULL. */
  uint64_t scanned_ns;            /* When packs/ was last read … */
  struct timespec packs_mtime;    /* … and had last changed then. */
};

/* ---- store.c ---- */

/* Write 32 random hex digits. */
int store_new_id (char id[STORE_ID_SIZE], struct bp_error *err);

/* "DIR/NAME" and SUFFIX, which always fit, into OUT.  Returns OUT. */
char *store_path (char out[STORE_FILE_NAME_SIZE], const char *dir,
                  const char *name, const char *suffix);

/* -EROFS unless the store may be written to. */
int store_check_writable (const struct bp_store *store,
                          struct bp_error *err);

/* Whether there is a lock file: what makes a directory a store. */
bool store_has_lock (const struct bp_store *store);

/* Call FN for each name in the directory at PATH beneath the store, "."
 * and ".." left out, in byte order.  A non-zero return stops the walk and
 * is passed on.
 */
typedef int (*store_name_fn) (void *opaque, const char *name);
int store_each_name (const struct bp_store *store, const char *path,
                     store_name_fn fn, void *opaque, struct bp_error *err);

/* If NAME is STEM and SUFFIX, copy the stem to OUT and return true. */
bool store_split_name (const char *name, const char *suffix,
                       char out[STORE_FILE_NAME_SIZE]);

/* ---- store-lock.c ---- */

/* The lock file, held.  fd == -1: not. */
struct store_lock {
  int fd;
};
void store_unlock (struct store_lock *lock);
#define CLEANUP_STORE_LOCK __attribute__ ((cleanup (store_unlock)))

/* Wait for the lock file and sweep what killed writers left in tmp/. */
int store_lock (struct bp_store *store, struct store_lock *lock,
                struct bp_error *err);

/* Take COUNT object ids: durable when this returns. */
int store_take_object_ids (struct store_lock *lock, uint64_t count,
                           uint64_t *ret_first, struct bp_error *err);

/* Write the lock file of a new store, whole or not at all. */
int store_create_lock (struct bp_store *store, struct bp_error *err);

/* Replace the file PATH of the store atomically and durably.  Called with
 * the lock file held: any plain file in tmp/ is then nobody else's.
 */
int store_replace_file (struct bp_store *store, const char *path,
                        const void *data, size_t len, struct bp_error *err);

/* ---- store-packs.c ---- */

/* A pack of a list.  Its descriptor is open while somebody uses it, and
 * as long after as the store can spare it.
 */
struct store_pack {
  _Atomic unsigned refs; /* Lists and blobs. */
  struct bp_store *store;
  int dirfd; /* Borrowed from the store or the import; where name is. */

  pthread_mutex_t lock;          /* Protects the rest. */
  struct bp_pack *pack;          /* NULL: not open. */
  unsigned users;                /* While not 0, pack stays open. */
  struct bp_error damage;        /* code != 0: why it could not be opened … */
  uint64_t damaged_ns;           /* … when that was last tried. */
  unsigned nr_vain;              /* Lookups that found nothing. */
  struct bp_root_filter *filter; /* After enough of these; never freed
                                    before the pack. */
  char name[STORE_FILE_NAME_SIZE];
};

/* Packs at one moment.  Immutable; held by reference. */
struct pack_list {
  _Atomic unsigned refs;
  _Atomic size_t last_hit; /* Where the last root was found: a hint. */
  size_t count;
  struct store_pack *packs[]; /* Each holds a reference; sorted by name. */
};

int store_pack_new (struct store_pack **ret_pack, struct bp_store *store,
                    int dirfd, const char *name);
void store_pack_unref (struct store_pack *pack);

/* Open PACK if it is not, and keep it so until store_pack_release.
 * Returns 0; -ENOENT: it has been removed.
 */
int store_pack_acquire (struct store_pack *pack, struct bp_pack **ret_pack,
                        struct bp_error *err);
void store_pack_release (struct store_pack *pack);

/* Close PACK's descriptor if nobody uses it. */
void store_pack_close_idle (struct store_pack *pack);

/* Look ROOT up.  On success the pack is acquired. */
int store_pack_find (struct store_pack *pack, const struct bp_root *root,
                     struct bp_pack_entry *ret_entry, struct bp_error *err);

int store_packs_init (struct bp_store *store, struct bp_error *err);
void store_packs_done (struct bp_store *store);

/* Look for new packs now. */
int store_packs_rescan (struct bp_store *store, struct bp_error *err);

struct pack_list *store_packs_get (struct bp_store *store);
void pack_list_unref (struct pack_list *list);

/* The pack that holds ROOT, acquired and with a reference; -ENOENT, or
 * what is wrong with a pack that might have held it.  RESCAN: look for
 * new packs if no known one has it: when packs/ has changed, but at least
 * (for file systems that do not tell) once a second.
 */
int store_packs_find (struct bp_store *store, const struct bp_root *root,
                      bool rescan, struct store_pack **ret_pack,
                      struct bp_pack_entry *ret_entry, struct bp_error *err);

/* ---- store-blob.c ---- */

/* An open blob from an entry of PACK, which is acquired and referenced
 * for it.
 */
int store_blob_new (struct bp_blob **ret_blob, struct store_pack *pack,
                    const struct bp_pack_entry *entry, struct bp_error *err);

/* ---- store-profiles.c ---- */

/* Remove the attached profile of the image ROOT, if there is one.  Called
 * with the lock file held.
 */
int store_remove_attached_profile (struct bp_store *store,
                                   const struct bp_root *root,
                                   struct bp_error *err);

#endif /* BP_STORE_INTERNAL_H */
