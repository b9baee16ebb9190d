/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a session says of the store's images, and how it keeps profiles:
 * they come back as they were written, and not at all with profiles=ro.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/profile.h"
#include "harness/test-driver.h"
#include "harness/test-session.h"

static struct lane
new_session (const char *socket)
{
  struct lane lane = lane_connect (socket, "session");
  char id[BP_SESSION_ID_SIZE];

  EXPECT_EQ (lane_hello (&lane, id), 0);
  return lane;
}

/* OP of NAME; returns the status. */
static int
ask (struct lane *lane, enum bp_op op, const char *name,
     uint8_t **ret_payload, size_t *ret_len)
{
  struct bp_request request = { .op = op };

  if (name)
    snprintf (request.name, sizeof request.name, "%s", name);
  return lane_request (lane, &request, NULL, NULL, ret_payload, ret_len);
}

static int
write_profile (struct lane *lane, const char *name, const uint8_t *data,
               size_t len)
{
  static const char meta[] = "{\"kind\":\"blob\",\"image\":\"none\"}";
  struct bp_request request = {
    .op = BP_OP_WRITE_PROFILE,
    .meta = meta,
    .meta_len = sizeof meta - 1,
    .data = data,
    .data_len = len,
  };

  snprintf (request.name, sizeof request.name, "%s", name);
  return lane_request (lane, &request, NULL, NULL, NULL, NULL);
}

/* A profile of COUNT records. */
static uint8_t *
make_profile (size_t count, size_t *ret_len)
{
  CLEANUP_FREE struct bp_blob_message *messages =
    calloc (count, sizeof *messages);
  uint8_t *data;

  EXPECT (messages != NULL);
  for (size_t i = 0; i < count; i++) {
    messages[i].root.bytes[0] = 1;
    messages[i].offset = i * BP_WINDOW_SIZE;
  }
  EXPECT_EQ (bp_profile_encode_blobs (messages, count, &data, ret_len, NULL),
             0);
  return data;
}

static void
images_are_found_by_name_and_listed (const char *socket)
{
  CLEANUP_FREE uint8_t *tag_text = NULL, *list_text = NULL;
  CLEANUP_JSON struct json_object *list = NULL;
  struct lane lane = new_session (socket);
  struct json_object *images;
  struct bp_tag tag;
  size_t len;

  EXPECT_EQ (ask (&lane, BP_OP_GET_IMAGE, "nobody", NULL, NULL), -ENOENT);
  EXPECT_EQ (ask (&lane, BP_OP_GET_IMAGE, "../disk", NULL, NULL), -EINVAL);
  EXPECT_EQ (ask (&lane, BP_OP_GET_IMAGE, "disk", &tag_text, &len), 0);
  EXPECT_EQ (bp_tag_decode ((const char *) tag_text, len, "disk", &tag,
                            NULL),
             0);
  EXPECT_EQ (tag.size, 100000);

  EXPECT_EQ (ask (&lane, BP_OP_LIST_IMAGES, NULL, &list_text, &len), 0);
  EXPECT_EQ (bp_json_parse ((const char *) list_text, len, &list), 0);
  EXPECT (json_object_object_get_ex (list, "images", &images));
  EXPECT_EQ (json_object_array_length (images), 2);
  lane_close (&lane);
}

static void
a_profile_comes_back_as_it_was_written (const char *socket)
{
  CLEANUP_FREE uint8_t *payload = NULL, *data = NULL;
  struct lane lane = new_session (socket);
  size_t len, payload_len, meta_len, got_len;
  const uint8_t *got;
  const char *meta;

  data = make_profile (1000, &len);
  EXPECT_EQ (ask (&lane, BP_OP_GET_PROFILE, ".boot", NULL, NULL), -ENOENT);
  EXPECT_EQ (write_profile (&lane, ".boot", data, len), 0);
  EXPECT_EQ (ask (&lane, BP_OP_GET_PROFILE, ".boot", &payload,
                  &payload_len),
             0);
  EXPECT_EQ (bp_profile_reply_decode (payload, payload_len, &meta, &meta_len,
                                      &got, &got_len),
             0);
  EXPECT_EQ (got_len, len);
  EXPECT (memcmp (got, data, len) == 0);
  EXPECT (memmem (meta, meta_len, "\"image\"", 7) != NULL);
  lane_close (&lane);
}

/* Records in its metadata, as the list has them; -1 if it is not there. */
static long long
listed_records (struct lane *lane, const char *name)
{
  CLEANUP_FREE uint8_t *text = NULL;
  CLEANUP_JSON struct json_object *list = NULL;
  struct json_object *profiles;
  size_t len;

  EXPECT_EQ (ask (lane, BP_OP_LIST_PROFILES, NULL, &text, &len), 0);
  EXPECT_EQ (bp_json_parse ((const char *) text, len, &list), 0);
  EXPECT (json_object_object_get_ex (list, "profiles", &profiles));
  for (size_t i = 0; i < json_object_array_length (profiles); i++) {
    struct json_object *profile = json_object_array_get_idx (profiles, i);
    uint64_t records;

    if (strcmp (bp_json_get_string (profile, "name"), name) == 0 &&
        bp_json_get_u64 (profile, "records", &records))
      return (long long) records;
  }
  return -1;
}

static void
profiles_are_listed_replaced_and_deleted (const char *socket)
{
  CLEANUP_FREE uint8_t *few = NULL, *many = NULL;
  struct lane lane = new_session (socket);
  size_t few_len, many_len;

  few = make_profile (3, &few_len);
  many = make_profile (500, &many_len);
  EXPECT_EQ (write_profile (&lane, "web", few, few_len), 0);
  EXPECT_EQ (listed_records (&lane, "web"), 3);
  EXPECT_EQ (write_profile (&lane, "web", many, many_len), 0);
  EXPECT_EQ (listed_records (&lane, "web"), 500);
  EXPECT_EQ (ask (&lane, BP_OP_DELETE_PROFILE, "web", NULL, NULL), 0);
  EXPECT_EQ (listed_records (&lane, "web"), -1);
  EXPECT_EQ (ask (&lane, BP_OP_DELETE_PROFILE, "web", NULL, NULL), -ENOENT);
  lane_close (&lane);
}

static void
what_is_no_profile_is_refused (const char *socket)
{
  static uint8_t zeros[BP_PROFILE_MAX_SIZE + BP_PROFILE_BLOCK];
  struct lane lane = new_session (socket);

  EXPECT_EQ (write_profile (&lane, "bad", zeros, 4095), -EBADMSG);
  EXPECT_EQ (write_profile (&lane, "bad", zeros, sizeof zeros), -ERANGE);
  EXPECT_EQ (write_profile (&lane, "../bad", zeros, 0), -EINVAL);
  EXPECT_EQ (listed_records (&lane, "bad"), -1);

  /* The largest there can be travels whole. */
  EXPECT_EQ (write_profile (&lane, "large", zeros, BP_PROFILE_MAX_SIZE), 0);
  EXPECT_EQ (ask (&lane, BP_OP_GET_PROFILE, "large", NULL, NULL), 0);
  lane_close (&lane);
}

static void
a_driver_with_profiles_ro_writes_none (void)
{
  static const char *const parameters[] = { "profiles=ro", NULL };
  struct lane lane = new_session (test_start_driver (NULL, parameters));
  struct bp_request used = {
    .op = BP_OP_PROFILE_USED,
    .name = ".boot",
    .meta = "{}",
    .meta_len = 2,
  };
  CLEANUP_FREE uint8_t *data = NULL;
  size_t len;

  data = make_profile (2, &len);
  EXPECT_EQ (write_profile (&lane, ".boot", data, len), -EROFS);
  EXPECT_EQ (ask (&lane, BP_OP_DELETE_PROFILE, ".boot", NULL, NULL), -EROFS);
  EXPECT_EQ (lane_request (&lane, &used, NULL, NULL, NULL, NULL), -EROFS);
  EXPECT_EQ (ask (&lane, BP_OP_GET_PROFILE, ".boot", NULL, NULL), 0);
  EXPECT_EQ (listed_records (&lane, ".boot"), 1000);
  lane_close (&lane);
  test_stop ();
}

int
main (void)
{
  const char *socket;

  test_begin ();
  EXPECT_EQ (system ("seq 100000 | head -c 100000 > disk.img;"
                     "blobpager import --store=store --name=disk disk.img &&"
                     "blobpager import --store=store --name=copy disk.img"),
             0);
  socket = test_start_driver (NULL, NULL);
  images_are_found_by_name_and_listed (socket);
  a_profile_comes_back_as_it_was_written (socket);
  profiles_are_listed_replaced_and_deleted (socket);
  what_is_no_profile_is_refused (socket);
  test_stop ();
  a_driver_with_profiles_ro_writes_none ();
  return 0;
}
