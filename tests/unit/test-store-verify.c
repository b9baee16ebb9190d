/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* lib/store-verify: what is wrong with a store is told, once, with its
 * name and place.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/image-index.h"
#include "lib/store.h"

enum {
  NR_SEGMENTS = 6000, /* Three windows of index. */
  SEGMENT = 4096,
};

/* One finding. */
struct finding {
  struct bp_root root;
  bool has_root;
  char image[BP_NAME_SIZE];
  uint64_t offset;
  int code;
  char why[200];
};

struct fixture {
  char parent[64];
  char path[80];
  struct bp_store *store;
  struct bp_root roots[NR_SEGMENTS];
  struct bp_root index;
  struct finding findings[8];
  unsigned nr_findings;
};
static struct fixture f;

static int
remove_path (const char *path, const struct stat *st, int type,
             struct FTW *ftw)
{
  (void) st;
  (void) type;
  (void) ftw;
  return remove (path);
}

static int
read_index (void *opaque, uint64_t offset, void *buf, size_t len,
            struct bp_error *err)
{
  return bp_index_writer_read (opaque, offset, buf, len, err);
}

/* Segments 2, 4, 6 … of an image named IMAGE: even blocks are data, odd
 * ones holes.  Its blobs go in one pack, its index in another.
 */
static void
import_image (const char *image, uint64_t tag_size)
{
  struct bp_tag tag = { .size = tag_size };
  struct bp_index_writer *writer;
  struct bp_import *import;
  struct bp_index index;
  bool is_new;
  int spool;

  cr_assert_eq (bp_import_begin (&import, f.store, BP_CODEC_RAW, NULL), 0);
  spool = bp_import_spool (import, NULL);
  cr_assert_eq (bp_index_writer_new (&writer, spool), 0);
  for (uint64_t i = 0; i < NR_SEGMENTS; i++) {
    uint8_t block[SEGMENT] = { 1 };

    put_le64 (block + 8, i);
    cr_assert_eq (bp_import_add_segment (import, block, SEGMENT, &f.roots[i],
                                         &is_new, NULL),
                  0);
    cr_assert_eq (bp_index_writer_add (writer, 2 * i * SEGMENT, SEGMENT,
                                       &f.roots[i], NULL),
                  0);
  }
  cr_assert_eq (bp_import_commit (import, NULL, NULL), 0);
  cr_assert_eq (
    bp_index_writer_finish (writer, UINT64_C (2) * NR_SEGMENTS * SEGMENT,
                            &index, NULL),
    0);
  bp_import_free (import);

  cr_assert_eq (bp_import_begin (&import, f.store, BP_CODEC_RAW, NULL), 0);
  cr_assert_eq (bp_import_add_blob (import, index.blob_size, read_index,
                                    writer, &f.index, &is_new, NULL),
                0);
  tag.root = f.index;
  snprintf (tag.name, sizeof tag.name, "%s", image);
  cr_assert_eq (bp_import_commit (import, &tag, NULL), 0);
  bp_import_free (import);
  bp_index_writer_free (writer);
  close (spool);
}

static const uint64_t image_size = UINT64_C (2) * NR_SEGMENTS * SEGMENT;

static void
setup (void)
{
  snprintf (f.parent, sizeof f.parent, "/tmp/test-verify.XXXXXX");
  cr_assert_not_null (mkdtemp (f.parent));
  snprintf (f.path, sizeof f.path, "%s/s", f.parent);
  cr_assert_eq (bp_store_open (&f.store, f.path, BP_STORE_CREATE, NULL), 0);
}

static void
teardown (void)
{
  bp_store_close (f.store);
  nftw (f.parent, remove_path, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite (store_verify, .init = setup, .fini = teardown);

static int
note (void *opaque, const struct bp_root *root, const char *image,
      uint64_t offset, int code, const char *why)
{
  struct finding *finding;

  (void) opaque;
  cr_assert_lt (f.nr_findings, 8);
  finding = &f.findings[f.nr_findings++];
  memset (finding, 0, sizeof *finding);
  if (root) {
    finding->root = *root;
    finding->has_root = true;
  }
  snprintf (finding->image, sizeof finding->image, "%s", image ? image : "");
  snprintf (finding->why, sizeof finding->why, "%s", why);
  finding->offset = offset;
  finding->code = code;
  return 0;
}

static void
verify_all (void)
{
  struct bp_error err;

  bp_store_close (f.store);
  cr_assert_eq (bp_store_open (&f.store, f.path, BP_STORE_WRITE, NULL), 0);
  f.nr_findings = 0;
  cr_assert_eq (bp_store_verify_all (f.store, note, NULL, NULL, &err), 0);
}

static void
verify_image (const char *name)
{
  struct bp_error err;

  f.nr_findings = 0;
  cr_assert_eq (bp_store_verify_image (f.store, name, note, NULL, NULL,
                                       &err),
                0);
}

/* The path of the pack that holds at least MIN and less than MAX bytes. */
static char *
pack_of_size (off_t min, off_t max)
{
  char dir[128];
  CLEANUP_CLOSEDIR DIR *d = NULL;
  const struct dirent *entry;
  char *path = NULL;

  snprintf (dir, sizeof dir, "%s/packs", f.path);
  d = opendir (dir);
  cr_assert_not_null (d);
  while ((entry = readdir (d)) != NULL) {
    struct stat st;

    if (entry->d_name[0] == '.' ||
        fstatat (dirfd (d), entry->d_name, &st, 0) == -1 ||
        st.st_size < min || st.st_size >= max)
      continue;
    cr_assert_null (path);
    cr_assert_gt (asprintf (&path, "%s/%s", dir, entry->d_name), 0);
  }
  cr_assert_not_null (path);
  return path;
}

static char *
data_pack (void)
{
  return pack_of_size (10 << 20, 1 << 30);
}

static char *
index_pack (void)
{
  return pack_of_size (0, 10 << 20);
}

static void
flip_byte (const char *path, uint64_t offset)
{
  CLEANUP_CLOSE int fd = open (path, O_RDWR | O_CLOEXEC);
  uint8_t byte;

  cr_assert_eq (bp_pread_exact (fd, &byte, 1, offset), 0);
  byte ^= 1;
  cr_assert_eq (bp_pwrite_all (fd, &byte, 1, offset), 0);
}

/* Finding number I is about segment N of IMAGE. */
static void
assert_segment (unsigned i, const char *image, uint64_t n, int code)
{
  cr_assert_lt (i, f.nr_findings);
  cr_assert (f.findings[i].has_root);
  cr_assert (bp_root_equal (&f.findings[i].root, &f.roots[n]));
  cr_assert_str_eq (f.findings[i].image, image);
  cr_assert_eq (f.findings[i].offset, *image ? 2 * n * SEGMENT : 0);
  cr_assert_eq (f.findings[i].code, code);
}

Test (store_verify, nothing_is_told_of_a_store_in_order)
{
  import_image ("a", image_size);
  verify_all ();
  cr_assert_eq (f.nr_findings, 0, "%s", f.findings[0].why);
  verify_image ("a");
  cr_assert_eq (f.nr_findings, 0, "%s", f.findings[0].why);
}

Test (store_verify, flipped_bits_are_told_once_each_with_name_and_place)
{
  CLEANUP_FREE char *pack = NULL;

  import_image ("a", image_size);
  import_image ("b", image_size);
  pack = data_pack ();
  flip_byte (pack, 64 + 7 * SEGMENT + 100);
  flip_byte (pack, 64 + 5999 * SEGMENT);
  verify_all ();
  cr_assert_eq (f.nr_findings, 2);
  assert_segment (0, "a", 7, -EBADMSG);
  assert_segment (1, "a", 5999, -EBADMSG);
  verify_image ("b");
  cr_assert_eq (f.nr_findings, 2);
  assert_segment (0, "b", 7, -EBADMSG);
}

Test (store_verify, a_corrupt_blob_of_no_image_is_told_too)
{
  CLEANUP_FREE char *pack = NULL;

  import_image ("a", image_size);
  cr_assert_eq (bp_store_remove_tag (f.store, "a", NULL), 0);
  pack = data_pack ();
  flip_byte (pack, 64 + 7 * SEGMENT);
  verify_all ();
  cr_assert_eq (f.nr_findings, 1);
  assert_segment (0, "", 7, -EBADMSG);
}

Test (store_verify, a_bad_window_of_the_index_does_not_hide_the_others)
{
  CLEANUP_FREE char *index = NULL;
  CLEANUP_FREE char *pack = NULL;

  import_image ("a", image_size);
  index = index_pack ();
  pack = data_pack ();
  flip_byte (index, 64 + BP_WINDOW_SIZE + 4000); /* The second window. */
  flip_byte (pack, 64 + 7 * SEGMENT);            /* Placed by the first … */
  flip_byte (pack, 64 + 3000 * SEGMENT);         /* … the second … */
  flip_byte (pack, 64 + 5999 * SEGMENT);         /* … and the third. */
  verify_image ("a");
  cr_assert_eq (f.nr_findings, 3);
  assert_segment (0, "a", 7, -EBADMSG);
  cr_assert (bp_root_equal (&f.findings[1].root, &f.index));
  cr_assert_eq (f.findings[1].code, -EBADMSG);
  assert_segment (2, "a", 5999, -EBADMSG);
  verify_all ();
  cr_assert_eq (f.nr_findings, 4);
  assert_segment (3, "", 3000, -EBADMSG);
}

Test (store_verify, missing_blobs_and_a_damaged_pack_are_told_apart)
{
  CLEANUP_FREE char *index = NULL;
  CLEANUP_FREE char *pack = NULL;

  import_image ("a", image_size);
  index = index_pack ();
  pack = data_pack ();
  cr_assert_eq (unlink (index), 0);
  verify_all ();
  cr_assert_eq (f.nr_findings, 1);
  cr_assert (bp_root_equal (&f.findings[0].root, &f.index));
  cr_assert_eq (f.findings[0].code, -ENOENT);
  cr_assert_str_eq (f.findings[0].image, "a");

  cr_assert_eq (truncate (pack, 20 << 20), 0);
  verify_all ();
  cr_assert_eq (f.nr_findings, 2);
  cr_assert (!f.findings[0].has_root);
  cr_assert_eq (f.findings[0].code, -EBADMSG);
  cr_assert_neq (strstr (f.findings[0].why, ".pack'"), NULL);
}

Test (store_verify, a_tag_of_another_size_or_that_is_no_tag_is_told)
{
  char path[128];

  import_image ("a", image_size + 1);
  verify_all ();
  cr_assert_eq (f.nr_findings, 1);
  cr_assert_eq (f.findings[0].code, -EPROTO);
  snprintf (path, sizeof path, "%s/images/a.json", f.path);
  cr_assert_eq (truncate (path, 10), 0);
  verify_all ();
  cr_assert_eq (f.nr_findings, 1);
  cr_assert_eq (f.findings[0].code, -EPROTO);
  cr_assert (!f.findings[0].has_root);
}

Test (store_verify, a_tag_of_a_blob_that_is_no_index_is_told)
{
  struct bp_tag tag = { .name = "a", .size = 1 };
  struct bp_import *import;
  bool is_new;

  cr_assert_eq (bp_import_begin (&import, f.store, BP_CODEC_RAW, NULL), 0);
  cr_assert_eq (bp_import_add_segment (import, "x", 1, &tag.root, &is_new,
                                       NULL),
                0);
  cr_assert_eq (bp_import_commit (import, &tag, NULL), 0);
  bp_import_free (import);
  verify_image ("a");
  cr_assert_eq (f.nr_findings, 1);
  cr_assert_eq (f.findings[0].code, -EPROTO);
}

Test (store_verify, a_damaged_profile_is_told)
{
  static const char meta[] = "{}";
  char path[256];
  static uint8_t data[4096] = { 1 };
  struct bp_root root;
  char hex[BP_ROOT_HEX_SIZE];

  cr_assert_eq (bp_store_put_profile (f.store, "p", meta, 2, data, 4096,
                                      NULL),
                0);
  verify_all ();
  cr_assert_eq (f.nr_findings, 0);
  cr_assert_eq (bp_merkle_root (data, 4096, &root), 0);
  snprintf (path, sizeof path, "%s/profiles/%s.profile", f.path,
            bp_root_format (&root, hex));
  flip_byte (path, 0);
  verify_all ();
  cr_assert_eq (f.nr_findings, 1);
  cr_assert_eq (f.findings[0].code, -EBADMSG);
}
