/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* NBD_OPT_INFO and NBD_OPT_GO: the answers, and the transmission flags in
 * them.
 */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "conform/check.h"
#include "conform/info.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

enum {
  MANY_REQUESTS = 200,
  FIRST_UNKNOWN_REQUEST = 0x4000,
};

static void
info_and_go_are_implemented (const struct target *target)
{
  struct session *session;
  struct info info;

  session = session_begin (target);
  ask_info (session, OPT_INFO, &info);
  expect_info_ack (&info, OPT_INFO);
  ask_info (session, OPT_GO, &info);
  expect_info_ack (&info, OPT_GO);
}

/* Without information requests; a server may insist on block sizes. */
static void
export_item_is_always_sent (const struct target *target)
{
  struct session *session = begin_info (target);
  const struct uri *uri = target->uri;
  struct info info;

  ask_info_of (session, OPT_INFO, uri->export, uri->export_len, NULL, 0,
               &info);
  if (!info.is_closed && info.final == REP_ERR_BLOCK_SIZE_REQD)
    skip ("the server demands that block sizes are requested");
  expect_info_ack (&info, OPT_INFO);
}

static void
export_item_has_12_bytes (const struct target *target)
{
  struct session *session = begin_info (target);
  const struct info_item *item;
  struct info info;

  ask_info (session, OPT_INFO, &info);
  item = info_find (&info, INFO_EXPORT);
  expect (item != NULL, "expected an NBD_INFO_EXPORT, got none");
  expect_u64 ("length of NBD_INFO_EXPORT", 12, item->len);
}

static void
item_appears_once (const struct target *target)
{
  struct session *session = begin_info (target);
  struct info info;

  ask_info (session, OPT_INFO, &info);
  expect_info_ack (&info, OPT_INFO);
  for (unsigned i = 0; i < info.nr_items; i++)
    for (unsigned j = 0; j < i; j++)
      should (info.items[i].type != info.items[j].type,
              "expected information type %u once, got it again",
              info.items[i].type);
}

static void
unknown_requests_are_ignored (const struct target *target)
{
  struct session *session = begin_info (target);
  const struct uri *uri = target->uri;
  uint16_t requests[1 + MANY_REQUESTS] = { INFO_BLOCK_SIZE };
  struct info info;

  for (unsigned i = 1; i < ARRAY_LEN (requests); i++)
    requests[i] = (uint16_t) (FIRST_UNKNOWN_REQUEST + i);
  ask_info_of (session, OPT_INFO, uri->export, uri->export_len, requests, 3,
               &info);
  expect_info_ack (&info, OPT_INFO);
  ask_info_of (session, OPT_INFO, uri->export, uri->export_len, requests,
               ARRAY_LEN (requests), &info);
  expect_info_ack (&info, OPT_INFO);
}

static bool
has_item (const struct info *info, const struct info_item *item)
{
  for (unsigned i = 0; i < info->nr_items; i++)
    if (info->items[i].type == item->type &&
        info->items[i].len == item->len &&
        memcmp (info->items[i].data, item->data, item->len - 2) == 0)
      return true;
  return false;
}

static void
go_says_the_same_as_info (const struct target *target)
{
  static const uint16_t requests[] = { INFO_EXPORT, INFO_NAME,
                                       INFO_DESCRIPTION, INFO_BLOCK_SIZE };
  struct session *session = begin_info (target);
  const struct uri *uri = target->uri;
  struct info info, go;

  ask_info_of (session, OPT_INFO, uri->export, uri->export_len, requests,
               ARRAY_LEN (requests), &info);
  expect_info_ack (&info, OPT_INFO);
  ask_info_of (session, OPT_GO, uri->export, uri->export_len, requests,
               ARRAY_LEN (requests), &go);
  expect_info_ack (&go, OPT_GO);
  expect_u64 ("number of NBD_REP_INFO", info.nr_items, go.nr_items);
  for (unsigned i = 0; i < info.nr_items; i++)
    expect (has_item (&go, &info.items[i]),
            "expected the same information type %u, got another",
            info.items[i].type);
}

static void
go_sends_no_padding (const struct target *target)
{
  struct session session;
  struct info info;

  begin_info (target);
  session_connect (&session, target);
  session_greet (&session, FLAG_FIXED_NEWSTYLE);
  session_secure (&session);
  ask_info (&session, OPT_GO, &info);
  expect_info_ack (&info, OPT_GO);
  expect_requests_go_on (&session, "NBD_OPT_GO without NBD_FLAG_C_NO_ZEROES");
}

static void
names_are_strings (const struct target *target)
{
  static const uint16_t requests[] = { INFO_NAME, INFO_DESCRIPTION,
                                       INFO_BLOCK_SIZE };
  struct session *session = begin_info (target);
  const struct uri *uri = target->uri;
  struct info info;

  ask_info_of (session, OPT_INFO, uri->export, uri->export_len, requests,
               ARRAY_LEN (requests), &info);
  expect_info_ack (&info, OPT_INFO);
  for (unsigned i = 0; i < info.nr_items; i++)
    if (info.items[i].type == INFO_NAME ||
        info.items[i].type == INFO_DESCRIPTION)
      expect_string (info.items[i].type == INFO_NAME
                       ? "NBD_INFO_NAME"
                       : "NBD_INFO_DESCRIPTION",
                     info.items[i].data, info.items[i].len - 2);
}

/* ---- Flags ---- */

static void
has_flags_is_set (const struct target *target)
{
  expect_export (target);
  expect (target->facts->flags & EXPORT_HAS_FLAGS,
          "expected NBD_FLAG_HAS_FLAGS, got transmission flags 0x%x",
          target->facts->flags);
}

static void
df_needs_structured_replies (const struct target *target)
{
  expect_export (target);
  expect (!(target->facts->flags & EXPORT_SEND_DF),
          "expected NBD_FLAG_SEND_DF clear, for structured replies were "
          "not negotiated, got transmission flags 0x%x",
          target->facts->flags);
}

static void
fast_zero_needs_write_zeroes (const struct target *target)
{
  const uint16_t flags = target->facts->flags;

  expect_export (target);
  expect (!(flags & EXPORT_SEND_FAST_ZERO) ||
            flags & EXPORT_SEND_WRITE_ZEROES,
          "expected NBD_FLAG_SEND_FAST_ZERO clear without "
          "NBD_FLAG_SEND_WRITE_ZEROES, got transmission flags 0x%x",
          flags);
}

/* clang-format off */
const struct check info_checks[] = {
  { "info/info-and-go-are-implemented", LEVEL_MUST, "Baseline",
    "The following MUST be implemented by all implementations [...] the "
    "`NBD_OPT_INFO` and `NBD_OPT_GO` messages, with the `NBD_INFO_EXPORT` "
    "response.",
    info_and_go_are_implemented },
  { "info/the-export-item-is-always-sent", LEVEL_MUST, "Option types",
    "the server MUST send at least one `NBD_REP_INFO`, with an "
    "`NBD_INFO_EXPORT` information type",
    export_item_is_always_sent },
  { "info/the-export-item-has-12-bytes", LEVEL_MUST, "Option reply types",
    "`NBD_INFO_EXPORT` (0) [...] *length* MUST be 12",
    export_item_has_12_bytes },
  { "info/an-item-appears-once", LEVEL_SHOULD, "Option reply types",
    "A particular information type SHOULD only appear once for a given "
    "export unless documented otherwise.",
    item_appears_once },
  { "info/unknown-requests-are-ignored", LEVEL_MUST, "Option types",
    "The server MUST ignore any information requests it does not "
    "understand.",
    unknown_requests_are_ignored },
  { "info/go-says-the-same-as-info", LEVEL_MUST, "Option types",
    "If there are no intervening option requests between a successful "
    "`NBD_OPT_INFO` [...] and an `NBD_OPT_GO` with the same parameters "
    "[...], then the server MUST reply with the same set of information",
    go_says_the_same_as_info },
  { "info/go-sends-no-padding", LEVEL_MUST, "Option types",
    "The server MUST NOT send any zero padding bytes after the "
    "`NBD_REP_ACK` data, whether or not the client negotiated the "
    "`NBD_FLAG_C_NO_ZEROES` flag.",
    go_sends_no_padding },
  { "info/names-are-strings", LEVEL_MUST, "Conventions",
    "that string is a sequence of UTF-8 code points, which is not `NUL` "
    "terminated, MUST NOT contain `NUL` characters, SHOULD be no longer "
    "than 256 bytes and MUST be no longer than 4096 bytes",
    names_are_strings },
  { "info/has-flags-is-set", LEVEL_MUST, "Transmission flags",
    "bit 0, `NBD_FLAG_HAS_FLAGS`: MUST always be 1.",
    has_flags_is_set },
  { "info/df-is-clear-without-structured-replies", LEVEL_MUST,
    "Transmission flags",
    "bit 7, `NBD_FLAG_SEND_DF`: [...] MUST leave this flag clear if "
    "structured replies have not been negotiated",
    df_needs_structured_replies },
  { "info/fast-zero-is-clear-without-write-zeroes", LEVEL_MUST,
    "Transmission flags",
    "bit 11, `NBD_FLAG_SEND_FAST_ZERO`: [...] MUST set this transmission "
    "flag to 0 if `NBD_FLAG_SEND_WRITE_ZEROES` is not set",
    fast_zero_needs_write_zeroes },
  { 0 },
};
/* clang-format on */
