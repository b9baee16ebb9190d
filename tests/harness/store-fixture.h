/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* For unit tests of lib/store: a store in a directory of its own, and the
 * steps of an import that must succeed.
 */
#ifndef BP_STORE_FIXTURE_H
#define BP_STORE_FIXTURE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "lib/store.h"

/* A store in a directory of its own. */
struct fixture {
  char parent[64];
  char path[80];
  struct bp_store *store;
};
static struct fixture f;

static inline int
remove_path (const char *path, const struct stat *st, int type,
             struct FTW *ftw)
{
  (void) st;
  (void) type;
  (void) ftw;
  return remove (path);
}

static inline void
setup (void)
{
  snprintf (f.parent, sizeof f.parent, "/tmp/test-store.XXXXXX");
  cr_assert_not_null (mkdtemp (f.parent));
  snprintf (f.path, sizeof f.path, "%s/s", f.parent);
  cr_assert_eq (bp_store_open (&f.store, f.path, BP_STORE_CREATE, NULL), 0);
}

static inline void
teardown (void)
{
  bp_store_close (f.store);
  nftw (f.parent, remove_path, 8, FTW_DEPTH | FTW_PHYS);
}

/* "STORE/NAME", in one of a few static buffers. */
static inline const char *
in_store (const char *name)
{
  static char paths[4][256];
  static unsigned next;
  char *path = paths[next++ % 4];

  snprintf (path, sizeof paths[0], "%s/%s", f.path, name);
  return path;
}

static inline struct bp_import *
begin (enum bp_codec codec)
{
  struct bp_import *import;
  struct bp_error err;

  cr_assert_eq (bp_import_begin (&import, f.store, codec, &err), 0, "%s",
                err.msg);
  return import;
}

static inline struct bp_root
add_segment (struct bp_import *import, const void *data, uint32_t len,
             bool wanted_new)
{
  struct bp_root root;
  bool is_new;

  cr_assert_eq (bp_import_add_segment (import, data, len, &root, &is_new,
                                       NULL),
                0);
  cr_assert_eq (is_new, wanted_new);
  return root;
}

static inline void
commit (struct bp_import *import, const struct bp_tag *tag)
{
  struct bp_error err;

  cr_assert_eq (bp_import_commit (import, tag, &err), 0, "%s", err.msg);
  bp_import_free (import);
}

static inline struct bp_tag
tag_named (const char *name, const struct bp_root *root)
{
  struct bp_tag tag = { .root = *root, .size = 4096 };

  snprintf (tag.name, sizeof tag.name, "%s", name);
  return tag;
}

#endif /* BP_STORE_FIXTURE_H */
