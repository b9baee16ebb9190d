/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* One function for each kind of request.  Each returns 0 or the negative
 * errno that becomes the reply's status; on success it may have filled in
 * a payload.  The table at the end names them.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "nbdkit-plugin/requests.h"

enum {
  MAX_PAYLOAD = BP_AREA_SIZE - BP_REPLY_HEADER_SIZE
};

/* A payload of LEN zeros, or NULL. */
static uint8_t *
make_payload (struct reply *reply, size_t len)
{
  assert (len <= MAX_PAYLOAD);
  reply->payload = calloc (1, MAX (len, (size_t) 1));
  reply->len = reply->payload ? len : 0;
  return reply->payload;
}

/* TEXT becomes the payload; takes ownership on success. */
static int
reply_text (struct reply *reply, char **text, struct bp_error *err)
{
  const size_t len = strlen (*text);

  if (len > MAX_PAYLOAD)
    return bp_error_set (err, -ERANGE, "reply: larger than %d bytes",
                         MAX_PAYLOAD);
  reply->payload = (uint8_t *) steal_ptr (text);
  reply->len = len;
  return 0;
}

static int
refuse_profile_write (const struct session *session, struct bp_error *err)
{
  if (session->config->profiles_writable)
    return 0;
  return bp_error_set (err, -EROFS, "profiles: profiles=ro: not written");
}

/* ---- Keys ---- */

/* nbdkit -D blobpager.keys=1: a line for each key opened and closed. */
NBDKIT_DLL_PUBLIC int blobpager_debug_keys = 0;

static void
debug_opened (const struct session *session,
              const struct bp_request *request,
              const struct bp_open_result *results)
{
  struct bp_open_item item;
  char hex[BP_ROOT_HEX_SIZE];

  for (uint32_t i = 0; i < request->count; i++) {
    bp_request_open_item (request, i, &item);
    nbdkit_debug ("session %s: open %" PRIu64 " %s: %d", session->id,
                  item.key, bp_root_format (&item.root, hex),
                  results[i].status);
  }
}

static int
run_open (struct session *session, const struct bp_request *request,
          struct reply *reply, struct bp_error *err)
{
  struct bp_open_result results[BP_MAX_BATCH];
  struct bp_error damage;
  uint8_t *out =
    make_payload (reply, (size_t) request->count * BP_OPEN_RESULT_SIZE);

  if (out == NULL)
    return bp_error_set (err, -ENOMEM, "OPEN: %m");
  mapper_open_batch (session->mapper, request, results, &damage);
  if (damage.code != 0)
    nbdkit_error ("session: %s", damage.msg);
  if (blobpager_debug_keys)
    debug_opened (session, request, results);
  for (uint32_t i = 0; i < request->count; i++)
    bp_open_result_encode (&results[i], out + i * BP_OPEN_RESULT_SIZE);
  return 0;
}

static int
run_tree (struct session *session, const struct bp_request *request,
          struct reply *reply, struct bp_error *err)
{
  CLEANUP_MAPPED_BLOB struct mapped_blob *mapped = NULL;
  uint8_t *out;
  int r = mapper_get_key (session->mapper, request->key, &mapped, err);

  if (r < 0)
    return r;
  out = make_payload (reply, (size_t) request->nr * BP_ROOT_SIZE);
  if (out == NULL)
    return bp_error_set (err, -ENOMEM, "TREE: %m");
  return bp_blob_read_tree (mapped_blob_get (mapped), request->level,
                            request->first, request->nr, out, err);
}

static int
run_frames (struct session *session, const struct bp_request *request,
            struct reply *reply, struct bp_error *err)
{
  CLEANUP_MAPPED_BLOB struct mapped_blob *mapped = NULL;
  CLEANUP_FREE uint32_t *frames = NULL;
  uint8_t *out;
  int r = mapper_get_key (session->mapper, request->key, &mapped, err);

  if (r < 0)
    return r;
  frames = calloc (MAX (request->nr, 1u), sizeof *frames);
  out = make_payload (reply, (size_t) request->nr * sizeof *frames);
  if (frames == NULL || out == NULL)
    return bp_error_set (err, -ENOMEM, "FRAMES: %m");
  r = bp_blob_read_frames (mapped_blob_get (mapped), request->first,
                           request->nr, frames, err);
  for (uint32_t i = 0; r == 0 && i < request->nr; i++)
    put_le32 (out + i * sizeof *frames, frames[i]);
  return r;
}

static int
run_close (struct session *session, const struct bp_request *request,
           struct reply *reply, struct bp_error *err)
{
  (void) reply;
  (void) err;
  for (uint32_t i = 0; i < request->count; i++) {
    const uint64_t key = bp_request_close_key (request, i);

    if (blobpager_debug_keys)
      nbdkit_debug ("session %s: close %" PRIu64, session->id, key);
    mapper_close_key (session->mapper, key);
  }
  return 0;
}

/* ---- Recordings ---- */

static int
run_record_start (struct session *session, const struct bp_request *request,
                  struct reply *reply, struct bp_error *err)
{
  uint8_t *out = make_payload (reply, sizeof (uint64_t));
  uint64_t id;
  int r;

  (void) request;
  if (out == NULL)
    return bp_error_set (err, -ENOMEM, "RECORD_START: %m");
  r = recording_start (session->recordings, &id, err);
  if (r == 0)
    put_le64 (out, id);
  return r;
}

static int
run_record_stop (struct session *session, const struct bp_request *request,
                 struct reply *reply, struct bp_error *err)
{
  uint8_t *data = NULL;
  size_t len = 0;
  int r = recording_stop (session->recordings, request->recording, &data,
                          &len, err);

  if (r < 0)
    return r;
  assert (len <= MAX_PAYLOAD);
  reply->payload = data;
  reply->len = len;
  return 0;
}

static int
run_record_abort (struct session *session, const struct bp_request *request,
                  struct reply *reply, struct bp_error *err)
{
  (void) reply;
  return recording_abort (session->recordings, request->recording, err);
}

/* ---- Images ---- */

static int
run_get_image (struct session *session, const struct bp_request *request,
               struct reply *reply, struct bp_error *err)
{
  CLEANUP_FREE char *text = NULL;
  struct bp_tag tag;
  int r =
    bp_store_get_tag (session->config->store, request->name, &tag, err);

  if (r == 0)
    r = bp_tag_encode (&tag, &text, err);
  return r < 0 ? r : reply_text (reply, &text, err);
}

static int
print_tags (FILE *fp, const struct bp_tag *tags, size_t count,
            struct bp_error *err)
{
  fprintf (fp, "{\"images\":[");
  for (size_t i = 0; i < count; i++) {
    CLEANUP_FREE char *text = NULL;
    const int r = bp_tag_encode (&tags[i], &text, err);

    if (r < 0)
      return r;
    fprintf (fp, "%s%s", i > 0 ? "," : "", text);
  }
  fprintf (fp, "]}");
  return 0;
}

static int
run_list_images (struct session *session, const struct bp_request *request,
                 struct reply *reply, struct bp_error *err)
{
  CLEANUP_FREE struct bp_tag *tags = NULL;
  CLEANUP_FREE char *text = NULL;
  size_t count, len;
  FILE *fp;
  int r = bp_store_list_tags (session->config->store, &tags, &count, NULL,
                              err);

  (void) request;
  if (r < 0)
    return r;
  fp = open_memstream (&text, &len);
  if (fp == NULL)
    return bp_error_set (err, -ENOMEM, "LIST_IMAGES: %m");
  r = print_tags (fp, tags, count, err);
  if (fclose (fp) != 0 && r == 0)
    r = bp_error_set (err, -ENOMEM, "LIST_IMAGES: %m");
  return r < 0 ? r : reply_text (reply, &text, err);
}

/* ---- Profiles ---- */

static int
run_get_profile (struct session *session, const struct bp_request *request,
                 struct reply *reply, struct bp_error *err)
{
  CLEANUP_FREE char *meta = NULL;
  CLEANUP_FREE uint8_t *data = NULL;
  uint8_t *bytes;
  size_t data_len, len;
  int r = bp_store_get_profile (session->config->store, request->name,
                                false, &meta, &data, &data_len, err);

  if (r < 0)
    return r;
  r = bp_profile_reply_encode (meta, strlen (meta), data, data_len, &bytes,
                               &len);
  if (r < 0)
    return bp_error_set (err, r, "profile '%s': %m", request->name);
  assert (len <= MAX_PAYLOAD);
  reply->payload = bytes;
  reply->len = len;
  return 0;
}

static int
run_write_profile (struct session *session, const struct bp_request *request,
                   struct reply *reply, struct bp_error *err)
{
  int r = refuse_profile_write (session, err);

  (void) reply;
  if (r < 0)
    return r;
  return bp_store_put_profile (session->config->store, request->name,
                               request->meta, request->meta_len,
                               request->data, request->data_len, err);
}

static int
run_profile_used (struct session *session, const struct bp_request *request,
                  struct reply *reply, struct bp_error *err)
{
  int r = refuse_profile_write (session, err);

  (void) reply;
  if (r < 0)
    return r;
  return bp_store_profile_used (session->config->store, request->name,
                                &request->root, request->meta,
                                request->meta_len, err);
}

static int
run_list_profiles (struct session *session, const struct bp_request *request,
                   struct reply *reply, struct bp_error *err)
{
  CLEANUP_FREE char *text = NULL;
  int r = bp_store_list_profiles (session->config->store, &text, err);

  (void) request;
  return r < 0 ? r : reply_text (reply, &text, err);
}

static int
run_delete_profile (struct session *session,
                    const struct bp_request *request, struct reply *reply,
                    struct bp_error *err)
{
  int r = refuse_profile_write (session, err);

  (void) reply;
  if (r < 0)
    return r;
  return bp_store_delete_profile (session->config->store, request->name,
                                  err);
}

/* ---- The table ---- */

typedef int (*run_fn) (struct session *session,
                       const struct bp_request *request,
                       struct reply *reply, struct bp_error *err);

/* clang-format off */
static const struct {
  const char *name;
  run_fn run;
} requests[] = {
  [BP_OP_HELLO]          = { "HELLO",          NULL },
  [BP_OP_OPEN]           = { "OPEN",           run_open },
  [BP_OP_TREE]           = { "TREE",           run_tree },
  [BP_OP_FRAMES]         = { "FRAMES",         run_frames },
  [BP_OP_CLOSE]          = { "CLOSE",          run_close },
  [BP_OP_RECORD_START]   = { "RECORD_START",   run_record_start },
  [BP_OP_RECORD_STOP]    = { "RECORD_STOP",    run_record_stop },
  [BP_OP_RECORD_ABORT]   = { "RECORD_ABORT",   run_record_abort },
  [BP_OP_GET_IMAGE]      = { "GET_IMAGE",      run_get_image },
  [BP_OP_LIST_IMAGES]    = { "LIST_IMAGES",    run_list_images },
  [BP_OP_GET_PROFILE]    = { "GET_PROFILE",    run_get_profile },
  [BP_OP_WRITE_PROFILE]  = { "WRITE_PROFILE",  run_write_profile },
  [BP_OP_PROFILE_USED]   = { "PROFILE_USED",   run_profile_used },
  [BP_OP_LIST_PROFILES]  = { "LIST_PROFILES",  run_list_profiles },
  [BP_OP_DELETE_PROFILE] = { "DELETE_PROFILE", run_delete_profile },
};
/* clang-format on */

void
request_run (struct session *session, const struct bp_request *request,
             struct reply *ret_reply)
{
  struct bp_error err;
  int r;

  assert (request->op < ARRAY_LEN (requests) && requests[request->op].run);
  *ret_reply = (struct reply){ 0 };
  r = requests[request->op].run (session, request, ret_reply, &err);
  if (r < 0) {
    nbdkit_debug ("session %s: %s: %s", session->id,
                  requests[request->op].name, err.msg);
    free (ret_reply->payload);
    *ret_reply = (struct reply){ .status = r };
  }
}
