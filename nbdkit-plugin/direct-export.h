/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the plugin serves without the daemon: an image by TAG or ROOT, and
 * a blob by blob/ROOT.  Read-only, and every byte verified here before a
 * client gets it.
 *
 * Threads: any.
 */
#ifndef BP_DIRECT_EXPORT_H
#define BP_DIRECT_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/store.h"
#include "nbdkit-plugin/window-cache.h"

struct direct_export;

/* Open the export NAME.  STORE and CACHE are borrowed until it is closed.
 * Returns 0; -ENOENT for a name that is none; -EPROTO for a tag that
 * differs from its index; or why the store could not be read.
 */
int direct_export_open (struct direct_export **ret_export,
                        struct bp_store *store, struct window_cache *cache,
                        const char *name, struct bp_error *err);
void direct_export_close (struct direct_export *export);

uint64_t direct_export_size (const struct direct_export *export);
bool direct_export_is_image (const struct direct_export *export);
/* The image index or the blob. */
const struct bp_root *
direct_export_root (const struct direct_export *export);

/* COUNT bytes at OFFSET; nbdkit has checked that they are inside. */
int direct_export_read (struct direct_export *export, void *buf,
                        uint32_t count, uint64_t offset,
                        struct bp_error *err);

/* Tell FN the runs of an image in COUNT bytes from OFFSET on, each inside
 * that range; only those of one kind from the start if IS_ONE.  A FN that
 * returns non-zero ends it with -ENOMEM.
 */
typedef int (*direct_extent_fn) (void *opaque, uint64_t offset,
                                 uint64_t len, bool is_hole);
int direct_export_extents (struct direct_export *export, uint32_t count,
                           uint64_t offset, bool is_one,
                           direct_extent_fn fn, void *opaque,
                           struct bp_error *err);

/* COUNT bytes of an image at OFFSET will be read soon. */
int direct_export_will_need (struct direct_export *export, uint32_t count,
                             uint64_t offset, struct bp_error *err);

/* The one image of STORE into RET_TAG, or -ENOENT if it holds none or
 * several.
 */
int direct_find_only_tag (struct bp_store *store, struct bp_tag *ret_tag,
                          struct bp_error *err);

#endif /* BP_DIRECT_EXPORT_H */
