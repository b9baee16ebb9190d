/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Encoding of the server's half of the negotiation.
 *
 * Replies to options are appended to a buffer that grows; it is empty
 * again before the next option is looked at, so it never holds more than
 * one option's replies.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/hex.h"
#include "lib/base/range.h"
#include "lib/base/size.h"
#include "lib/tag.h"
#include "daemon/front/meta-context.h"
#include "daemon/front/nbd-protocol.h"
#include "daemon/front/option-reply.h"
#include "daemon/pager/pager.h"

enum {
  MIN_BLOCK = 1,
  PREFERRED_BLOCK = 4096,
};

static uint16_t
transmission_flags (bool structured)
{
  return NBD_FLAG_HAS_FLAGS | NBD_FLAG_READ_ONLY | NBD_FLAG_CAN_MULTI_CONN |
         NBD_FLAG_SEND_CACHE | (structured ? NBD_FLAG_SEND_DF : 0);
}

void
out_free (struct out_buf *out)
{
  free (out->data);
  *out = (struct out_buf){ 0 };
}

/* Make room for LEN more bytes. */
static bool
grow (struct out_buf *out, size_t len)
{
  size_t capacity = MAX (out->capacity, 256);
  uint8_t *data;

  while (capacity - out->len < len)
    capacity *= 2;
  if (capacity == out->capacity)
    return true;
  data = realloc (out->data, capacity);
  if (data == NULL)
    return false;
  out->data = data;
  out->capacity = capacity;
  return true;
}

bool
out_append (struct out_buf *out, const void *data, size_t len)
{
  if (!grow (out, len))
    return false;
  if (len > 0)
    memcpy (out->data + out->len, data, len);
  out->len += len;
  return true;
}

bool
reply_greeting (struct out_buf *out)
{
  uint8_t greeting[NBD_GREETING_SIZE];

  put_be64 (greeting, NBD_MAGIC);
  put_be64 (greeting + 8, NBD_OPTION_MAGIC);
  put_be16 (greeting + 16, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  return out_append (out, greeting, sizeof greeting);
}

bool
reply_option (struct out_buf *out, uint32_t option, uint32_t type,
              const void *data, size_t len)
{
  uint8_t header[NBD_OPTION_REPLY_SIZE];

  if (!grow (out, sizeof header + len))
    return false;
  put_be64 (header, NBD_REPLY_MAGIC);
  put_be32 (header + 8, option);
  put_be32 (header + 12, type);
  put_be32 (header + 16, (uint32_t) len);
  return out_append (out, header, sizeof header) &&
         out_append (out, data, len);
}

bool
reply_option_error (struct out_buf *out, uint32_t option, uint32_t type,
                    const char *message)
{
  return reply_option (out, option, type, message,
                       strnlen (message, NBD_MAX_STRING));
}

bool
reply_listed (struct out_buf *out, const struct bp_tag *tag)
{
  const size_t name_len = strnlen (tag->name, sizeof tag->name);
  char root[BP_ROOT_HEX_SIZE], size[32];
  uint8_t data[4 + BP_NAME_SIZE + 256];
  int n;

  bp_hex_encode (tag->root.bytes, BP_ROOT_SIZE, root);
  put_be32 (data, (uint32_t) name_len);
  memcpy (data + 4, tag->name, name_len);
  n = snprintf ((char *) data + 4 + name_len, 256, "image of %s, root %s",
                bp_size_format (tag->size, size, sizeof size), root);
  return reply_option (out, NBD_OPT_LIST, NBD_REP_SERVER, data,
                       4 + name_len + MIN ((size_t) n, 255));
}

/* An item that is TYPE and a string. */
static bool
reply_info_string (struct out_buf *out, uint32_t option, uint16_t type,
                   const char *text)
{
  uint8_t item[2 + 256];
  const size_t len = strnlen (text, 256);

  put_be16 (item, type);
  memcpy (item + 2, text, len);
  return reply_option (out, option, NBD_REP_INFO, item, 2 + len);
}

bool
reply_info (struct out_buf *out, uint32_t option,
            const struct export_info *info, bool structured,
            bool wants_name, bool wants_description)
{
  uint8_t export[12], block[14];

  put_be16 (export, NBD_INFO_EXPORT);
  put_be64 (export + 2, info->size);
  put_be16 (export + 10, transmission_flags (structured));
  put_be16 (block, NBD_INFO_BLOCK_SIZE);
  put_be32 (block + 2, MIN_BLOCK);
  put_be32 (block + 6, PREFERRED_BLOCK);
  put_be32 (block + 10, NBD_MAX_READ);
  return reply_option (out, option, NBD_REP_INFO, export, sizeof export) &&
         (!wants_name ||
          reply_info_string (out, option, NBD_INFO_NAME, info->name)) &&
         (!wants_description ||
          reply_info_string (out, option, NBD_INFO_DESCRIPTION,
                             info->description)) &&
         reply_option (out, option, NBD_REP_INFO, block, sizeof block);
}

bool
reply_context (struct out_buf *out, uint32_t option, enum map_kind kind,
               bool has_id)
{
  const char *name = context_name (kind);
  uint8_t data[4 + 256];
  const size_t len = strnlen (name, 256);

  put_be32 (data, has_id ? context_id (kind) : 0);
  memcpy (data + 4, name, len);
  return reply_option (out, option, NBD_REP_META_CONTEXT, data, 4 + len);
}

bool
reply_export_name (struct out_buf *out, const struct export_info *info,
                   bool structured, bool no_zeroes)
{
  uint8_t reply[10 + 124] = { 0 };

  put_be64 (reply, info->size);
  put_be16 (reply + 8, transmission_flags (structured));
  return out_append (out, reply, no_zeroes ? 10 : sizeof reply);
}
