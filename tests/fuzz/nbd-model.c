/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The model: from requests to answers. */
#include <config.h>

#include <string.h>

#include "daemon/front/limits.h"
#include "daemon/front/meta-context.h"
#include "fuzz/fuzz.h"
#include "fuzz/nbd-model.h"
#include "fuzz/nbd-server.h"
#include "harness/fake-map.h"
#include "harness/fake-pager.h"
#include "harness/vectors.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

enum {
  EXTENT_SIZE = 8,
  BAD_END = FAKE_BAD_OFFSET + FAKE_BAD_LEN,
};

/* ---- Requests ---- */

static uint32_t
expected_error (const struct nbd_model *model, const struct expected *e)
{
  const bool is_inside =
    e->len > 0 && range_is_within (FAKE_SIZE, e->offset, e->len);
  const uint16_t read_flags = model->is_structured ? NBD_CMD_FLAG_DF : 0;

  switch (e->type) {
  case NBD_CMD_WRITE:
  case NBD_CMD_TRIM:
  case NBD_CMD_WRITE_ZEROES: return NBD_EPERM;
  case NBD_CMD_CACHE: return e->flags == 0 && is_inside ? 0 : NBD_EINVAL;
  case NBD_CMD_BLOCK_STATUS:
    if (model->contexts == 0 || !is_inside ||
        (e->flags & ~NBD_CMD_FLAG_REQ_ONE) != 0)
      return NBD_EINVAL;
    return e->offset == FAKE_BAD_OFFSET ? NBD_EIO : 0;
  case NBD_CMD_READ:
    if ((e->flags & ~read_flags) != 0 || e->len > NBD_MAX_READ || !is_inside)
      return NBD_EINVAL;
    return e->offset < BAD_END && e->offset + e->len > FAKE_BAD_OFFSET
             ? NBD_EIO
             : 0;
  default: return NBD_EINVAL;
  }
}

bool
nbd_model_requests (struct nbd_model *model, const uint8_t *data,
                    size_t size)
{
  uint64_t pos = 0, bytes = 0;

  while (pos + NBD_REQUEST_SIZE <= size &&
         get_be32 (data + pos) == NBD_REQUEST_MAGIC) {
    const uint8_t *p = data + pos;
    struct expected *e = &model->expected[model->nr_expected];

    if (get_be16 (p + 6) == NBD_CMD_DISC) {
      model->is_whole = true;
      return true;
    }
    if (model->nr_expected == NBD_MODEL_MAX_REQUESTS)
      return false;
    e->flags = get_be16 (p + 4);
    e->type = get_be16 (p + 6);
    memcpy (e->cookie, p + 8, NBD_COOKIE_SIZE);
    e->offset = get_be64 (p + 16);
    e->len = get_be32 (p + 24);
    e->error = expected_error (model, e);
    pos += NBD_REQUEST_SIZE + (e->type == NBD_CMD_WRITE ? e->len : 0);
    if (pos > size)
      return true; /* Its payload does not come. */
    if (e->type == NBD_CMD_READ && e->error != NBD_EINVAL)
      bytes += e->len;
    if (bytes > NBD_MODEL_MAX_BYTES)
      return false;
    model->nr_expected++;
  }
  return true;
}

static struct expected *
find (struct nbd_model *model, const uint8_t *cookie)
{
  for (size_t i = 0; i < model->nr_expected; i++)
    if (memcmp (model->expected[i].cookie, cookie, NBD_COOKIE_SIZE) == 0)
      return &model->expected[i];
  MUST (!"an answer that nobody expects");
  return NULL;
}

static void
forget (struct nbd_model *model, struct expected *e)
{
  *e = model->expected[--model->nr_expected];
}

/* ---- Simple replies ---- */

struct content
nbd_model_reply (struct nbd_model *model, const uint8_t *header)
{
  struct expected *e = find (model, header + 8);
  const struct content content = { e->offset, e->len };
  const bool has_content = e->type == NBD_CMD_READ && e->error == 0;

  MUST (e->error == get_be32 (header + 4));
  MUST (!model->is_structured || (e->type != NBD_CMD_READ &&
                                  e->type != NBD_CMD_BLOCK_STATUS));
  forget (model, e);
  return has_content ? content : (struct content){ 0, 0 };
}

/* ---- Chunks ---- */

static uint64_t
scrambled (uint64_t offset)
{
  return splitmix64 (&offset);
}

/* LEN bytes at OFFSET come, which lie in the read and are not corrupt. */
static void
check_content (struct expected *e, uint64_t offset, uint32_t len)
{
  MUST (e->type == NBD_CMD_READ);
  MUST (len > 0 && offset >= e->offset);
  MUST (range_is_within (e->len, offset - e->offset, len));
  MUST (offset >= BAD_END || offset + len <= FAKE_BAD_OFFSET);
  e->received += len;
  e->seams += scrambled (offset) - scrambled (offset + len);
  e->nr_pieces++;
}

static void
check_hole (struct expected *e, uint64_t offset, uint32_t len)
{
  check_content (e, offset, len);
  MUST (bytes_are_zero (nbd_server_image () + offset, len));
}

/* Every byte of EXTENT, which starts at OFFSET, has its flags. */
static void
check_extent (enum map_kind kind, uint64_t offset, const uint8_t *extent)
{
  const uint64_t end = offset + get_be32 (extent);

  for (; offset < end; offset = fake_map_next (offset))
    MUST (context_flags (kind, fake_map_state (kind, offset)) ==
          get_be32 (extent + 4));
}

/* A map of LEN bytes of payload. */
static void
check_map (struct nbd_model *model, struct expected *e, const uint8_t *map,
           uint32_t len)
{
  const uint32_t id = get_be32 (map);
  enum map_kind kind = 0;
  uint64_t covered = 0;

  MUST (e->type == NBD_CMD_BLOCK_STATUS && e->error == 0);
  while (context_id (kind) != id)
    MUST (++kind < NR_MAP_KINDS);
  MUST (model->contexts & ~e->contexts & CONTEXT (kind));
  e->contexts |= CONTEXT (kind);
  MUST (len >= 4 + EXTENT_SIZE && (len - 4) % EXTENT_SIZE == 0);
  if (e->flags & NBD_CMD_FLAG_REQ_ONE)
    MUST (len == 4 + EXTENT_SIZE);
  for (uint32_t pos = 4; pos < len; pos += EXTENT_SIZE) {
    MUST (get_be32 (map + pos) > 0);
    check_extent (kind, e->offset + covered, map + pos);
    covered += get_be32 (map + pos);
    MUST (covered <= e->len);
  }
  MUST (covered == e->len || e->flags & NBD_CMD_FLAG_REQ_ONE);
}

static void
check_error (struct expected *e, uint16_t type, const uint8_t *error,
             uint32_t len)
{
  const uint32_t offset_len = type == NBD_REPLY_TYPE_ERROR_OFFSET ? 8 : 0;

  MUST (len >= 6 && len == 6 + get_be16 (error + 4) + offset_len);
  MUST (e->error != 0 && get_be32 (error) == e->error);
  if (offset_len > 0) {
    const uint64_t offset = get_be64 (error + len - 8);

    MUST (e->error == NBD_EIO);
    MUST (offset >= MAX (e->offset, FAKE_BAD_OFFSET));
    MUST (offset < MIN (e->offset + e->len, BAD_END));
  }
  e->has_failed = true;
}

/* The last chunk of E has come. */
static void
check_end (const struct nbd_model *model, const struct expected *e)
{
  const bool has_whole = !(e->flags & NBD_CMD_FLAG_DF);
  uint64_t end = e->offset + e->len;

  MUST (e->has_failed == (e->error != 0));
  if (e->type == NBD_CMD_BLOCK_STATUS && e->error == 0)
    MUST (e->contexts == model->contexts);
  if (e->type != NBD_CMD_READ || e->error == NBD_EINVAL)
    return;
  MUST (has_whole || e->nr_pieces <= 1);
  if (e->error != 0) {
    /* What precedes the failure, unless other parts were overtaken. */
    end = MAX (e->offset, FAKE_BAD_OFFSET);
    if (!has_whole || e->len > default_front_limits.part_bytes)
      return;
  }
  MUST (e->received == end - e->offset);
  MUST (e->seams == scrambled (e->offset) - scrambled (end));
}

uint32_t
nbd_model_head (const uint8_t *header)
{
  const uint32_t len = get_be32 (header + 16);

  if (get_be16 (header + 6) != NBD_REPLY_TYPE_OFFSET_DATA)
    return len;
  MUST (len > 8);
  return 8;
}

struct content
nbd_model_chunk (struct nbd_model *model, const uint8_t *chunk)
{
  const uint16_t flags = get_be16 (chunk + 4);
  const uint16_t type = get_be16 (chunk + 6);
  const uint32_t len = get_be32 (chunk + 16);
  const uint8_t *payload = chunk + NBD_CHUNK_HEADER_SIZE;
  struct expected *e = find (model, chunk + 8);
  struct content content = { 0, 0 };

  MUST (model->is_structured && (flags & ~NBD_REPLY_FLAG_DONE) == 0);
  switch (type) {
  case NBD_REPLY_TYPE_NONE:
    MUST (len == 0 && (flags & NBD_REPLY_FLAG_DONE));
    break;
  case NBD_REPLY_TYPE_OFFSET_DATA:
    content = (struct content){ get_be64 (payload), len - 8 };
    check_content (e, content.offset, content.len);
    break;
  case NBD_REPLY_TYPE_OFFSET_HOLE:
    MUST (len == 12);
    check_hole (e, get_be64 (payload), get_be32 (payload + 8));
    break;
  case NBD_REPLY_TYPE_BLOCK_STATUS:
    check_map (model, e, payload, len);
    break;
  default:
    MUST (type == NBD_REPLY_TYPE_ERROR || type == NBD_REPLY_TYPE_ERROR_OFFSET);
    check_error (e, type, payload, len);
  }
  if (flags & NBD_REPLY_FLAG_DONE) {
    check_end (model, e);
    forget (model, e);
  }
  return content;
}
