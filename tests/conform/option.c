/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The frame of option haggling: what every option and reply has. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "conform/check.h"
#include "conform/info.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/utf8.h"
#include "lib/base/bytes.h"

enum {
  MAX_REPLY_DATA = 16 << 20, /* Bytes; more cannot be meant. */
};

/* ---- Sending ---- */

void
put_bytes (struct option_data *data, const void *bytes, size_t len)
{
  if (len > sizeof data->bytes - data->len)
    fail ("%zu bytes of option data: too many for this suite",
          data->len + len);
  if (len > 0)
    memcpy (data->bytes + data->len, bytes, len);
  data->len += len;
}

void
put_u16 (struct option_data *data, uint16_t value)
{
  uint8_t bytes[2];

  put_be16 (bytes, value);
  put_bytes (data, bytes, sizeof bytes);
}

void
put_u32 (struct option_data *data, uint32_t value)
{
  uint8_t bytes[4];

  put_be32 (bytes, value);
  put_bytes (data, bytes, sizeof bytes);
}

void
send_option_header (struct session *session, uint64_t magic,
                    uint32_t option, uint32_t len)
{
  uint8_t header[OPTION_HEADER_SIZE];

  put_be64 (header, magic);
  put_be32 (header + 8, option);
  put_be32 (header + 12, len);
  trace ("-> %s, %" PRIu32 " bytes", option_name (option), len);
  channel_send (&session->channel, header, sizeof header);
}

void
send_option (struct session *session, uint32_t option, const void *data,
             size_t len)
{
  send_option_header (session, OPTION_MAGIC, option, (uint32_t) len);
  channel_send (&session->channel, data, len);
}

/* ---- Receiving ---- */

bool
recv_option_reply_or_end (struct session *session, uint32_t option,
                          struct option_reply *ret_reply)
{
  uint8_t header[OPTION_REPLY_SIZE];
  struct option_reply reply;

  if (!channel_recv_or_end (&session->channel, header, sizeof header,
                            "a reply to an option"))
    return false;
  reply.type = get_be32 (header + 12);
  reply.len = get_be32 (header + 16);
  trace ("<- %s to %s, %" PRIu32 " bytes", reply_name (reply.type),
         option_name (get_be32 (header + 8)), reply.len);
  if (get_be64 (header) != OPTION_REPLY_MAGIC)
    fail ("expected the magic number of option replies, 0x%016" PRIx64
          ", got 0x%016" PRIx64,
          OPTION_REPLY_MAGIC, get_be64 (header));
  if (get_be32 (header + 8) != option)
    fail ("expected a reply to %s, got one to %s", option_name (option),
          option_name (get_be32 (header + 8)));
  if (reply.len > MAX_REPLY_DATA)
    fail ("expected a reply of a sane length, got %" PRIu32 " bytes",
          reply.len);
  reply.data = take_memory (reply.len);
  if (reply.len > 0)
    channel_recv (&session->channel, reply.data, reply.len,
                  "the data of a reply to an option");
  *ret_reply = reply;
  return true;
}

void
recv_option_reply (struct session *session, uint32_t option,
                   struct option_reply *ret_reply)
{
  if (!recv_option_reply_or_end (session, option, ret_reply))
    fail ("expected a reply to %s, got the end of the connection",
          option_name (option));
}

bool
is_error_reply (uint32_t type)
{
  return type & REP_ERROR_BIT;
}

void
expect_ack (struct session *session, uint32_t option)
{
  struct option_reply reply;

  recv_option_reply (session, option, &reply);
  if (reply.type != REP_ACK)
    fail ("expected NBD_REP_ACK to %s, got %s", option_name (option),
          reply_name (reply.type));
  expect_u64 ("length of NBD_REP_ACK", 0, reply.len);
}

void
expect_refused (struct session *session, uint32_t option, uint32_t wanted,
                const char *what)
{
  struct option_reply reply;

  if (!recv_option_reply_or_end (session, option, &reply))
    return;
  if (!is_error_reply (reply.type))
    fail ("%s: expected %s, got %s", what, reply_name (wanted),
          reply_name (reply.type));
  expect_string ("the message of an error reply", reply.data, reply.len);
  should (reply.type == wanted, "%s: expected %s, got %s", what,
          reply_name (wanted), reply_name (reply.type));
  expect_options_go_on (session, what);
}

void
expect_options_go_on (struct session *session, const char *after)
{
  struct info info;

  trace ("-- the session must go on after %s", after);
  if (session->target->facts->has_no_go) {
    send_option (session, OPT_LIST, "", 0);
    while (1) {
      struct option_reply reply;

      recv_option_reply (session, OPT_LIST, &reply);
      if (reply.type != REP_SERVER)
        return;
    }
  }
  ask_info (session, OPT_INFO, &info);
  expect_info_ack (&info, OPT_INFO);
}

void
expect_string (const char *what, const uint8_t *text, size_t len)
{
  if (len > MAX_STRING)
    fail ("%s: expected at most %d bytes, got %zu", what, MAX_STRING, len);
  if (memchr (text, '\0', len) != NULL)
    fail ("%s: expected no NUL in it, got one", what);
  if (!utf8_is_valid (text, len))
    fail ("%s: expected UTF-8, got other bytes", what);
  should (len <= MAX_USUAL_STRING, "%s: expected at most %d bytes, got %zu",
          what, MAX_USUAL_STRING, len);
}
