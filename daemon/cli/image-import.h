/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* From a source to an image: segments, index, tag. */
#ifndef BP_IMAGE_IMPORT_H
#define BP_IMAGE_IMPORT_H

#include "daemon/cli/import-source.h"
#include "lib/store.h"

/* Import SOURCE into STORE as TAG, of which name and source are set; the
 * rest is filled in.  PROGRESS may be NULL.
 */
int image_import (struct bp_store *store, struct import_source *source,
                  enum bp_codec codec, struct bp_tag *tag,
                  bp_progress_fn progress, void *opaque,
                  struct bp_error *err);

#endif /* BP_IMAGE_IMPORT_H */
