/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* lib/store-tags: tags in a directory. */
#include <config.h>

#include <errno.h>
#include <unistd.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "lib/base/cleanup.h"
#include "lib/store.h"
#include "harness/store-fixture.h"

TestSuite (store_tags, .init = setup, .fini = teardown);

Test (store_tags, a_tag_is_replaced_listed_and_removed)
{
  static const char *const names[] = { "b", "a.1", "a", "a-1", "B" };
  static const char *const sorted[] = { "B", "a", "a-1", "a.1", "b" };
  CLEANUP_FREE struct bp_tag *tags = NULL;
  struct bp_tag tag;
  size_t count, nr_bad;

  for (unsigned i = 0; i < 5; i++) {
    struct bp_import *import = begin (BP_CODEC_RAW);
    const struct bp_root root = add_segment (import, &i, 4, true);

    tag = tag_named (names[i], &root);
    commit (import, &tag);
  }
  cr_assert_eq (bp_store_list_tags (f.store, &tags, &count, &nr_bad, NULL),
                0);
  cr_assert_eq (count, 5);
  cr_assert_eq (nr_bad, 0);
  for (unsigned i = 0; i < 5; i++)
    cr_assert_str_eq (tags[i].name, sorted[i]);

  tag = tags[0];
  tag.size = 8192;
  commit (begin (BP_CODEC_RAW), &tag);
  cr_assert_eq (bp_store_get_tag (f.store, "B", &tag, NULL), 0);
  cr_assert_eq (tag.size, 8192);
  cr_assert_eq (bp_store_remove_tag (f.store, "B", NULL), 0);
  cr_assert_eq (bp_store_remove_tag (f.store, "B", NULL), -ENOENT);
  cr_assert_eq (bp_store_get_tag (f.store, "B", &tag, NULL), -ENOENT);
}

Test (store_tags, names_that_are_no_tags_are_refused)
{
  static const char *const names[] = { "../x", "session", "",
                                       "a/b", ".." };
  struct bp_import *import = begin (BP_CODEC_RAW);
  const struct bp_root root = add_segment (import, "x", 1, true);
  struct bp_tag tag;

  for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
    cr_assert_eq (bp_store_get_tag (f.store, names[i], &tag, NULL), -EINVAL);
    cr_assert_eq (bp_store_remove_tag (f.store, names[i], NULL), -EINVAL);
    tag = tag_named (names[i], &root);
    cr_assert_eq (bp_import_commit (import, &tag, NULL), -EINVAL);
  }
  bp_import_free (import);
}

Test (store_tags, damaged_tags_are_told_and_counted_and_can_be_removed)
{
  CLEANUP_FREE struct bp_tag *tags = NULL;
  struct bp_tag tag;
  size_t count, nr_bad;

  cr_assert_eq (mkfifo (in_store ("images/fifo.json"), 0600), 0);
  cr_assert_eq (symlink ("/etc/passwd", in_store ("images/link.json")), 0);
  cr_assert_eq (mkdir (in_store ("images/dir.json"), 0700), 0);
  cr_assert_eq (mknod (in_store ("images/empty.json"), S_IFREG | 0600, 0),
                0);
  cr_assert_eq (mknod (in_store ("images/large.json"), S_IFREG | 0600, 0),
                0);
  cr_assert_eq (truncate (in_store ("images/large.json"), 1 << 30), 0);
  cr_assert_eq (mknod (in_store ("images/README"), S_IFREG | 0600, 0), 0);

  cr_assert_eq (bp_store_get_tag (f.store, "fifo", &tag, NULL), -EPROTO);
  cr_assert_eq (bp_store_get_tag (f.store, "link", &tag, NULL), -EPROTO);
  cr_assert_eq (bp_store_get_tag (f.store, "dir", &tag, NULL), -EPROTO);
  cr_assert_eq (bp_store_get_tag (f.store, "empty", &tag, NULL), -EPROTO);
  cr_assert_eq (bp_store_get_tag (f.store, "large", &tag, NULL), -EPROTO);
  cr_assert_eq (bp_store_list_tags (f.store, &tags, &count, &nr_bad, NULL),
                0);
  cr_assert_eq (count, 0);
  cr_assert_eq (nr_bad, 5);
  cr_assert_eq (bp_store_remove_tag (f.store, "empty", NULL), 0);
  cr_assert_eq (bp_store_remove_tag (f.store, "link", NULL), 0);
}
