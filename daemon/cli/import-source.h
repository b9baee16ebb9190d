/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What import reads: a file, a block device, or an NBD export, from its
 * start to its end, with its holes told and not read.
 */
#ifndef BP_IMPORT_SOURCE_H
#define BP_IMPORT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

/* Takes the source, piece by piece; a negative return stops it and is
 * passed on, with ERR filled in.
 */
struct import_sink {
  int (*data) (void *opaque, const void *data, size_t len,
               struct bp_error *err);
  int (*hole) (void *opaque, uint64_t len, struct bp_error *err);
  void *opaque;
};

struct import_source;

/* A kind of source. */
struct import_source_ops {
  int (*read) (struct import_source *source, const struct import_sink *sink,
               struct bp_error *err);
  void (*close) (struct import_source *source);
};

/* The beginning of every source. */
struct import_source {
  const struct import_source_ops *ops;
  const char *what; /* As the user named it; borrowed. */
  uint64_t size;    /* Bytes, fixed when it was opened. */
};

bool is_nbd_uri (const char *what);

/* Open WHAT.  IS_RAW: a file that looks like a container of a disk is
 * taken as it is; otherwise -EOPNOTSUPP, with the name of its format in
 * *RET_FORMAT.
 */
int import_source_open (struct import_source **ret_source, const char *what,
                        bool is_raw, const char **ret_format,
                        struct bp_error *err);

/* Give all of it to SINK, in order. */
int import_source_read (struct import_source *source,
                        const struct import_sink *sink,
                        struct bp_error *err);

void import_source_close (struct import_source *source);

/* The name that the image gets by default, from WHAT alone: the base name
 * without its last suffix, or the export name of an NBD URI.  The caller
 * frees it; NULL: there is none.
 */
char *import_source_default_name (const char *what);

/* import-file.c, import-nbd.c */
int import_file_open (struct import_source **ret_source, const char *what,
                      bool is_raw, const char **ret_format,
                      struct bp_error *err);
int import_nbd_open (struct import_source **ret_source, const char *uri,
                     struct bp_error *err);
char *import_nbd_export_name (const char *uri);

#endif /* BP_IMPORT_SOURCE_H */
