/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Requests that make no sense, and the errors that say so. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "conform/check.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/range.h"

enum {
  NO_SUCH_COMMAND = 0x1234,
  MANY_ERRORS = 64,
};

static void
unknown_command_is_invalid (const struct target *target)
{
  static const uint16_t types[] = { NO_SUCH_COMMAND, 9, 0x8000, UINT16_MAX };
  struct session *session = session_open (target);

  for (size_t i = 0; i < ARRAY_LEN (types); i++)
    if (!expect_error (session,
                       send_request (session, make_request (session,
                                                            types[i], 0, 0,
                                                            0)),
                       ERROR_INVAL, "an unknown command"))
      return;
}

/* An unknown command has no payload, whatever its length says. */
static void
length_of_unknown_command_is_no_payload (const struct target *target)
{
  struct session *session = session_open (target);

  expect_error (session,
                send_request (session, make_request (session,
                                                     NO_SUCH_COMMAND, 0, 0,
                                                     4096)),
                ERROR_INVAL, "an unknown command with a length");
}

static struct pending *
send_with_flags (struct session *session, uint16_t type, uint16_t flags)
{
  const struct span span = span_at (session->target, 0, 512);

  return send_request (session, make_request (session, type, flags,
                                              span.offset, span.len));
}

/* An ordinary request but for its FLAGS. */
static void
expect_flags_invalid (const struct target *target, uint16_t flags,
                      const char *what)
{
  struct session *session = session_open (target);

  should_be_invalid (session, send_with_flags (session, CMD_READ, flags),
                     what);
}

static void
unknown_flag_is_invalid (const struct target *target)
{
  expect_flags_invalid (target, CMD_FLAG_UNKNOWN,
                        "NBD_CMD_READ with flag 15");
  expect_flags_invalid (target, 1 << 5, "NBD_CMD_READ with flag 5");
}

static void
flag_of_another_command_is_invalid (const struct target *target)
{
  expect_flags_invalid (target, CMD_FLAG_REQ_ONE,
                        "NBD_CMD_READ with NBD_CMD_FLAG_REQ_ONE");
  expect_flags_invalid (target, CMD_FLAG_NO_HOLE,
                        "NBD_CMD_READ with NBD_CMD_FLAG_NO_HOLE");
  expect_flags_invalid (target, CMD_FLAG_FAST_ZERO,
                        "NBD_CMD_READ with NBD_CMD_FLAG_FAST_ZERO");
}

static void
df_without_structured_replies_is_invalid (const struct target *target)
{
  expect_flags_invalid (target, CMD_FLAG_DF,
                        "NBD_CMD_READ with NBD_CMD_FLAG_DF, without "
                        "structured replies");
}

static void
refused_flag_has_no_payload (const struct target *target)
{
  struct session *session = session_open (target);
  struct pending *pending =
    send_with_flags (session, CMD_READ, CMD_FLAG_UNKNOWN);

  if (!await_reply_or_end (session, pending))
    skip ("the server closes the connection, as it may");
  expect_requests_go_on (session, "a read with an unknown flag");
}

/* The flags are wrong, and the payload still comes. */
static void
write_with_unknown_flag_is_read_over (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, 4096);
  struct pending *pending =
    send_write (session, span.offset, span.len, CMD_FLAG_UNKNOWN);

  if (!await_reply_or_end (session, pending))
    skip ("the server closes the connection, as it may");
  expect (reply_error (pending) != ERROR_NONE,
          "NBD_CMD_WRITE: expected an error, got success");
  expect_requests_go_on (session, "a write with an unknown flag");
}

/* ---- The values ---- */

static bool
is_defined (uint32_t error)
{
  switch (error) {
  case ERROR_PERM:
  case ERROR_IO:
  case ERROR_NOMEM:
  case ERROR_INVAL:
  case ERROR_NOSPC:
  case ERROR_OVERFLOW:
  case ERROR_NOTSUP:
  case ERROR_SHUTDOWN: return true;
  default: return false;
  }
}

/* Each on a connection of its own. */
static void
for_each_error (const struct target *target,
                void (*look) (const struct pending *pending))
{
  const uint64_t size = target->facts->size;
  const struct request requests[] = {
    { .type = CMD_READ, .offset = size, .len = 512 },
    { .type = CMD_READ, .offset = UINT64_MAX, .len = 1 },
    { .type = CMD_READ, .flags = CMD_FLAG_UNKNOWN, .len = 512 },
    { .type = CMD_WRITE, .offset = 0, .len = 0 },
    { .type = CMD_TRIM, .offset = 0, .len = 512 },
    { .type = CMD_TRIM, .offset = size, .len = 512 },
    { .type = CMD_WRITE_ZEROES, .offset = 0, .len = 512 },
    { .type = CMD_CACHE, .offset = size, .len = 512 },
    { .type = CMD_BLOCK_STATUS, .offset = 0, .len = 512 },
    { .type = NO_SUCH_COMMAND },
  };

  for (size_t i = 0; i < ARRAY_LEN (requests); i++) {
    struct session *session = session_open (target);
    struct request request = requests[i];
    struct pending *pending;

    request.cookie = session->next_cookie++;
    pending = send_request (session, request);
    if (await_reply_or_end (session, pending) &&
        reply_error (pending) != ERROR_NONE)
      look (pending);
    channel_close (&session->channel);
  }
}

static void
look_for_defined (const struct pending *pending)
{
  expect (is_defined (reply_error (pending)),
          "%s: expected one of the defined errors, got %" PRIu32,
          request_name (&pending->request), reply_error (pending));
}

static void
errors_are_defined (const struct target *target)
{
  for_each_error (target, look_for_defined);
}

static void
look_for_special (const struct pending *pending)
{
  const uint32_t error = reply_error (pending);

  should (error != ERROR_OVERFLOW && error != ERROR_NOTSUP &&
            error != ERROR_NOMEM,
          "%s: expected an ordinary error, got %s",
          request_name (&pending->request), error_name (error));
}

static void
special_errors_are_for_special_cases (const struct target *target)
{
  for_each_error (target, look_for_special);
}

static void
many_errors_are_survived (const struct target *target)
{
  struct session *session = session_open (target);
  const uint64_t size = target->facts->size;
  struct pending *errors[MANY_ERRORS];

  for (unsigned i = 0; i < MANY_ERRORS; i++)
    errors[i] = send_request (
      session, make_request (session, CMD_READ, 0, size, 512));
  for (unsigned i = 0; i < MANY_ERRORS; i++) {
    if (!await_reply_or_end (session, errors[i]))
      skip ("the server closes the connection, as it may");
    expect (reply_error (errors[i]) != ERROR_NONE,
            "a read beyond the end: expected an error, got success");
  }
  expect_requests_go_on (session, "many reads beyond the end");
}

/* clang-format off */
const struct check error_checks[] = {
  { "errors/an-unknown-command-is-invalid", LEVEL_SHOULD, "Error values",
    "The server SHOULD return `NBD_EINVAL` if it receives an unknown "
    "command.",
    unknown_command_is_invalid },
  { "errors/an-unknown-command-has-no-payload", LEVEL_SHOULD,
    "Request message",
    "C: (*length* bytes of data if the request is of type `NBD_CMD_WRITE`)",
    length_of_unknown_command_is_no_payload },
  { "errors/an-unknown-flag-is-invalid", LEVEL_SHOULD, "Error values",
    "The server SHOULD return `NBD_EINVAL` if it receives an unknown command "
    "flag.",
    unknown_flag_is_invalid },
  { "errors/a-flag-of-another-command-is-invalid", LEVEL_SHOULD,
    "Error values",
    "It also SHOULD return `NBD_EINVAL` if it receives a request with a "
    "flag not explicitly documented as applicable to the given request.",
    flag_of_another_command_is_invalid },
  { "errors/df-without-structured-replies-is-invalid", LEVEL_SHOULD,
    "Error values",
    "It also SHOULD return `NBD_EINVAL` if it receives a request with a "
    "flag not explicitly documented as applicable to the given request.",
    df_without_structured_replies_is_invalid },
  { "errors/a-refused-flag-has-no-payload", LEVEL_MUST, "Request types",
    "The server MAY then initiate a hard disconnect. If it chooses not to, "
    "it MUST NOT send any payload for this request.",
    refused_flag_has_no_payload },
  { "errors/a-write-with-an-unknown-flag-is-read-over", LEVEL_MUST,
    "Request types",
    "The client MUST follow the request header with *length* number of "
    "bytes to be written to the device.",
    write_with_unknown_flag_is_read_over },
  { "errors/they-are-of-the-defined-values", LEVEL_MUST, "Error values",
    "the allowed values for the error field have been restricted to set of "
    "possibilities",
    errors_are_defined },
  { "errors/special-values-are-for-special-cases", LEVEL_SHOULD,
    "Error values",
    "The server SHOULD NOT return `NBD_EOVERFLOW` except as documented in "
    "response to `NBD_CMD_READ` when `NBD_CMD_FLAG_DF` is supported. The "
    "server SHOULD NOT return `NBD_ENOTSUP` except as documented",
    special_errors_are_for_special_cases },
  { "errors/many-are-survived", LEVEL_MUST,
    "Terminating the transmission phase",
    "The client and the server MUST NOT initiate any form of disconnect "
    "other than in one of the above circumstances.",
    many_errors_are_survived },
  { 0 },
};
/* clang-format on */
