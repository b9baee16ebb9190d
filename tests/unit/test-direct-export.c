/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Direct exports: what is said of a range never leaves it (a server was
 * once brought down by extents that did), and what lies in it is read.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/base/bytes.h"
#include "lib/image-index.h"
#include "nbdkit-plugin/direct-export.h"

/*  0        64 K          1 M        1 M + 64 K       3 M + 5
 *  │ segment │   hole      │ segment  │     hole       │
 */
enum {
  SEGMENT = 64 << 10,
  SECOND = 1 << 20,
  IMAGE_SIZE = (3 << 20) + 5,
};

static char dir[] = "/tmp/bp.XXXXXX";
static struct bp_store *store;
static struct window_cache *cache;
static struct bp_root index_root;
static uint8_t data[SEGMENT];

static int
give_index (void *opaque, uint64_t offset, void *buf, size_t len,
            struct bp_error *err)
{
  return bp_index_writer_read (opaque, offset, buf, len, err);
}

static void
add_image (void)
{
  struct bp_index_writer *writer;
  struct bp_import *import;
  struct bp_index index;
  struct bp_root root;
  bool is_new;
  int spool;

  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (uint8_t) (i * i >> 3 | 1);
  cr_assert_eq (bp_import_begin (&import, store, BP_CODEC_ZSTD, NULL), 0);
  cr_assert_eq (
    bp_import_add_segment (import, data, SEGMENT, &root, &is_new, NULL), 0);
  spool = bp_import_spool (import, NULL);
  cr_assert_geq (spool, 0);
  cr_assert_eq (bp_index_writer_new (&writer, spool), 0);
  cr_assert_eq (bp_index_writer_add (writer, 0, SEGMENT, &root, NULL), 0);
  cr_assert_eq (bp_index_writer_add (writer, SECOND, SEGMENT, &root, NULL),
                0);
  cr_assert_eq (bp_index_writer_finish (writer, IMAGE_SIZE, &index, NULL),
                0);
  cr_assert_eq (bp_import_add_blob (import, index.blob_size, give_index,
                                    writer, &index_root, &is_new, NULL),
                0);
  cr_assert_eq (bp_import_commit (import, NULL, NULL), 0);
  bp_index_writer_free (writer);
  close (spool);
  bp_import_free (import);
}

static void
set_up (void)
{
  cr_assert_not_null (mkdtemp (dir));
  cr_assert_eq (bp_store_open (&store, dir, BP_STORE_CREATE, NULL), 0);
  add_image ();
  cr_assert_eq (window_cache_new (&cache), 0);
}

static void
tear_down (void)
{
  char command[64];

  window_cache_free (cache);
  bp_store_close (store);
  snprintf (command, sizeof command, "rm -rf %s", dir);
  cr_assert_eq (system (command), 0);
}

TestSuite (direct_export, .init = set_up, .fini = tear_down);

static struct direct_export *
open_image (void)
{
  struct direct_export *export;
  char name[BP_ROOT_HEX_SIZE];

  bp_root_format (&index_root, name);
  cr_assert_eq (direct_export_open (&export, store, cache, name, NULL), 0);
  cr_assert_eq (direct_export_size (export), IMAGE_SIZE);
  return export;
}

static int
append_extent (void *opaque, uint64_t offset, uint64_t len, bool is_hole)
{
  char *text = opaque;

  sprintf (text + strlen (text), "%llu+%llu%s ", (unsigned long long) offset,
           (unsigned long long) len, is_hole ? "h" : "d");
  return 0;
}

static void
expect_extents (struct direct_export *export, uint32_t count,
                uint64_t offset, bool is_one, const char *wanted)
{
  char got[1000] = "";

  cr_assert_eq (direct_export_extents (export, count, offset, is_one,
                                       append_extent, got, NULL),
                0);
  cr_assert_str_eq (got, wanted);
}

Test (direct_export, tells_extents_inside_the_range_only)
{
  struct direct_export *export = open_image ();

  expect_extents (export, 1000, 100, false, "100+1000d ");
  expect_extents (export, 1000, 70000, false, "70000+1000h ");
  expect_extents (export, 2, 65535, false, "65535+1d 65536+1h ");
  expect_extents (export, 2, 65535, true, "65535+1d ");
  expect_extents (export, SECOND + 1, 65536, true, "65536+983040h ");
  expect_extents (export, UINT32_MAX, 0, false,
                  "0+65536d 65536+983040h 1048576+65536d 1114112+2031621h ");
  expect_extents (export, UINT32_MAX, IMAGE_SIZE - 1, false, "3145732+1h ");
  expect_extents (export, 512, IMAGE_SIZE, false, "");
  direct_export_close (export);
}

Test (direct_export, reads_across_segments_and_holes_to_the_exact_end)
{
  struct direct_export *export = open_image ();
  uint8_t *all = malloc (IMAGE_SIZE);

  cr_assert_eq (direct_export_read (export, all, IMAGE_SIZE, 0, NULL), 0);
  cr_assert_eq (memcmp (all, data, SEGMENT), 0);
  cr_assert (bytes_are_zero (all + SEGMENT, SECOND - SEGMENT));
  cr_assert_eq (memcmp (all + SECOND, data, SEGMENT), 0);
  cr_assert (bytes_are_zero (all + SECOND + SEGMENT,
                             IMAGE_SIZE - SECOND - SEGMENT));

  cr_assert_eq (direct_export_read (export, all, 10, SECOND - 5, NULL), 0);
  cr_assert (bytes_are_zero (all, 5));
  cr_assert_eq (memcmp (all + 5, data, 5), 0);
  cr_assert_eq (direct_export_read (export, all, 2, IMAGE_SIZE - 1, NULL),
                -EINVAL);
  cr_assert_eq (direct_export_will_need (export, IMAGE_SIZE, 0, NULL), 0);
  free (all);
  direct_export_close (export);
}

Test (direct_export, is_no_image_where_the_blob_is_no_index)
{
  struct direct_export *export;
  struct bp_import *import;
  char name[BP_ROOT_HEX_SIZE];
  struct bp_root root;
  bool is_new;

  cr_assert_eq (bp_import_begin (&import, store, BP_CODEC_RAW, NULL), 0);
  cr_assert_eq (
    bp_import_add_segment (import, data, 5000, &root, &is_new, NULL), 0);
  cr_assert_eq (bp_import_commit (import, NULL, NULL), 0);
  bp_import_free (import);
  bp_root_format (&root, name);
  cr_assert_eq (direct_export_open (&export, store, cache, name, NULL),
                -EPROTO);
  cr_assert_eq (direct_export_open (&export, store, cache, "", NULL),
                -ENOENT);
}
