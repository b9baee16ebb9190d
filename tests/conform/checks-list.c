/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* NBD_OPT_LIST. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "conform/check.h"
#include "conform/info.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "lib/base/bytes.h"

enum {
  MAX_LISTED = 1024, /* Exports looked at. */
  MAX_OPENED = 8,    /* And asked for. */
};

struct listed {
  const uint8_t *data; /* Of the reply: u32 length, name, description. */
  uint32_t len;
};

struct listing {
  unsigned count; /* Exports; the first MAX_LISTED are kept. */
  struct listed list[MAX_LISTED];
};

static uint32_t
name_len (const struct listed *listed)
{
  return listed->len < 4 ? 0 : get_be32 (listed->data);
}

/* Skips if the server's policy is not to list. */
static struct listing *
ask_list (struct session *session)
{
  struct listing *listing = take_memory (sizeof *listing);
  struct option_reply reply;

  send_option (session, OPT_LIST, NULL, 0);
  while (1) {
    recv_option_reply (session, OPT_LIST, &reply);
    if (reply.type != REP_SERVER)
      break;
    if (listing->count++ < MAX_LISTED)
      listing->list[listing->count - 1] =
        (struct listed){ .data = reply.data, .len = reply.len };
  }
  if (reply.type == REP_ERR_POLICY)
    skip ("the server's policy is not to list its exports");
  expect (reply.type == REP_ACK,
          "expected NBD_REP_ACK after the last export, got %s",
          reply_name (reply.type));
  expect_u64 ("length of NBD_REP_ACK", 0, reply.len);
  if (listing->count > MAX_LISTED)
    listing->count = MAX_LISTED;
  return listing;
}

static void
list_ends_with_ack (const struct target *target)
{
  struct session *session = session_begin (target);

  ask_list (session);
  expect_options_go_on (session, "NBD_OPT_LIST");
}

static void
name_fits_the_reply (const struct target *target)
{
  const struct listing *listing = ask_list (session_begin (target));

  for (unsigned i = 0; i < listing->count; i++) {
    const struct listed *listed = &listing->list[i];

    expect (listed->len >= 4,
            "export %u: expected at least 4 bytes, got %" PRIu32, i,
            listed->len);
    expect (name_len (listed) <= listed->len - 4,
            "export %u: expected a name of at most %" PRIu32
            " bytes, got %" PRIu32,
            i, listed->len - 4, name_len (listed));
  }
}

static void
names_are_strings (const struct target *target)
{
  const struct listing *listing = ask_list (session_begin (target));

  for (unsigned i = 0; i < listing->count; i++) {
    const struct listed *listed = &listing->list[i];
    const uint32_t len = name_len (listed);

    if (listed->len < 4 || len > listed->len - 4)
      continue;
    expect_string ("the name of an export", listed->data + 4, len);
    expect_string ("the description of an export", listed->data + 4 + len,
                   listed->len - 4 - len);
  }
}

static void
each_export_is_listed_once (const struct target *target)
{
  const struct listing *listing = ask_list (session_begin (target));

  for (unsigned i = 0; i < listing->count; i++)
    for (unsigned j = 0; j < i; j++) {
      const struct listed *a = &listing->list[i], *b = &listing->list[j];

      if (name_len (a) == name_len (b) && name_len (a) <= a->len - 4 &&
          memcmp (a->data + 4, b->data + 4, name_len (a)) == 0)
        fail ("expected one reply for each export, got two for '%.*s'",
              (int) name_len (a), (const char *) a->data + 4);
    }
}

static void
listed_exports_are_known (const struct target *target)
{
  struct session *session = session_begin (target);
  const struct listing *listing = ask_list (session);

  if (target->facts->has_no_go)
    skip ("the server has no NBD_OPT_INFO");
  for (unsigned i = 0; i < listing->count && i < MAX_OPENED; i++) {
    const struct listed *listed = &listing->list[i];
    struct info info;

    ask_info_of (session, OPT_INFO, listed->data + 4, name_len (listed),
                 NULL, 0, &info);
    expect (!info.is_closed && info.final != REP_ERR_UNKNOWN,
            "the listed export '%.*s': expected NBD_REP_ACK to "
            "NBD_OPT_INFO, got %s",
            (int) name_len (listed), (const char *) listed->data + 4,
            info.is_closed ? "the end of the connection"
                           : reply_name (info.final));
  }
}

static void
list_with_data_is_refused (const struct target *target)
{
  struct session *session = session_begin (target);
  struct option_reply reply;

  send_option (session, OPT_LIST, "data", 4);
  do
    if (!recv_option_reply_or_end (session, OPT_LIST, &reply)) {
      should (false, "expected NBD_REP_ERR_INVALID, got the end of the "
                     "connection");
      return;
    }
  while (reply.type == REP_SERVER);
  if (reply.type == REP_ERR_POLICY)
    skip ("the server's policy is not to list its exports");
  should (reply.type == REP_ERR_INVALID,
          "expected NBD_REP_ERR_INVALID, got %s", reply_name (reply.type));
  expect_options_go_on (session, "an NBD_OPT_LIST with data");
}

/* clang-format off */
const struct check list_checks[] = {
  { "list/it-ends-with-an-acknowledgement", LEVEL_MUST, "Option types",
    "`NBD_OPT_LIST`: Return zero or more `NBD_REP_SERVER` replies, one for "
    "each export, followed by `NBD_REP_ACK` or an error",
    list_ends_with_ack },
  { "list/a-name-fits-its-reply", LEVEL_MUST, "Option reply types",
    "`NBD_REP_SERVER`: 32 bits, length of name (unsigned); MUST be no "
    "larger than the reply packet header length - 4",
    name_fits_the_reply },
  { "list/names-are-strings", LEVEL_MUST, "Conventions",
    "that string is a sequence of UTF-8 code points, which is not `NUL` "
    "terminated, MUST NOT contain `NUL` characters, SHOULD be no longer "
    "than 256 bytes and MUST be no longer than 4096 bytes",
    names_are_strings },
  { "list/each-export-is-listed-once", LEVEL_MUST, "Option types",
    "zero or more `NBD_REP_SERVER` replies, one for each export",
    each_export_is_listed_once },
  { "list/what-is-listed-is-known", LEVEL_MUST, "Option reply types",
    "`NBD_REP_SERVER`: String, name of the export, as expected by "
    "`NBD_OPT_EXPORT_NAME`, `NBD_OPT_INFO`, or `NBD_OPT_GO`",
    listed_exports_are_known },
  { "list/data-is-refused", LEVEL_SHOULD, "Option types",
    "`NBD_OPT_LIST`: The client MUST NOT send any additional data with the "
    "option, and the server SHOULD reject a request that includes data with "
    "`NBD_REP_ERR_INVALID`.",
    list_with_data_is_refused },
  { 0 },
};
/* clang-format on */
