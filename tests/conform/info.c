/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Asking INFO and GO, and taking the answer apart. */
#include <config.h>

#include "conform/check.h"
#include "conform/info.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "lib/base/bytes.h"

enum {
  EXPORT_ITEM = 12,     /* Bytes, with the type. */
  BLOCK_SIZE_ITEM = 14, /* Likewise. */
};

static void
take_item (struct info *info, const struct option_reply *reply)
{
  struct info_item *item;

  if (reply->len < 2)
    fail ("expected an information type in NBD_REP_INFO, got %u bytes",
          reply->len);
  if (info->nr_items == MAX_INFO_ITEMS)
    fail ("expected a few NBD_REP_INFO replies, got more than %d",
          MAX_INFO_ITEMS);
  item = &info->items[info->nr_items++];
  *item = (struct info_item){
    .type = get_be16 (reply->data),
    .len = reply->len,
    .data = reply->data + 2,
  };
  if (item->type == INFO_EXPORT && item->len >= EXPORT_ITEM) {
    info->has_export = true;
    info->size = get_be64 (item->data);
    info->flags = get_be16 (item->data + 8);
  }
  if (item->type == INFO_BLOCK_SIZE && item->len >= BLOCK_SIZE_ITEM) {
    info->has_block_size = true;
    info->min_block = get_be32 (item->data);
    info->preferred_block = get_be32 (item->data + 4);
    info->max_block = get_be32 (item->data + 8);
  }
}

void
recv_info (struct session *session, uint32_t option, struct info *info)
{
  struct option_reply reply;

  *info = (struct info){ 0 };
  while (1) {
    if (!recv_option_reply_or_end (session, option, &reply)) {
      info->is_closed = true;
      return;
    }
    if (reply.type != REP_INFO)
      break;
    take_item (info, &reply);
  }
  info->final = reply.type;
  if (reply.type != REP_ACK && !is_error_reply (reply.type))
    fail ("expected NBD_REP_ACK or an error to end %s, got %s",
          option_name (option), reply_name (reply.type));
}

void
ask_info_of (struct session *session, uint32_t option, const void *name,
             size_t name_len, const uint16_t *requests, unsigned count,
             struct info *info)
{
  struct option_data *data = take_memory (sizeof *data);

  put_u32 (data, (uint32_t) name_len);
  put_bytes (data, name, name_len);
  put_u16 (data, (uint16_t) count);
  for (unsigned i = 0; i < count; i++)
    put_u16 (data, requests[i]);
  send_option (session, option, data->bytes, data->len);
  recv_info (session, option, info);
}

void
ask_info (struct session *session, uint32_t option, struct info *info)
{
  const struct uri *uri = session->target->uri;
  static const uint16_t requests[] = { INFO_BLOCK_SIZE };

  ask_info_of (session, option, uri->export, uri->export_len, requests, 1,
               info);
}

void
expect_info_ack (const struct info *info, uint32_t option)
{
  if (info->is_closed)
    fail ("expected NBD_REP_ACK to %s, got the end of the connection",
          option_name (option));
  if (info->final != REP_ACK)
    fail ("expected NBD_REP_ACK to %s, got %s", option_name (option),
          reply_name (info->final));
  if (!info->has_export)
    fail ("expected an NBD_INFO_EXPORT before NBD_REP_ACK to %s, got none",
          option_name (option));
}

const struct info_item *
info_find (const struct info *info, uint16_t type)
{
  for (unsigned i = 0; i < info->nr_items; i++)
    if (info->items[i].type == type)
      return &info->items[i];
  return NULL;
}

struct session *
begin_info (const struct target *target)
{
  expect_export (target);
  if (target->facts->has_no_go)
    skip ("the server has no NBD_OPT_INFO");
  return session_begin (target);
}
