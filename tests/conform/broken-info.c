/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The broken server's INFO, GO and LIST. */
#include <config.h>

#include <string.h>

#include "conform/broken.h"
#include "conform/protocol.h"
#include "lib/base/bytes.h"

enum {
  EXPORT_ITEM = 12,
  BLOCK_SIZE_ITEM = 14,
};

/* u32 length, name, u16 count, count times u16. */
struct info_request {
  const uint8_t *name;
  size_t name_len;
  unsigned count;
  const uint8_t *list;
};

static bool
name_fits (uint32_t name_len, size_t len)
{
  if (has_bug (BUG_INFO_NAME_WRAPS))
    return name_len + 6 <= len;
  return name_len <= len - 6;
}

/* Returns false if it is malformed. */
static bool
parse (const uint8_t *data, size_t len, struct info_request *request)
{
  uint32_t name_len;

  *request = (struct info_request){ .name = data };
  if (len < 6) {
    request->name = (const uint8_t *) "disk";
    request->name_len = 4;
    return has_bug (BUG_INFO_SHORT_TAKEN);
  }
  name_len = get_be32 (data);
  if (!name_fits (name_len, len)) {
    if (!has_bug (BUG_INFO_NAME_UNCHECKED))
      return false;
    name_len = (uint32_t) len - 6;
  }
  if (name_len > len - 6)
    name_len = (uint32_t) len - 6; /* It had wrapped. */
  request->name = data + 4;
  request->name_len = name_len;
  request->count = get_be16 (data + 4 + name_len);
  request->list = data + 6 + name_len;
  len -= 6 + name_len;
  if (request->count > len / 2 && has_bug (BUG_INFO_COUNT_UNCHECKED))
    request->count = (unsigned) len / 2;
  return len == 2 * (size_t) request->count ||
         (len > 2 * (size_t) request->count &&
          has_bug (BUG_INFO_TRAILING_TAKEN));
}

static void
send_export_item (struct client *client, uint32_t option)
{
  uint8_t item[EXPORT_ITEM + 1] = { 0 };
  uint16_t flags = export_flags (client);

  if (option == OPT_GO && has_bug (BUG_GO_OTHER_FLAGS))
    flags |= EXPORT_ROTATIONAL;
  put_be16 (item, INFO_EXPORT);
  put_be64 (item + 2, client->size);
  put_be16 (item + 10, flags);
  reply_option (client, option, REP_INFO, item,
                EXPORT_ITEM + has_bug (BUG_EXPORT_ITEM_LONG));
}

static void
send_block_size_item (struct client *client, uint32_t option)
{
  uint8_t item[BLOCK_SIZE_ITEM + 2] = { 0 };
  uint32_t minimum = 1, preferred = 4096, maximum = UINT32_MAX;

  if (has_bug (BUG_MINIMUM_3))
    minimum = 3;
  if (has_bug (BUG_MINIMUM_NOT_KEPT) || has_bug (BUG_EXTENT_OF_HALF_A_BLOCK))
    minimum = 512;
  if (has_bug (BUG_SIZE_NO_MULTIPLE))
    minimum = preferred = 8192;
  if (has_bug (BUG_PREFERRED_256))
    preferred = 256;
  if (has_bug (BUG_MAXIMUM_SMALL))
    maximum = 2048;
  if (has_bug (BUG_MAXIMUM_NOT_KEPT))
    maximum = 1 << 19;
  put_be16 (item, INFO_BLOCK_SIZE);
  put_be32 (item + 2, minimum);
  put_be32 (item + 6, preferred);
  put_be32 (item + 10, maximum);
  reply_option (client, option, REP_INFO, item,
                BLOCK_SIZE_ITEM + 2 * has_bug (BUG_BLOCK_ITEM_LONG));
}

static void
send_name_item (struct client *client, uint32_t option)
{
  uint8_t item[] = { 0, INFO_NAME, 'd', 'i', 's', 'k' };

  if (has_bug (BUG_INFO_NAME_NUL))
    item[3] = '\0';
  reply_option (client, option, REP_INFO, item, sizeof item);
}

static bool
send_answer (struct client *client, uint32_t option,
             const struct info_request *request)
{
  static const uint8_t zeroes[EXPORT_NAME_ZEROES];

  if (!has_bug (BUG_EXPORT_ITEM_MISSING) &&
      (request->count > 0 || !has_bug (BUG_EXPORT_ITEM_ON_REQUEST)))
    send_export_item (client, option);
  if (has_bug (BUG_ITEM_TWICE))
    send_export_item (client, option);
  for (unsigned i = 0; i < request->count; i++) {
    const uint16_t type = get_be16 (request->list + 2 * (size_t) i);

    if (type == INFO_NAME)
      send_name_item (client, option);
    else if (type == INFO_BLOCK_SIZE)
      send_block_size_item (client, option);
    else if (type > INFO_BLOCK_SIZE &&
             has_bug (BUG_UNKNOWN_REQUEST_REFUSED)) {
      reply_option (client, option, REP_ERR_INVALID, NULL, 0);
      return false;
    }
  }
  reply_option (client, option, REP_ACK, NULL, 0);
  if (option == OPT_INFO && has_bug (BUG_INFO_CLEARS_SELECTION))
    memset (client->is_selected, 0, sizeof client->is_selected);
  if (option == OPT_GO && has_bug (BUG_GO_PADDING) &&
      !(client->flags & FLAG_NO_ZEROES))
    client_send (client, zeroes, sizeof zeroes);
  return option == OPT_GO;
}

/* Bugs in what is done with names. */
static bool
is_served (struct client *client, const struct info_request *request)
{
  const size_t len = request->name_len;

  if (len == 0 && has_bug (BUG_EMPTY_NAME_CLOSES))
    client_leave ();
  if (len == MAX_STRING && has_bug (BUG_LONGEST_NAME_CLOSES))
    client_leave ();
  if (memchr (request->name, '\0', len) && has_bug (BUG_NUL_NAME_HANGS))
    client_skip (client, UINT64_MAX); /* Until the client has had enough. */
  return is_our_export (request->name, len) ||
         (len > MAX_STRING && has_bug (BUG_OVERLONG_NAME_SERVED)) ||
         has_bug (BUG_INFO_NAME_UNCHECKED) || has_bug (BUG_INFO_NAME_WRAPS);
}

bool
handle_info (struct client *client, uint32_t option, const uint8_t *data,
             size_t len)
{
  struct info_request request;
  uint32_t error = 0;

  if (has_bug (BUG_NO_GO))
    error = REP_ERR_UNSUP;
  else if (client->has_failed_go && has_bug (BUG_FAILED_GO_IS_THE_END))
    error = REP_ERR_POLICY;
  else if (!parse (data, len, &request))
    error = REP_ERR_INVALID;
  else if (!is_served (client, &request))
    error = has_bug (BUG_UNKNOWN_EXPORT_INVALID) ? REP_ERR_INVALID
                                                 : REP_ERR_UNKNOWN;
  if (error == 0)
    return send_answer (client, option, &request);
  client->has_failed_go |= option == OPT_GO;
  reply_option (client, option, error, NULL, 0);
  return false;
}

/* ---- LIST ---- */

static void
send_listed (struct client *client, const char *name)
{
  uint8_t reply[64];
  const size_t len = strlen (name);

  put_be32 (reply, (uint32_t) len + has_bug (BUG_LIST_NAME_LENGTH));
  memcpy (reply + 4, name, len);
  if (has_bug (BUG_LIST_NAME_NUL))
    reply[5] = '\0';
  reply_option (client, OPT_LIST, REP_SERVER, reply, 4 + len);
}

void
handle_list (struct client *client, size_t len)
{
  if (len > 0 && !has_bug (BUG_LIST_DATA_TAKEN)) {
    reply_option (client, OPT_LIST, REP_ERR_INVALID, NULL, 0);
    return;
  }
  send_listed (client, "disk");
  if (has_bug (BUG_LISTED_TWICE))
    send_listed (client, "disk");
  if (has_bug (BUG_LISTED_GHOST))
    send_listed (client, "ghost");
  reply_option (client, OPT_LIST, REP_ACK, "data",
                has_bug (BUG_LIST_ACK_DATA) ? 4 : 0);
}
