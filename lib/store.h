/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The directory store (blobpager-store(5)):
 *
 *   STORE/packs/ID.pack      blobs
 *   STORE/images/NAME.json   tags
 *   STORE/profiles/…         profiles and their names
 *   STORE/tmp/               what is being written
 *   STORE/lock               held by who changes names or takes object
 *                            ids; holds the next object id
 *
 * A name appears whole or not at all, after everything it needs has been
 * synced; whatever a killed writer left is in tmp/ and swept by the next
 * one.  Readers take no lock.  Everything is opened beneath the store's
 * directory, following no links.
 *
 * Bytes that come out of here are unverified unless a function says so.
 *
 * Threads: a store and its blobs may be used by many threads; an import
 * belongs to one.
 */
#ifndef BP_STORE_H
#define BP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/image-index.h"
#include "lib/merkle.h"
#include "lib/pack.h"
#include "lib/tag.h"

struct bp_store;

enum bp_store_mode {
  BP_STORE_READ,   /* Must exist; nothing can be written. */
  BP_STORE_WRITE,  /* Must exist. */
  BP_STORE_CREATE, /* Made if absent or an empty directory. */
};

/* Returns 0; -ENOENT, -ENOTDIR, -EPROTO (a directory that is no store). */
int bp_store_open (struct bp_store **ret_store, const char *path,
                   enum bp_store_mode mode, struct bp_error *err);
void bp_store_close (struct bp_store *store);

/* ---- Blobs ---- */

/* An open blob.  Holds its pack open, so that a removal elsewhere does
 * not take its bytes away.  At most a few descriptors per pack, however
 * many blobs.
 */
struct bp_blob;

struct bp_blob_info {
  struct bp_root root;
  uint64_t object_id;
  uint64_t size;        /* Bytes, as the pack says. */
  uint64_t stored_size; /* Bytes. */
  enum bp_codec codec;
};

/* Returns 0; -ENOENT (no known pack has it; packs are looked for anew at
 * most once a second), -EBADMSG or -EPROTO (its table is damaged).
 */
int bp_store_open_blob (struct bp_store *store, const struct bp_root *root,
                        struct bp_blob **ret_blob, struct bp_error *err);
void bp_blob_close (struct bp_blob *blob);
const struct bp_blob_info *bp_blob_get_info (const struct bp_blob *blob);

/* LEN decoded bytes at OFFSET (inside the blob).  A frame that does not
 * decode reads as zeros: the digest will say so.
 */
int bp_blob_read (struct bp_blob *blob, void *buf, size_t len,
                  uint64_t offset, struct bp_error *err);

/* LEN stored bytes at OFFSET (inside the stored form). */
int bp_blob_read_stored (struct bp_blob *blob, void *buf, size_t len,
                         uint64_t offset, struct bp_error *err);

/* COUNT digests from FIRST on of LEVEL's list into OUT (32 bytes each).
 * -EINVAL outside the tree.
 */
int bp_blob_read_tree (struct bp_blob *blob, unsigned level, uint64_t first,
                       uint32_t count, uint8_t *out, struct bp_error *err);

/* The stored sizes of COUNT windows from FIRST on.  For a blob of one
 * window or of codec raw they follow from the sizes.
 */
int bp_blob_read_frames (struct bp_blob *blob, uint64_t first,
                         uint32_t count, uint32_t *out,
                         struct bp_error *err);

/* COUNT blobs will be read soon: posix_fadvise over each run of
 * neighbours, in pack order.  BLOBS is sorted in place.
 */
void bp_blobs_will_need (struct bp_blob **blobs, size_t count);

/* Read the window at OFFSET (a multiple of BP_WINDOW_SIZE) of BLOB into
 * BUF, its LEN bytes, and verify it in BUF.  Returns 0, -EBADMSG, or an
 * I/O error.
 */
int bp_blob_read_verified (struct bp_blob *blob, void *buf, size_t len,
                           uint64_t offset, struct bp_error *err);

/* ---- Tags ---- */

int bp_store_get_tag (struct bp_store *store, const char *name,
                      struct bp_tag *ret_tag, struct bp_error *err);

/* All tags in byte order of name; the caller frees *ret_tags.  A tag file
 * that cannot be decoded is left out and counted in *ret_nr_bad (may be
 * NULL).
 */
int bp_store_list_tags (struct bp_store *store, struct bp_tag **ret_tags,
                        size_t *ret_count, size_t *ret_nr_bad,
                        struct bp_error *err);

/* Remove a tag; an attached profile of its image goes with the last tag
 * that names it.
 */
int bp_store_remove_tag (struct bp_store *store, const char *name,
                         struct bp_error *err);

/* ---- Profiles ---- */

enum {
  BP_PROFILE_META_MAX = 64 << 10
}; /* Bytes of metadata JSON. */

/* META is a JSON object with at least kind ("blob" or "file"), root and
 * records.  Both results are the caller's to free (META ends with NUL).
 * Returns 0; -ENOENT; -EINVAL for one of kind "file" when !ANY_KIND;
 * -EBADMSG for bytes that are not their root or metadata that cannot be
 * decoded; -ERANGE.
 */
int bp_store_get_profile (struct bp_store *store, const char *name,
                          bool any_kind, char **ret_meta,
                          uint8_t **ret_data, size_t *ret_len,
                          struct bp_error *err);

/* Replace NAME atomically.  kind, root and records in META are set here
 * from DATA (kind stays what META says, "blob" if absent).
 */
int bp_store_put_profile (struct bp_store *store, const char *name,
                          const char *meta, size_t meta_len,
                          const uint8_t *data, size_t len,
                          struct bp_error *err);

/* Store COUNTERS (a JSON object) as NAME's "last_replay", if NAME is
 * still the profile ROOT; otherwise nothing happens.
 */
int bp_store_profile_used (struct bp_store *store, const char *name,
                           const struct bp_root *root, const char *counters,
                           size_t len, struct bp_error *err);

/* {"profiles":[{"name":…, …metadata}, …]} in byte order; a damaged one
 * has "damaged":true.  The caller frees *ret_json.
 */
int bp_store_list_profiles (struct bp_store *store, char **ret_json,
                            struct bp_error *err);

/* Metadata too damaged to read is deleted all the same. */
int bp_store_delete_profile (struct bp_store *store, const char *name,
                             struct bp_error *err);

/* ---- Import ---- */

struct bp_import;

/* Start adding blobs.  Takes the store's lock only while it changes
 * names; sweeps leftovers of killed imports.
 */
int bp_import_begin (struct bp_import **ret_import, struct bp_store *store,
                     enum bp_codec codec, struct bp_error *err);

/* Add a blob of at most BP_WINDOW_SIZE bytes whose root the import
 * computes.  *RET_IS_NEW says whether the store lacked it.
 */
int bp_import_add_segment (struct bp_import *import, const void *data,
                           uint32_t len, struct bp_root *ret_root,
                           bool *ret_is_new, struct bp_error *err);

/* Add a blob of SIZE bytes of any size up to BP_BLOB_MAX_SIZE, read in
 * windows through READ (called in order, with LEN bytes to fill).
 */
typedef int (*bp_import_read_fn) (void *opaque, uint64_t offset, void *buf,
                                  size_t len, struct bp_error *err);
int bp_import_add_blob (struct bp_import *import, uint64_t size,
                        bp_import_read_fn read, void *opaque,
                        struct bp_root *ret_root, bool *ret_is_new,
                        struct bp_error *err);

/* A new empty file beneath tmp/, already unlinked: for spooling.
 * Returns a descriptor or a negative errno.
 */
int bp_import_spool (struct bp_import *import, struct bp_error *err);

/* Bytes that the import has added to packs. */
uint64_t bp_import_stored (const struct bp_import *import);

/* Make every added blob durable and visible, then TAG (NULL: no tag)
 * last, replacing one of its name.
 */
int bp_import_commit (struct bp_import *import, const struct bp_tag *tag,
                      struct bp_error *err);

/* Without commit: nothing stays. */
void bp_import_free (struct bp_import *import);

/* ---- Images ---- */

/* What the index ROOT says of its image; its first window is verified.
 * Returns 0; -EPROTO for a blob that is no image index; what
 * bp_store_open_blob and bp_blob_read_verified return.
 */
int bp_store_read_index (struct bp_store *store, const struct bp_root *root,
                         struct bp_index *ret_index, struct bp_error *err);

/* ---- Whole-store walks ---- */

/* Called once for each blob that is corrupt (-EBADMSG), missing (-ENOENT),
 * not what an index says of it (-EPROTO), or cannot be read.  IMAGE (NULL:
 * none that is known) places it first at OFFSET.  Also called, with ROOT
 * NULL, for what is no blob: a pack, tag or profile that is damaged, which
 * WHY names.  Return non-zero to stop.
 */
typedef int (*bp_verify_fn) (void *opaque, const struct bp_root *root,
                             const char *image, uint64_t offset, int code,
                             const char *why);
/* Progress in bytes; may be NULL. */
typedef void (*bp_progress_fn) (void *opaque, uint64_t done,
                                uint64_t total);

/* Verify every blob that the image NAME places, and the index itself.
 * Returns 0 if the walk finished (whatever it found).
 */
int bp_store_verify_image (struct bp_store *store, const char *name,
                           bp_verify_fn fn, bp_progress_fn progress,
                           void *opaque, struct bp_error *err);

/* Verify every pack, table and blob, every tag and every profile. */
int bp_store_verify_all (struct bp_store *store, bp_verify_fn fn,
                         bp_progress_fn progress, void *opaque,
                         struct bp_error *err);

#endif /* BP_STORE_H */
