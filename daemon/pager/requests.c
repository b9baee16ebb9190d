/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The requests of driver.h: what is asked, and what a reply must look
 * like.  Everything in a reply is checked here before anybody sees it.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pager/driver-internal.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/profile.h"
#include "lib/session-proto.h"
#include "lib/store.h"

enum {
  MAX_LIST = BP_AREA_SIZE - BP_REPLY_HEADER_SIZE, /* Bytes. */
  MAX_TAGS = 1 << 16,                             /* In a list. */
  MAX_PROFILE_REPLY = 8 + BP_PROFILE_META_MAX + BP_PROFILE_MAX_SIZE,
  RECORDING_ID_SIZE = 8,
};

static void
cleanup_request (struct slow_request **request)
{
  slow_request_free (*request);
}
#define CLEANUP_REQUEST __attribute__ ((cleanup (cleanup_request)))

/* What is asked for, for messages. */
struct question {
  struct bp_request request;
  size_t max_reply;   /* Bytes. */
  bool is_repeatable; /* In another session. */
  uint64_t epoch;     /* Only in this one; 0: any. */
  const char *what;   /* "get tag", … */
};

static const char *
reason (int code)
{
  switch (-code) {
  case ENOENT: return "no such name";
  case EIO: return "no answer from the driver";
  case EPROTO: return "malformed reply";
  case EROFS: return "the driver keeps no profiles (profiles=ro)";
  case EBADMSG: return "damaged in the store";
  case ERANGE: return "larger than a limit";
  case ESHUTDOWN: return "shutting down";
  default: return strerror (-code);
  }
}

static int
failed (const struct question *question, int code, struct bp_error *err)
{
  if (question->request.name[0])
    return bp_error_set (err, code, "driver: %s '%s': %s", question->what,
                         question->request.name, reason (code));
  return bp_error_set (err, code, "driver: %s: %s", question->what,
                       reason (code));
}

/* Ask and wait.  The caller frees *ret_request (CLEANUP_REQUEST). */
static int
ask (struct driver *driver, const struct question *question,
     struct slow_request **ret_request, struct bp_error *err)
{
  CLEANUP_REQUEST struct slow_request *request = NULL;
  int r;

  request = calloc (1, sizeof *request);
  if (request == NULL)
    return failed (question, -ENOMEM, err);
  r = bp_request_encode (&question->request, NULL, NULL, &request->bytes,
                         &request->len);
  if (r < 0)
    return failed (question, r, err);
  request->max_reply = question->max_reply;
  request->is_repeatable = question->is_repeatable;
  request->epoch = question->epoch;
  r = slow_request_run (driver, steal_ptr (&request), ret_request);
  return r < 0 ? failed (question, r, err) : 0;
}

static const char *
reply_text (const struct slow_request *request)
{
  return (const char *) request->reply + BP_REPLY_HEADER_SIZE;
}

/* The name a request is about.  Returns false if it is too long to be
 * one; anything else that is no name the driver does not know.
 */
static bool
set_name (struct question *question, const char *name)
{
  const size_t len = strlen (name);

  if (len >= sizeof question->request.name)
    return false;
  memcpy (question->request.name, name, len + 1);
  return true;
}

/* ---- Tags ---- */

int
driver_get_image (struct driver *driver, const char *name,
                  struct bp_tag *ret_tag, struct bp_error *err)
{
  struct question question = {
    .request = { .op = BP_OP_GET_IMAGE },
    .max_reply = BP_TAG_MAX_SIZE,
    .is_repeatable = true,
    .what = "get tag",
  };
  CLEANUP_REQUEST struct slow_request *answer = NULL;
  int r;

  if (!bp_is_tag_name (name) || !set_name (&question, name))
    return bp_error_set (err, -ENOENT, "driver: get tag: not a tag's name");
  r = ask (driver, &question, &answer, err);
  if (r < 0)
    return r;
  r = bp_tag_decode (reply_text (answer), answer->reply_len, name, ret_tag,
                     err);
  return r < 0 ? bp_error_wrap (err, r, "driver: get tag '%s'", name) : 0;
}

/* Decode the members of ARRAY, which the caller has bounded. */
static int
decode_tags (struct json_object *array, size_t count, struct bp_tag *tags,
             struct bp_error *err)
{
  const char *text;
  size_t len;
  int r;

  for (size_t i = 0; i < count; i++) {
    text = json_object_to_json_string_length (
      json_object_array_get_idx (array, i), JSON_C_TO_STRING_PLAIN, &len);
    if (text == NULL)
      return bp_error_set (err, -ENOMEM, "out of memory");
    r = bp_tag_decode (text, len, NULL, &tags[i], err);
    if (r < 0)
      return r;
  }
  return 0;
}

static int
decode_tag_list (const struct slow_request *answer, struct bp_tag **ret_tags,
                 size_t *ret_count, struct bp_error *err)
{
  CLEANUP_JSON struct json_object *list = NULL;
  CLEANUP_FREE struct bp_tag *tags = NULL;
  struct json_object *array;
  size_t count;
  int r;

  r = bp_json_parse (reply_text (answer), answer->reply_len, &list);
  if (r < 0)
    return bp_error_set (err, r, "not JSON");
  if (!json_object_object_get_ex (list, "images", &array) ||
      !json_object_is_type (array, json_type_array))
    return bp_error_set (err, -EPROTO, "no list");
  count = json_object_array_length (array);
  if (count > MAX_TAGS)
    return bp_error_set (err, -ERANGE, "more than %d tags", MAX_TAGS);
  tags = calloc (count + 1, sizeof *tags);
  if (tags == NULL)
    return bp_error_set (err, -ENOMEM, "out of memory");
  r = decode_tags (array, count, tags, err);
  if (r < 0)
    return r;
  *ret_tags = steal_ptr (&tags);
  *ret_count = count;
  return 0;
}

int
driver_list_images (struct driver *driver, struct bp_tag **ret_tags,
                    size_t *ret_count, struct bp_error *err)
{
  const struct question question = {
    .request = { .op = BP_OP_LIST_IMAGES },
    .max_reply = MAX_LIST,
    .is_repeatable = true,
    .what = "list images",
  };
  CLEANUP_REQUEST struct slow_request *answer = NULL;
  int r;

  r = ask (driver, &question, &answer, err);
  if (r < 0)
    return r;
  r = decode_tag_list (answer, ret_tags, ret_count, err);
  return r < 0 ? bp_error_wrap (err, r, "driver: list images") : 0;
}

/* ---- Profiles ---- */

/* One JSON object of LEN bytes, as a string.  The caller frees it. */
static int
copy_json (const char *text, size_t len, char **ret_text)
{
  CLEANUP_JSON struct json_object *object = NULL;
  char *copy;
  int r;

  if (memchr (text, '\0', len))
    return -EPROTO;
  r = bp_json_parse (text, len, &object);
  if (r < 0)
    return r;
  copy = strndup (text, len);
  if (copy == NULL)
    return -ENOMEM;
  *ret_text = copy;
  return 0;
}

static int
decode_profile (const struct slow_request *answer, char **ret_meta,
                uint8_t **ret_data, size_t *ret_len)
{
  CLEANUP_FREE char *meta_copy = NULL;
  const uint8_t *data;
  const char *meta;
  size_t meta_len, len;
  uint8_t *copy;
  int r;

  r = bp_profile_reply_decode (answer->reply + BP_REPLY_HEADER_SIZE,
                               answer->reply_len, &meta, &meta_len, &data,
                               &len);
  if (r < 0)
    return r;
  if (meta_len > BP_PROFILE_META_MAX || len > BP_PROFILE_MAX_SIZE)
    return -ERANGE;
  r = copy_json (meta, meta_len, &meta_copy);
  if (r < 0)
    return r;
  copy = malloc (len + 1); /* Never NULL for no bytes. */
  if (copy == NULL)
    return -ENOMEM;
  memcpy (copy, data, len);
  *ret_meta = steal_ptr (&meta_copy);
  *ret_data = copy;
  *ret_len = len;
  return 0;
}

int
driver_get_profile (struct driver *driver, const char *name, char **ret_meta,
                    uint8_t **ret_data, size_t *ret_len,
                    struct bp_error *err)
{
  struct question question = {
    .request = { .op = BP_OP_GET_PROFILE },
    .max_reply = MAX_PROFILE_REPLY,
    .is_repeatable = true,
    .what = "get profile",
  };
  CLEANUP_REQUEST struct slow_request *answer = NULL;
  int r;

  if (!set_name (&question, name))
    return bp_error_set (err, -EINVAL, "driver: profile name too long");
  r = ask (driver, &question, &answer, err);
  if (r < 0)
    return r;
  r = decode_profile (answer, ret_meta, ret_data, ret_len);
  return r < 0 ? failed (&question, r, err) : 0;
}

/* Ask a question whose answer holds nothing. */
static int
ask_for_nothing (struct driver *driver, const struct question *question,
                 struct bp_error *err)
{
  CLEANUP_REQUEST struct slow_request *answer = NULL;

  return ask (driver, question, &answer, err);
}

int
driver_write_profile (struct driver *driver, const char *name,
                      const char *meta, const uint8_t *data, size_t len,
                      struct bp_error *err)
{
  struct question question = {
    .request = { .op = BP_OP_WRITE_PROFILE,
                 .meta = meta,
                 .meta_len = strlen (meta),
                 .data = data,
                 .data_len = len },
    .is_repeatable = true,
    .what = "write profile",
  };

  if (!set_name (&question, name))
    return bp_error_set (err, -EINVAL, "driver: profile name too long");
  if (len > BP_PROFILE_MAX_SIZE ||
      question.request.meta_len > BP_PROFILE_META_MAX)
    return failed (&question, -ERANGE, err);
  return ask_for_nothing (driver, &question, err);
}

int
driver_profile_used (struct driver *driver, const char *name,
                     const struct bp_root *root, const char *counters,
                     struct bp_error *err)
{
  struct question question = {
    .request = { .op = BP_OP_PROFILE_USED,
                 .root = *root,
                 .meta = counters,
                 .meta_len = strlen (counters) },
    .is_repeatable = true,
    .what = "note the use of profile",
  };

  if (!set_name (&question, name))
    return bp_error_set (err, -EINVAL, "driver: profile name too long");
  if (question.request.meta_len > BP_PROFILE_META_MAX)
    return failed (&question, -ERANGE, err);
  return ask_for_nothing (driver, &question, err);
}

int
driver_list_profiles (struct driver *driver, char **ret_json,
                      struct bp_error *err)
{
  const struct question question = {
    .request = { .op = BP_OP_LIST_PROFILES },
    .max_reply = MAX_LIST,
    .is_repeatable = true,
    .what = "list profiles",
  };
  CLEANUP_REQUEST struct slow_request *answer = NULL;
  int r;

  r = ask (driver, &question, &answer, err);
  if (r < 0)
    return r;
  r = copy_json (reply_text (answer), answer->reply_len, ret_json);
  return r < 0 ? failed (&question, r, err) : 0;
}

int
driver_delete_profile (struct driver *driver, const char *name,
                       struct bp_error *err)
{
  struct question question = {
    .request = { .op = BP_OP_DELETE_PROFILE },
    .what = "delete profile",
  };

  if (!set_name (&question, name))
    return bp_error_set (err, -EINVAL, "driver: profile name too long");
  return ask_for_nothing (driver, &question, err);
}

/* ---- Recordings ---- */

int
driver_record_start (struct driver *driver,
                     struct driver_recording *ret_recording,
                     struct bp_error *err)
{
  const struct question question = {
    .request = { .op = BP_OP_RECORD_START },
    .max_reply = RECORDING_ID_SIZE,
    .what = "start a recording",
  };
  CLEANUP_REQUEST struct slow_request *answer = NULL;
  int r;

  r = ask (driver, &question, &answer, err);
  if (r < 0)
    return r;
  if (answer->reply_len != RECORDING_ID_SIZE)
    return failed (&question, -EPROTO, err);
  *ret_recording = (struct driver_recording){
    .id = get_le64 (answer->reply + BP_REPLY_HEADER_SIZE),
    .epoch = answer->answered_epoch,
    .sent_start = answer->windows_sent,
  };
  return 0;
}

int
driver_record_stop (struct driver *driver,
                    const struct driver_recording *recording,
                    uint8_t **ret_data, size_t *ret_len,
                    struct bp_error *err)
{
  const struct question question = {
    .request = { .op = BP_OP_RECORD_STOP, .recording = recording->id },
    .max_reply = BP_PROFILE_MAX_SIZE,
    .epoch = recording->epoch,
    .what = "stop the recording",
  };
  CLEANUP_REQUEST struct slow_request *answer = NULL;
  uint8_t *copy;
  int r;

  r = ask (driver, &question, &answer, err);
  if (r < 0)
    return r;
  copy = malloc (answer->reply_len + 1); /* Never NULL for no bytes. */
  if (copy == NULL)
    return failed (&question, -ENOMEM, err);
  memcpy (copy, reply_text (answer), answer->reply_len);
  *ret_data = copy;
  *ret_len = answer->reply_len;
  return 0;
}

int
driver_record_abort (struct driver *driver,
                     const struct driver_recording *recording,
                     struct bp_error *err)
{
  const struct question question = {
    .request = { .op = BP_OP_RECORD_ABORT, .recording = recording->id },
    .epoch = recording->epoch,
    .what = "abort the recording",
  };

  return ask_for_nothing (driver, &question, err);
}
