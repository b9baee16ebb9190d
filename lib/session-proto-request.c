/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Requests of a session: each op has a row in one table, with a decoder
 * and an encoder that stand side by side below.
 *
 *   HELLO                       u32 version, u32 0
 *   OPEN                        count x (u64 key, root, u32 flags, u32 0)
 *   TREE                        u64 key, u32 level, u32 nr, u64 first
 *   FRAMES                      u64 key, u64 first, u32 nr, u32 0
 *   CLOSE                       count x u64 key
 *   RECORD_STOP, RECORD_ABORT   u64 id
 *   GET_IMAGE, GET_PROFILE,
 *   DELETE_PROFILE              the name
 *   WRITE_PROFILE               u32 name length, u32 metadata length,
 *                               u64 data length, name, metadata, data
 *   PROFILE_USED                u32 name length, u32 metadata length,
 *                               root, name, metadata
 *   the others                  nothing
 *
 * A decoder is handed the payload, all of which must be its own.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "lib/profile.h"
#include "lib/session-proto.h"
#include "lib/store.h"

enum {
  REQUEST_HEADER_SIZE = 8,
  HELLO_SIZE = 8,
  OPEN_ITEM_SIZE = 48,
  TREE_SIZE = 24,
  FRAMES_SIZE = 24,
  KEY_SIZE = 8,
  ID_SIZE = 8,
  WRITE_PROFILE_SIZE = 16, /* Before the name. */
  PROFILE_USED_SIZE = 40,  /* Before the name. */
};

/* Digests of the largest blob's leaf list, and its windows. */
#define MAX_LEAVES (BP_BLOB_MAX_SIZE / BP_BLOCK_SIZE)
#define MAX_WINDOWS (BP_BLOB_MAX_SIZE / BP_WINDOW_SIZE)

/* What an encoder takes beside the request. */
struct batch {
  const struct bp_open_item *items; /* OPEN. */
  const uint64_t *keys;             /* CLOSE. */
};

/* ---- Nothing ---- */

static int
decode_nothing (const uint8_t *p, size_t len, struct bp_request *request)
{
  (void) p;
  (void) request;
  return len == 0 ? 0 : -EINVAL;
}

static size_t
size_nothing (const struct bp_request *request)
{
  (void) request;
  return 0;
}

static void
encode_nothing (const struct bp_request *request, const struct batch *batch,
                uint8_t *p)
{
  (void) request;
  (void) batch;
  (void) p;
}

/* ---- HELLO ---- */

static int
decode_hello (const uint8_t *p, size_t len, struct bp_request *request)
{
  if (len != HELLO_SIZE)
    return -EINVAL;
  request->version = get_le32 (p);
  return request->version > 0 && get_le32 (p + 4) == 0 ? 0 : -EINVAL;
}

static size_t
size_hello (const struct bp_request *request)
{
  (void) request;
  return HELLO_SIZE;
}

static void
encode_hello (const struct bp_request *request, const struct batch *batch,
              uint8_t *p)
{
  (void) batch;
  put_le32 (p, request->version);
  put_le32 (p + 4, 0);
}

/* ---- OPEN ---- */

static bool
is_open_item (const uint8_t *p)
{
  return bp_key_slot (get_le64 (p)) != 0 &&
         (get_le32 (p + 40) & ~(uint32_t) BP_OPEN_WILL_READ) == 0 &&
         get_le32 (p + 44) == 0;
}

static int
decode_open (const uint8_t *p, size_t len, struct bp_request *request)
{
  if (request->count > BP_MAX_BATCH)
    return -ERANGE;
  if (request->count == 0 || len != request->count * OPEN_ITEM_SIZE)
    return -EINVAL;
  for (uint32_t i = 0; i < request->count; i++)
    if (!is_open_item (p + i * OPEN_ITEM_SIZE))
      return -EINVAL;
  request->batch = p;
  return 0;
}

void
bp_request_open_item (const struct bp_request *request, uint32_t i,
                      struct bp_open_item *ret_item)
{
  const uint8_t *p = request->batch + i * OPEN_ITEM_SIZE;

  assert (request->op == BP_OP_OPEN && i < request->count);
  ret_item->key = get_le64 (p);
  memcpy (ret_item->root.bytes, p + 8, BP_ROOT_SIZE);
  ret_item->flags = get_le32 (p + 40);
}

static size_t
size_open (const struct bp_request *request)
{
  return request->count * OPEN_ITEM_SIZE;
}

static void
encode_open (const struct bp_request *request, const struct batch *batch,
             uint8_t *p)
{
  for (uint32_t i = 0; i < request->count; i++, p += OPEN_ITEM_SIZE) {
    const struct bp_open_item *item = &batch->items[i];

    put_le64 (p, item->key);
    memcpy (p + 8, item->root.bytes, BP_ROOT_SIZE);
    put_le32 (p + 40, item->flags);
    put_le32 (p + 44, 0);
  }
}

/* ---- CLOSE ---- */

static int
decode_close (const uint8_t *p, size_t len, struct bp_request *request)
{
  if (request->count > BP_MAX_BATCH)
    return -ERANGE;
  if (request->count == 0 || len != request->count * KEY_SIZE)
    return -EINVAL;
  for (uint32_t i = 0; i < request->count; i++)
    if (get_le64 (p + i * KEY_SIZE) == 0)
      return -EINVAL;
  request->batch = p;
  return 0;
}

uint64_t
bp_request_close_key (const struct bp_request *request, uint32_t i)
{
  assert (request->op == BP_OP_CLOSE && i < request->count);
  return get_le64 (request->batch + i * KEY_SIZE);
}

static size_t
size_close (const struct bp_request *request)
{
  return request->count * KEY_SIZE;
}

static void
encode_close (const struct bp_request *request, const struct batch *batch,
              uint8_t *p)
{
  for (uint32_t i = 0; i < request->count; i++)
    put_le64 (p + i * KEY_SIZE, batch->keys[i]);
}

/* ---- TREE and FRAMES ---- */

static int
decode_tree (const uint8_t *p, size_t len, struct bp_request *request)
{
  if (len != TREE_SIZE)
    return -EINVAL;
  request->key = get_le64 (p);
  request->level = get_le32 (p + 8);
  request->nr = get_le32 (p + 12);
  request->first = get_le64 (p + 16);
  return request->key != 0 && request->level < BP_MERKLE_MAX_LEVELS &&
             request->nr > 0 && request->nr <= BP_MAX_TREE_COUNT &&
             range_is_within (MAX_LEAVES, request->first, request->nr)
           ? 0
           : -EINVAL;
}

static size_t
size_tree (const struct bp_request *request)
{
  (void) request;
  return TREE_SIZE;
}

static void
encode_tree (const struct bp_request *request, const struct batch *batch,
             uint8_t *p)
{
  (void) batch;
  put_le64 (p, request->key);
  put_le32 (p + 8, request->level);
  put_le32 (p + 12, request->nr);
  put_le64 (p + 16, request->first);
}

static int
decode_frames (const uint8_t *p, size_t len, struct bp_request *request)
{
  if (len != FRAMES_SIZE)
    return -EINVAL;
  request->key = get_le64 (p);
  request->first = get_le64 (p + 8);
  request->nr = get_le32 (p + 16);
  return request->key != 0 && request->nr > 0 &&
             request->nr <= BP_MAX_FRAMES_COUNT && get_le32 (p + 20) == 0 &&
             range_is_within (MAX_WINDOWS, request->first, request->nr)
           ? 0
           : -EINVAL;
}

static size_t
size_frames (const struct bp_request *request)
{
  (void) request;
  return FRAMES_SIZE;
}

static void
encode_frames (const struct bp_request *request, const struct batch *batch,
               uint8_t *p)
{
  (void) batch;
  put_le64 (p, request->key);
  put_le64 (p + 8, request->first);
  put_le32 (p + 16, request->nr);
  put_le32 (p + 20, 0);
}

/* ---- RECORD_STOP and RECORD_ABORT ---- */

static int
decode_id (const uint8_t *p, size_t len, struct bp_request *request)
{
  if (len != ID_SIZE)
    return -EINVAL;
  request->recording = get_le64 (p);
  return 0;
}

static size_t
size_id (const struct bp_request *request)
{
  (void) request;
  return ID_SIZE;
}

static void
encode_id (const struct bp_request *request, const struct batch *batch,
           uint8_t *p)
{
  (void) batch;
  put_le64 (p, request->recording);
}

/* ---- Names ---- */

/* The LEN bytes at P into REQUEST, if they are a name of its op's kind. */
static int
decode_name (const uint8_t *p, size_t len, struct bp_request *request)
{
  if (len == 0 || len >= sizeof request->name)
    return -EINVAL;
  memcpy (request->name, p, len);
  request->name[len] = '\0';
  if (strlen (request->name) != len)
    return -EINVAL;
  return (request->op == BP_OP_GET_IMAGE
            ? bp_is_tag_name (request->name)
            : bp_is_profile_name (request->name))
           ? 0
           : -EINVAL;
}

static size_t
size_name (const struct bp_request *request)
{
  return strlen (request->name);
}

static void
encode_name (const struct bp_request *request, const struct batch *batch,
             uint8_t *p)
{
  (void) batch;
  memcpy (p, request->name, strlen (request->name));
}

/* ---- WRITE_PROFILE and PROFILE_USED ---- */

/* Name and metadata at P; the caller has checked that both are there. */
static int
take_name_and_meta (const uint8_t *p, size_t name_len, size_t meta_len,
                    struct bp_request *request)
{
  const int r = decode_name (p, name_len, request);

  if (r < 0)
    return r;
  request->meta = (const char *) p + name_len;
  request->meta_len = meta_len;
  return 0;
}

static int
decode_write_profile (const uint8_t *p, size_t len,
                      struct bp_request *request)
{
  uint64_t name_len, meta_len, data_len;
  int r;

  if (len < WRITE_PROFILE_SIZE)
    return -EINVAL;
  name_len = get_le32 (p);
  meta_len = get_le32 (p + 4);
  data_len = get_le64 (p + 8);
  if (meta_len > BP_PROFILE_META_MAX || data_len > BP_PROFILE_MAX_SIZE)
    return -ERANGE;
  if (WRITE_PROFILE_SIZE + name_len + meta_len + data_len != len)
    return -EINVAL;
  p += WRITE_PROFILE_SIZE;
  r = take_name_and_meta (p, name_len, meta_len, request);
  if (r < 0)
    return r;
  request->data = p + name_len + meta_len;
  request->data_len = data_len;
  return 0;
}

static size_t
size_write_profile (const struct bp_request *request)
{
  return WRITE_PROFILE_SIZE + strlen (request->name) + request->meta_len +
         request->data_len;
}

static uint8_t *
append (uint8_t *p, const void *data, size_t len)
{
  if (len > 0)
    memcpy (p, data, len);
  return p + len;
}

static void
encode_write_profile (const struct bp_request *request,
                      const struct batch *batch, uint8_t *p)
{
  (void) batch;
  put_le32 (p, (uint32_t) strlen (request->name));
  put_le32 (p + 4, (uint32_t) request->meta_len);
  put_le64 (p + 8, request->data_len);
  p = append (p + WRITE_PROFILE_SIZE, request->name, strlen (request->name));
  p = append (p, request->meta, request->meta_len);
  append (p, request->data, request->data_len);
}

static int
decode_profile_used (const uint8_t *p, size_t len,
                     struct bp_request *request)
{
  uint64_t name_len, meta_len;

  if (len < PROFILE_USED_SIZE)
    return -EINVAL;
  name_len = get_le32 (p);
  meta_len = get_le32 (p + 4);
  if (meta_len > BP_PROFILE_META_MAX)
    return -ERANGE;
  if (PROFILE_USED_SIZE + name_len + meta_len != len)
    return -EINVAL;
  memcpy (request->root.bytes, p + 8, BP_ROOT_SIZE);
  return take_name_and_meta (p + PROFILE_USED_SIZE, name_len, meta_len,
                             request);
}

static size_t
size_profile_used (const struct bp_request *request)
{
  return PROFILE_USED_SIZE + strlen (request->name) + request->meta_len;
}

static void
encode_profile_used (const struct bp_request *request,
                     const struct batch *batch, uint8_t *p)
{
  (void) batch;
  put_le32 (p, (uint32_t) strlen (request->name));
  put_le32 (p + 4, (uint32_t) request->meta_len);
  memcpy (p + 8, request->root.bytes, BP_ROOT_SIZE);
  p = append (p + PROFILE_USED_SIZE, request->name, strlen (request->name));
  append (p, request->meta, request->meta_len);
}

/* ---- The table ---- */

struct op_row {
  const char *name;
  int (*decode) (const uint8_t *p, size_t len, struct bp_request *request);
  size_t (*size) (const struct bp_request *request); /* Payload's bytes. */
  void (*encode) (const struct bp_request *request,
                  const struct batch *batch, uint8_t *p);
};

/* clang-format off */
static const struct op_row ops[] = {
#define ROW(op, what) \
  [BP_OP_##op] = { #op, decode_##what, size_##what, encode_##what }
  ROW (HELLO, hello),
  ROW (OPEN, open),
  ROW (TREE, tree),
  ROW (FRAMES, frames),
  ROW (CLOSE, close),
  ROW (RECORD_START, nothing),
  ROW (RECORD_STOP, id),
  ROW (RECORD_ABORT, id),
  ROW (GET_IMAGE, name),
  ROW (LIST_IMAGES, nothing),
  ROW (GET_PROFILE, name),
  ROW (WRITE_PROFILE, write_profile),
  ROW (PROFILE_USED, profile_used),
  ROW (LIST_PROFILES, nothing),
  ROW (DELETE_PROFILE, name),
#undef ROW
};
/* clang-format on */

static const struct op_row *
find_op (uint32_t op)
{
  return op < ARRAY_LEN (ops) && ops[op].decode ? &ops[op] : NULL;
}

int
bp_request_decode (const uint8_t *bytes, size_t len,
                   struct bp_request *ret_request, struct bp_error *err)
{
  struct bp_request request = { 0 };
  const struct op_row *row;
  uint32_t op;
  int r;

  if (len < REQUEST_HEADER_SIZE)
    return bp_error_set (err, -EINVAL, "request of %zu bytes", len);
  op = get_le32 (bytes);
  row = find_op (op);
  if (row == NULL)
    return bp_error_set (err, -EINVAL, "request %u: no such op", op);

  request.op = (enum bp_op) op;
  request.count = get_le32 (bytes + 4);
  if (request.count != 0 && op != BP_OP_OPEN && op != BP_OP_CLOSE)
    return bp_error_set (err, -EINVAL, "request %s: count %u", row->name,
                         request.count);
  r = row->decode (bytes + REQUEST_HEADER_SIZE, len - REQUEST_HEADER_SIZE,
                   &request);
  if (r < 0)
    return bp_error_set (err, r, "request %s: %s", row->name,
                         r == -ERANGE ? "larger than its limit"
                                      : "malformed");
  *ret_request = request;
  return 0;
}

int
bp_request_encode (const struct bp_request *request,
                   const struct bp_open_item *items, const uint64_t *keys,
                   uint8_t **ret_bytes, size_t *ret_len)
{
  const struct op_row *row = find_op (request->op);
  const struct batch batch = { .items = items, .keys = keys };
  uint8_t *bytes;
  size_t len;

  assert (row != NULL);
  len = REQUEST_HEADER_SIZE + row->size (request);
  bytes = malloc (len);
  if (bytes == NULL)
    return -ENOMEM;
  put_le32 (bytes, request->op);
  put_le32 (bytes + 4, request->count);
  row->encode (request, &batch, bytes + REQUEST_HEADER_SIZE);
  *ret_bytes = bytes;
  *ret_len = len;
  return 0;
}
