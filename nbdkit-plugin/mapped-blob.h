/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A blob that a session has open under a key, and reads of its bytes.
 *
 * Bytes are unverified: whoever asked for them verifies them.
 *
 * Threads: any; a reader holds a reference.
 */
#ifndef BP_MAPPED_BLOB_H
#define BP_MAPPED_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/store.h"
#include "nbdkit-plugin/recording-log.h"

struct mapped_blob;

/* Takes ownership of BLOB on success.  The caller has one reference. */
int mapped_blob_new (struct mapped_blob **ret_mapped, uint64_t key,
                     struct bp_blob *blob);
struct mapped_blob *mapped_blob_ref (struct mapped_blob *mapped);
/* Accepts NULL. */
void mapped_blob_unref (struct mapped_blob *mapped);

static inline void
cleanup_mapped_blob (struct mapped_blob **mapped)
{
  mapped_blob_unref (*mapped);
}
#define CLEANUP_MAPPED_BLOB __attribute__ ((cleanup (cleanup_mapped_blob)))

uint64_t mapped_blob_key (const struct mapped_blob *mapped);
/* Borrowed. */
struct bp_blob *mapped_blob_get (const struct mapped_blob *mapped);

/* Read LEN bytes at OFFSET of the decoded or the stored form.  The
 * windows that the read covers are logged before it is issued.  Returns
 * 0; -EINVAL for a range that is not inside; -ENOMEM; or an I/O error.
 */
int mapped_blob_read (struct mapped_blob *mapped,
                      struct recording_set *recordings, void *buf,
                      size_t len, uint64_t offset, bool is_stored,
                      struct bp_error *err);

/* The windows FIRST to LAST that LEN > 0 bytes at OFFSET, a range inside
 * that form, belong to.
 */
int mapped_blob_windows (struct mapped_blob *mapped, uint64_t offset,
                         uint64_t len, bool is_stored, uint64_t *ret_first,
                         uint64_t *ret_last, struct bp_error *err);

#endif /* BP_MAPPED_BLOB_H */
