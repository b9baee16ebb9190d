/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* lib/store-profiles: profiles are replaced whole, checked when they are
 * read, and gone when no name needs them.
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

#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/profile.h"
#include "lib/store.h"

static struct {
  char parent[64];
  char path[80];
  struct bp_store *store;
} f;

static int
remove_path (const char *path, const struct stat *st, int type,
             struct FTW *ftw)
{
  (void) st;
  (void) type;
  (void) ftw;
  return remove (path);
}

static void
setup (void)
{
  snprintf (f.parent, sizeof f.parent, "/tmp/test-profiles.XXXXXX");
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

TestSuite (store_profiles, .init = setup, .fini = teardown);

/* A profile of two records that depend on SEED, encoded. */
static uint8_t *
make_profile (uint8_t seed, size_t *ret_len)
{
  struct bp_blob_message messages[2] = { { .offset = 0 },
                                         { .offset = 131072 } };
  uint8_t *data;

  memset (&messages[0].root, seed, BP_ROOT_SIZE);
  memset (&messages[1].root, seed, BP_ROOT_SIZE);
  cr_assert_eq (bp_profile_encode_blobs (messages, 2, &data, ret_len, NULL),
                0);
  return data;
}

static int
put (const char *name, const char *meta, uint8_t seed)
{
  size_t len;
  CLEANUP_FREE uint8_t *data = make_profile (seed, &len);
  struct bp_error err;

  return bp_store_put_profile (f.store, name, meta, strlen (meta), data, len,
                               &err);
}

/* Reading NAME succeeds and gives what SEED made; MEMBER of its metadata
 * is in *RET (the caller's).
 */
static void
assert_profile_is (const char *name, uint8_t seed,
                   struct json_object **ret_meta)
{
  size_t len, wanted_len;
  CLEANUP_FREE uint8_t *wanted = make_profile (seed, &wanted_len);
  CLEANUP_FREE uint8_t *data = NULL;
  CLEANUP_FREE char *meta = NULL;
  struct bp_error err;

  cr_assert_eq (bp_store_get_profile (f.store, name, false, &meta, &data,
                                      &len, &err),
                0, "%s", err.msg);
  cr_assert_eq (len, wanted_len);
  cr_assert_eq (memcmp (data, wanted, len), 0);
  cr_assert_eq (bp_json_parse (meta, strlen (meta), ret_meta), 0);
}

static int
get (const char *name)
{
  CLEANUP_FREE uint8_t *data = NULL;
  CLEANUP_FREE char *meta = NULL;
  struct bp_error err;
  size_t len;

  return bp_store_get_profile (f.store, name, false, &meta, &data, &len,
                               &err);
}

static unsigned
count_files (void)
{
  char path[128];
  CLEANUP_CLOSEDIR DIR *d = NULL;
  const struct dirent *entry;
  unsigned count = 0;

  snprintf (path, sizeof path, "%s/profiles", f.path);
  d = opendir (path);
  cr_assert_not_null (d);
  while ((entry = readdir (d)) != NULL)
    count += strcmp (entry->d_name, ".") && strcmp (entry->d_name, "..");
  return count;
}

Test (store_profiles, metadata_is_completed_and_kept)
{
  CLEANUP_JSON struct json_object *meta = NULL;
  uint64_t records;

  cr_assert_eq (put (".boot", "{\"recorded\":\"now\",\"records\":77}", 1), 0);
  assert_profile_is (".boot", 1, &meta);
  cr_assert_str_eq (bp_json_get_string (meta, "kind"), "blob");
  cr_assert_str_eq (bp_json_get_string (meta, "recorded"), "now");
  cr_assert (bp_json_get_u64 (meta, "records", &records));
  cr_assert_eq (records, 2, "what the bytes say, not the caller");
}

Test (store_profiles, an_empty_profile_is_no_bytes)
{
  CLEANUP_FREE uint8_t *data = NULL;
  CLEANUP_FREE char *meta = NULL;
  size_t len;

  cr_assert_eq (bp_store_put_profile (f.store, "p", "{}", 2, NULL, 0, NULL),
                0);
  cr_assert_eq (bp_store_get_profile (f.store, "p", false, &meta, &data,
                                      &len, NULL),
                0);
  cr_assert_eq (len, 0);
}

Test (store_profiles, bytes_go_with_the_last_name_that_needs_them)
{
  CLEANUP_JSON struct json_object *a = NULL, *b = NULL;

  cr_assert_eq (put ("a", "{}", 1), 0);
  cr_assert_eq (put ("b", "{}", 1), 0);
  cr_assert_eq (count_files (), 3);
  cr_assert_eq (put ("a", "{}", 2), 0);
  cr_assert_eq (count_files (), 4);
  assert_profile_is ("b", 1, &b);
  assert_profile_is ("a", 2, &a);
  cr_assert_eq (bp_store_delete_profile (f.store, "b", NULL), 0);
  cr_assert_eq (count_files (), 2);
  cr_assert_eq (bp_store_delete_profile (f.store, "b", NULL), -ENOENT);
  cr_assert_eq (put ("a", "{}", 2), 0, "the same again");
  cr_assert_eq (count_files (), 2);
  cr_assert_eq (put ("a", "{}", 3), 0);
  cr_assert_eq (count_files (), 2);
}

Test (store_profiles, kinds_are_kept_apart)
{
  CLEANUP_FREE uint8_t *data = NULL;
  CLEANUP_FREE char *meta = NULL;
  size_t len;

  cr_assert_eq (put ("p", "{\"kind\":\"file\"}", 1), 0);
  cr_assert_eq (get ("p"), -EINVAL);
  cr_assert_eq (bp_store_get_profile (f.store, "p", true, &meta, &data, &len,
                                      NULL),
                0);
  cr_assert_eq (put ("q", "{\"kind\":\"other\"}", 1), -EINVAL);
}

Test (store_profiles, bad_names_and_sizes_are_refused)
{
  static const char *const names[] = { "", ".", "..", "../x", "a/b" };
  static uint8_t large[(16 << 20) + 4096];
  struct bp_error err;

  for (unsigned i = 0; i < 5; i++) {
    cr_assert_eq (put (names[i], "{}", 1), -EINVAL);
    cr_assert_eq (get (names[i]), -EINVAL);
    cr_assert_eq (bp_store_delete_profile (f.store, names[i], NULL),
                  -EINVAL);
  }
  cr_assert_eq (get ("absent"), -ENOENT);
  cr_assert_eq (put ("p", "[]", 1), -EINVAL);
  cr_assert_eq (bp_store_put_profile (f.store, "p", "{}", 2, large, 17, NULL),
                -EBADMSG, "no multiple of a block");
  cr_assert_eq (bp_store_put_profile (f.store, "p", "{}", 2, large,
                                      sizeof large, &err),
                -ERANGE);
  cr_assert_eq (count_files (), 0);
}

/* Write over FILE in profiles/, or cut it. */
static void
damage (const char *file, off_t len)
{
  char path[256];

  snprintf (path, sizeof path, "%s/profiles/%s", f.path, file);
  cr_assert_eq (truncate (path, len), 0);
}

static void
profile_file (char out[128], uint8_t seed)
{
  size_t len;
  CLEANUP_FREE uint8_t *data = make_profile (seed, &len);
  char hex[BP_ROOT_HEX_SIZE];
  struct bp_root root;

  cr_assert_eq (bp_merkle_root (data, len, &root), 0);
  snprintf (out, 128, "%s.profile", bp_root_format (&root, hex));
}

Test (store_profiles, damage_is_told_and_a_damaged_one_can_be_deleted)
{
  CLEANUP_FREE char *json = NULL;
  char file[128];

  cr_assert_eq (put ("bytes", "{}", 1), 0);
  cr_assert_eq (put ("meta", "{}", 2), 0);
  cr_assert_eq (put ("large", "{}", 3), 0);
  cr_assert_eq (put ("gone", "{}", 4), 0);
  profile_file (file, 1);
  damage (file, 100);
  damage ("meta.json", 9);
  profile_file (file, 3);
  damage (file, (16 << 20) + 4096);
  profile_file (file, 4);
  {
    char path[256];

    snprintf (path, sizeof path, "%s/profiles/%s", f.path, file);
    cr_assert_eq (unlink (path), 0);
  }
  cr_assert_eq (get ("bytes"), -EBADMSG);
  cr_assert_eq (get ("meta"), -EBADMSG);
  cr_assert_eq (get ("large"), -ERANGE);
  cr_assert_eq (get ("gone"), -EBADMSG);
  cr_assert_eq (bp_store_list_profiles (f.store, &json, NULL), 0);
  cr_assert_neq (strstr (json, "{\"name\":\"meta\",\"damaged\":true}"), NULL,
                 "%s", json);
  cr_assert_eq (bp_store_delete_profile (f.store, "meta", NULL), 0);
  cr_assert_eq (get ("meta"), -ENOENT);
}

Test (store_profiles, counters_of_a_replay_reach_only_the_profile_replayed)
{
  CLEANUP_JSON struct json_object *meta = NULL, *after = NULL;
  static const char counters[] = "{\"late\":3}";
  struct json_object *used;
  struct bp_root root;

  cr_assert_eq (put ("p", "{}", 1), 0);
  assert_profile_is ("p", 1, &meta);
  cr_assert_eq (bp_root_parse (bp_json_get_string (meta, "root"), &root), 0);
  cr_assert_eq (bp_store_profile_used (f.store, "p", &root, counters,
                                       strlen (counters), NULL),
                0);
  root.bytes[0] ^= 1;
  cr_assert_eq (bp_store_profile_used (f.store, "p", &root, "{}", 2, NULL),
                0);
  cr_assert_eq (bp_store_profile_used (f.store, "absent", &root, "{}", 2,
                                       NULL),
                0);
  assert_profile_is ("p", 1, &after);
  cr_assert (json_object_object_get_ex (after, "last_replay", &used));
  cr_assert_str_eq (json_object_to_json_string_ext (used, 0), counters);
}

Test (store_profiles, the_attached_profile_goes_with_the_last_tag)
{
  struct bp_tag tag = { .name = "a" };
  char hex[BP_ROOT_HEX_SIZE];

  memset (&tag.root, 7, sizeof tag.root);
  bp_root_format (&tag.root, hex);
  for (unsigned i = 0; i < 2; i++) {
    struct bp_import *import;

    tag.name[0] = (char) ('a' + i);
    cr_assert_eq (bp_import_begin (&import, f.store, BP_CODEC_RAW, NULL), 0);
    cr_assert_eq (bp_import_commit (import, &tag, NULL), 0);
    bp_import_free (import);
  }
  cr_assert_eq (put (hex, "{}", 1), 0);
  cr_assert_eq (put ("named", "{}", 2), 0);
  cr_assert_eq (bp_store_remove_tag (f.store, "a", NULL), 0);
  cr_assert_eq (get (hex), 0);
  cr_assert_eq (bp_store_remove_tag (f.store, "b", NULL), 0);
  cr_assert_eq (get (hex), -ENOENT);
  cr_assert_eq (get ("named"), 0);
}
