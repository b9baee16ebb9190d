/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Profiles in profiles/:
 *
 *   NAME.json ── "root" ──▶ ROOT.profile
 *
 * The bytes are written first and named after their own digest, the name
 * last; so a reader that follows a name finds bytes it can check, and one
 * that loses a race with a replacement finds the name changed and follows
 * it again.  Bytes that no name needs any more go when the last name does.
 *
 * Names are changed with the store's lock held; readers need none.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/json.h"
#include "lib/profile.h"
#include "lib/store-internal.h"

enum {
  MAX_RACES = 8
};

static int
check_profile_name (const char *name, struct bp_error *err)
{
  if (!bp_is_profile_name (name))
    return bp_error_set (err, -EINVAL,
                         "profile '%.130s': not a profile's name", name);
  return 0;
}

static char *
data_path (char out[STORE_FILE_NAME_SIZE], const struct bp_root *root)
{
  char hex[BP_ROOT_HEX_SIZE];

  return store_path (out, "profiles", bp_root_format (root, hex), ".profile");
}

/* ---- Metadata ---- */

/* The members that this file needs. */
struct meta {
  struct json_object *obj; /* Owned. */
  struct bp_root root;
  bool is_file; /* Kind "file". */
};

static void
meta_done (struct meta *meta)
{
  json_object_put (meta->obj);
}
#define CLEANUP_META __attribute__ ((cleanup (meta_done)))

/* Returns 0, -EBADMSG or -ENOMEM. */
static int
decode_meta (const char *name, const char *text, size_t len,
             struct meta *meta, struct bp_error *err)
{
  const char *kind, *root;
  uint64_t records;
  const int r = bp_json_parse (text, len, &meta->obj);

  if (r < 0)
    return bp_error_set (err, r == -ENOMEM ? r : -EBADMSG,
                         "profile '%s': metadata: not a JSON object", name);
  kind = bp_json_get_string (meta->obj, "kind");
  root = bp_json_get_string (meta->obj, "root");
  if (kind == NULL ||
      (strcmp (kind, "blob") != 0 && strcmp (kind, "file") != 0) ||
      root == NULL || bp_root_parse (root, &meta->root) < 0 ||
      !bp_json_get_u64 (meta->obj, "records", &records))
    return bp_error_set (err, -EBADMSG,
                         "profile '%s': metadata: kind, root or records: %s",
                         name, "missing or malformed");
  meta->is_file = strcmp (kind, "file") == 0;
  return 0;
}

/* The metadata of NAME.  RET_TEXT (may be NULL) gets its text, the
 * caller's to free.
 */
static int
load_meta (struct bp_store *store, const char *name, struct meta *meta,
           char **ret_text, struct bp_error *err)
{
  char path[STORE_FILE_NAME_SIZE];
  CLEANUP_FREE uint8_t *text = NULL;
  size_t len;
  int r = bp_read_file (store->dirfd,
                        store_path (path, "profiles", name, ".json"),
                        BP_PROFILE_META_MAX, &text, &len);

  if (r == -ENOENT)
    return bp_error_set (err, r, "profile '%s': no such profile", name);
  if (r == -EPROTO || r == -ERANGE || r == -ELOOP)
    return bp_error_set (err, -EBADMSG, "profile '%s': metadata: %s", name,
                         r == -ERANGE ? "too large" : "not a file");
  if (r < 0)
    return bp_error_set (err, r, "profile '%s': read metadata: %m", name);
  r = decode_meta (name, (const char *) text, len, meta, err);
  if (r == 0 && ret_text)
    *ret_text = (char *) steal_ptr (&text);
  return r;
}

static int
save_meta (struct bp_store *store, const char *name, struct json_object *obj,
           struct bp_error *err)
{
  char path[STORE_FILE_NAME_SIZE];
  CLEANUP_FREE char *text = NULL;
  const char *json =
    json_object_to_json_string_ext (obj, JSON_C_TO_STRING_NOSLASHESCAPE);
  const int n = json ? asprintf (&text, "%s\n", json) : -1;

  if (n < 0)
    return bp_error_set (err, -ENOMEM, "profile '%s': %m", name);
  if (n > BP_PROFILE_META_MAX)
    return bp_error_set (err, -ERANGE, "profile '%s': metadata: %s", name,
                         "larger than 64 KiB");
  store_path (path, "profiles", name, ".json");
  return store_replace_file (store, path, text, (size_t) n, err);
}

/* ---- Bytes ---- */

/* The bytes of the profile ROOT, verified.  -ENOENT: not there. */
static int
load_data (struct bp_store *store, const char *name,
           const struct bp_root *root, uint8_t **ret_data, size_t *ret_len,
           struct bp_error *err)
{
  char path[STORE_FILE_NAME_SIZE];
  CLEANUP_FREE uint8_t *data = NULL;
  struct bp_root found;
  size_t len;
  int r = bp_read_file (store->dirfd, data_path (path, root),
                        BP_PROFILE_MAX_SIZE, &data, &len);

  if (r == -ERANGE)
    return bp_error_set (err, r, "profile '%s': larger than 16 MiB", name);
  if (r == -EPROTO || r == -ELOOP)
    return bp_error_set (err, -EBADMSG, "profile '%s': not a file", name);
  if (r < 0)
    return bp_error_set (err, r, "profile '%s': read: %m", name);
  r = bp_merkle_root (data, len, &found);
  if (r < 0)
    return bp_error_set (err, r, "profile '%s': %m", name);
  if (!bp_root_equal (&found, root))
    return bp_error_set (err, -EBADMSG, "profile '%s': digest mismatch",
                         name);
  if (len % BP_PROFILE_BLOCK != 0)
    return bp_error_set (err, -EBADMSG,
                         "profile '%s': length: no multiple of %d", name,
                         BP_PROFILE_BLOCK);
  *ret_data = steal_ptr (&data);
  *ret_len = len;
  return 0;
}

int
bp_store_get_profile (struct bp_store *store, const char *name,
                      bool any_kind, char **ret_meta, uint8_t **ret_data,
                      size_t *ret_len, struct bp_error *err)
{
  int r = check_profile_name (name, err);

  if (r < 0)
    return r;
  for (unsigned i = 0; i < MAX_RACES; i++) {
    CLEANUP_META struct meta meta = { 0 };
    CLEANUP_FREE char *text = NULL;

    r = load_meta (store, name, &meta, &text, err);
    if (r < 0)
      return r;
    if (meta.is_file && !any_kind)
      return bp_error_set (err, -EINVAL, "profile '%s': is of kind 'file'",
                           name);
    r = load_data (store, name, &meta.root, ret_data, ret_len, err);
    if (r == 0)
      *ret_meta = steal_ptr (&text);
    if (r != -ENOENT)
      return r;
    /* Replaced between the two reads, most likely. */
  }
  return bp_error_set (err, -EBADMSG, "profile '%s': its bytes are missing",
                       name);
}

/* ---- What no name needs ---- */

struct need {
  struct bp_store *store;
  const struct bp_root *root;
  bool is_needed;
};

/* A name that cannot be read just now may need them; one that is gone or
 * damaged names nothing.
 */
static int
look_for_need (void *opaque, const char *file)
{
  struct need *need = opaque;
  char name[STORE_FILE_NAME_SIZE];
  CLEANUP_META struct meta meta = { 0 };
  int r;

  if (need->is_needed || !store_split_name (file, ".json", name) ||
      !bp_is_profile_name (name))
    return 0;
  r = load_meta (need->store, name, &meta, NULL, NULL);
  if (r == 0)
    need->is_needed = bp_root_equal (&meta.root, need->root);
  else
    need->is_needed = r != -ENOENT && r != -EBADMSG;
  return 0;
}

/* Remove the bytes of ROOT if no name needs them.  Called with the lock
 * file held.
 */
static int
remove_unneeded (struct bp_store *store, const struct bp_root *root,
                 struct bp_error *err)
{
  struct need need = { .store = store, .root = root };
  char path[STORE_FILE_NAME_SIZE];
  const int r = store_each_name (store, "profiles", look_for_need, &need,
                                 err);

  if (r < 0 || need.is_needed)
    return r;
  if (unlinkat (store->dirfd, data_path (path, root), 0) == -1 &&
      errno != ENOENT)
    return bp_error_set (err, -errno, "store '%s': remove '%s': %m",
                         store->path, path);
  return 0;
}

/* ---- Changing ---- */

/* Records in DATA; checks that it is a profile of its kind. */
static int
count_records (const uint8_t *data, size_t len, bool is_file,
               size_t *ret_count, struct bp_error *err)
{
  CLEANUP_FREE struct bp_blob_message *blobs = NULL;
  CLEANUP_FREE struct bp_file_message *files = NULL;

  return is_file ? bp_profile_decode_files (data, len, &files, ret_count, err)
                 : bp_profile_decode_blobs (data, len, &blobs, ret_count,
                                            err);
}

/* META with what DATA says of itself. */
static int
complete_meta (const char *name, const char *meta, size_t meta_len,
               const uint8_t *data, size_t len, struct meta *ret_meta,
               struct bp_error *err)
{
  char hex[BP_ROOT_HEX_SIZE];
  const char *kind;
  size_t records;
  int r = meta_len > BP_PROFILE_META_MAX
            ? -ERANGE
            : bp_json_parse (meta, meta_len, &ret_meta->obj);

  if (r < 0)
    return bp_error_set (err, r == -EPROTO ? -EINVAL : r,
                         "profile '%s': metadata: not a small JSON object",
                         name);
  kind = bp_json_get_string (ret_meta->obj, "kind");
  if (kind && strcmp (kind, "blob") != 0 && strcmp (kind, "file") != 0)
    return bp_error_set (err, -EINVAL, "profile '%s': metadata: kind '%s'",
                         name, kind);
  ret_meta->is_file = kind && strcmp (kind, "file") == 0;
  r = count_records (data, len, ret_meta->is_file, &records, err);
  if (r == 0)
    r = bp_merkle_root (data, len, &ret_meta->root);
  if (r < 0)
    return bp_error_wrap (err, r, "profile '%s'", name);
  bp_json_add_string (ret_meta->obj, "kind",
                      ret_meta->is_file ? "file" : "blob");
  bp_json_add_string (ret_meta->obj, "root",
                      bp_root_format (&ret_meta->root, hex));
  bp_json_add_u64 (ret_meta->obj, "records", records);
  return 0;
}

int
bp_store_put_profile (struct bp_store *store, const char *name,
                      const char *meta, size_t meta_len, const uint8_t *data,
                      size_t len, struct bp_error *err)
{
  CLEANUP_STORE_LOCK struct store_lock lock = { -1 };
  CLEANUP_META struct meta new = { 0 }, old = { 0 };
  char path[STORE_FILE_NAME_SIZE];
  bool replaces;
  int r = check_profile_name (name, err);

  if (r == 0)
    r = complete_meta (name, meta, meta_len, data, len, &new, err);
  if (r == 0)
    r = store_lock (store, &lock, err);
  if (r < 0)
    return r;
  replaces = load_meta (store, name, &old, NULL, NULL) == 0;
  r = store_replace_file (store, data_path (path, &new.root), data, len, err);
  if (r == 0)
    r = save_meta (store, name, new.obj, err);
  if (r < 0) {
    remove_unneeded (store, &new.root, NULL);
    return r;
  }
  return replaces ? remove_unneeded (store, &old.root, err) : 0;
}

int
bp_store_profile_used (struct bp_store *store, const char *name,
                       const struct bp_root *root, const char *counters,
                       size_t len, struct bp_error *err)
{
  CLEANUP_STORE_LOCK struct store_lock lock = { -1 };
  CLEANUP_META struct meta meta = { 0 };
  CLEANUP_JSON struct json_object *used = NULL;
  int r = check_profile_name (name, err);

  if (r < 0)
    return r;
  r = len > BP_PROFILE_META_MAX ? -EPROTO
                                : bp_json_parse (counters, len, &used);
  if (r < 0)
    return bp_error_set (err, r == -EPROTO ? -EINVAL : r,
                         "profile '%s': counters: not a small JSON object",
                         name);
  r = store_lock (store, &lock, err);
  if (r == 0)
    r = load_meta (store, name, &meta, NULL, err);
  if (r < 0)
    return r == -ENOENT ? 0 : r;
  if (!bp_root_equal (&meta.root, root))
    return 0;
  json_object_object_add (meta.obj, "last_replay", steal_ptr (&used));
  return save_meta (store, name, meta.obj, err);
}

/* Called with the lock file held. */
static int
delete_locked (struct bp_store *store, const char *name,
               struct bp_error *err)
{
  CLEANUP_META struct meta meta = { 0 };
  char path[STORE_FILE_NAME_SIZE];
  const bool known = load_meta (store, name, &meta, NULL, NULL) == 0;
  int r;

  if (unlinkat (store->dirfd, store_path (path, "profiles", name, ".json"),
                0) == -1)
    return errno == ENOENT
             ? bp_error_set (err, -ENOENT, "profile '%s': no such profile",
                             name)
             : bp_error_set (err, -errno, "profile '%s': remove: %m", name);
  r = known ? remove_unneeded (store, &meta.root, err) : 0;
  if (r == 0 && (r = bp_sync_dir (store->dirfd, "profiles")) < 0)
    bp_error_set (err, r, "profile '%s': sync: %m", name);
  return r;
}

int
bp_store_delete_profile (struct bp_store *store, const char *name,
                         struct bp_error *err)
{
  CLEANUP_STORE_LOCK struct store_lock lock = { -1 };
  int r = check_profile_name (name, err);

  if (r == 0)
    r = store_lock (store, &lock, err);
  return r < 0 ? r : delete_locked (store, name, err);
}

int
store_remove_attached_profile (struct bp_store *store,
                               const struct bp_root *root,
                               struct bp_error *err)
{
  char hex[BP_ROOT_HEX_SIZE];
  const int r = delete_locked (store, bp_root_format (root, hex), err);

  return r == -ENOENT ? 0 : r;
}

/* ---- Listing ---- */

struct profile_list {
  struct bp_store *store;
  struct json_object *array;
};

static void
copy_members (struct json_object *from, struct json_object *to)
{
  json_object_object_foreach (from, key, value)
  {
    if (strcmp (key, "name") != 0)
      json_object_object_add (to, key, json_object_get (value));
  }
}

/* The metadata, or what is left of it, with "name" first. */
static int
list_profile (void *opaque, const char *file)
{
  struct profile_list *list = opaque;
  char name[STORE_FILE_NAME_SIZE];
  CLEANUP_META struct meta meta = { 0 };
  struct json_object *item;
  int r;

  if (!store_split_name (file, ".json", name) || !bp_is_profile_name (name))
    return 0;
  r = load_meta (list->store, name, &meta, NULL, NULL);
  if (r == -ENOENT)
    return 0; /* Deleted meanwhile. */
  item = json_object_new_object ();
  if (item == NULL)
    return -ENOMEM;
  bp_json_add_string (item, "name", name);
  if (r < 0)
    bp_json_add_bool (item, "damaged", true);
  else
    copy_members (meta.obj, item);
  return json_object_array_add (list->array, item) == 0 ? 0 : -ENOMEM;
}

static int
compare_items (const void *a, const void *b)
{
  struct json_object *x = *(struct json_object *const *) a;
  struct json_object *y = *(struct json_object *const *) b;

  return strcmp (bp_json_get_string (x, "name"),
                 bp_json_get_string (y, "name"));
}

int
bp_store_list_profiles (struct bp_store *store, char **ret_json,
                        struct bp_error *err)
{
  CLEANUP_JSON struct json_object *obj = json_object_new_object ();
  struct profile_list list = { .store = store,
                               .array = json_object_new_array () };
  int r;

  if (obj == NULL || list.array == NULL) {
    json_object_put (list.array);
    return bp_error_set (err, -ENOMEM, "profiles: %m");
  }
  json_object_object_add (obj, "profiles", list.array);
  r = store_each_name (store, "profiles", list_profile, &list, err);
  if (r < 0)
    return r == -ENOMEM ? bp_error_set (err, r, "profiles: %m") : r;
  json_object_array_sort (list.array, compare_items);
  *ret_json = strdup (json_object_to_json_string_ext (
    obj, JSON_C_TO_STRING_NOSLASHESCAPE));
  return *ret_json ? 0 : bp_error_set (err, -ENOMEM, "profiles: %m");
}
