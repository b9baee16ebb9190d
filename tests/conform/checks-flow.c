/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Many requests on one connection: cookies, order, packets. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "conform/check.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

enum {
  PIPELINED = 64,
  MANY = 1000,
  SMALL = 512,
  LARGE = 1 << 20,
  NR_LARGE = 16,
  ROUNDS = 16,
};

/* COUNT reads, all sent before the first answer is looked at, then all
 * compared.
 */
static void
read_pipelined (struct session *session, unsigned count, uint32_t len)
{
  struct pending **reads = take_memory (count * sizeof *reads);
  struct span *spans = take_memory (count * sizeof *spans);

  for (unsigned i = 0; i < count; i++) {
    spans[i] = span_at (session->target, (uint64_t) i * len, len);
    reads[i] = send_request (session, make_read (session, spans[i]));
  }
  for (unsigned i = 0; i < count; i++) {
    await_reply (session, reads[i]);
    expect_bytes (session->target, spans[i], reply_bytes (reads[i]));
  }
}

/* ---- Cookies ---- */

static void
cookies_are_echoed (const struct target *target)
{
  static const uint64_t cookies[] = {
    0,
    1,
    UINT64_MAX,
    UINT64_C (0x0102030405060708),
    UINT64_C (0x8000000000000000),
    UINT64_C (0x00000000ffffffff),
    /* What looks like the beginning of other messages. */
    UINT64_C (0x6744669825609513),
    UINT64_C (0x668e33ef00010000),
  };
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, SMALL);

  for (size_t i = 0; i < ARRAY_LEN (cookies); i++) {
    struct request request = make_read (session, span);
    struct pending *pending;

    request.cookie = cookies[i];
    pending = send_request (session, request);
    await_reply (session, pending);
    expect_bytes (target, span, reply_bytes (pending));
  }
}

static void
pipelined_reads_are_sorted_by_cookie (const struct target *target)
{
  read_pipelined (session_open (target), PIPELINED, 4096);
}

static void
pipelined_structured_reads (const struct target *target)
{
  read_pipelined (session_open_structured (target), PIPELINED, 65536);
}

static void
cookie_may_be_used_again (const struct target *target)
{
  struct session *session = session_open (target);

  for (unsigned i = 0; i < PIPELINED; i++) {
    const struct span span = span_at (target, i * 4096, SMALL);
    struct request request = make_read (session, span);
    struct pending *pending;

    request.cookie = 7;
    pending = send_request (session, request);
    await_reply (session, pending);
    expect_bytes (target, span, reply_bytes (pending));
  }
}

/* The same cookie and the same range, in one packet: whichever reply comes
 * first is as good.
 */
static void
equal_cookies_are_both_answered (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, SMALL);
  const struct request request = make_read (session, span);
  uint8_t packet[2 * REQUEST_SIZE];
  struct pending *reads[2];

  for (unsigned i = 0; i < 2; i++) {
    encode_request (&request, packet + (size_t) i * REQUEST_SIZE);
    reads[i] = add_pending (session, &request);
  }
  channel_send (&session->channel, packet, sizeof packet);
  for (unsigned i = 0; i < 2; i++) {
    if (!await_reply_or_end (session, reads[i])) {
      should (false, "two requests of one cookie: expected two replies, got "
                     "the end of the connection");
      return;
    }
    expect_bytes (target, span, reply_bytes (reads[i]));
  }
}

static void
errors_find_their_requests (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, 4096);
  struct pending *reads[PIPELINED];

  for (unsigned i = 0; i < PIPELINED; i++)
    reads[i] = send_request (
      session, i % 2 == 0
                 ? make_read (session, span)
                 : make_request (session, CMD_READ, 0, target->facts->size,
                                 span.len));
  for (unsigned i = 0; i < PIPELINED; i++) {
    if (!await_reply_or_end (session, reads[i]))
      skip ("the server closes the connection after an error, as it may");
    if (i % 2 == 0)
      expect_bytes (target, span, reply_bytes (reads[i]));
    else
      expect (reply_error (reads[i]) != ERROR_NONE,
              "a read beyond the end: expected an error, got success");
  }
}

/* ---- Volume ---- */

static void
thousand_in_flight (const struct target *target)
{
  read_pipelined (session_open (target), MANY, SMALL);
}

static void
large_reads_in_flight (const struct target *target)
{
  read_pipelined (session_open (target), NR_LARGE, LARGE);
}

/* ---- Packets ---- */

static void
several_requests_in_one_packet (const struct target *target)
{
  struct session *session = session_open (target);
  uint8_t packet[PIPELINED * REQUEST_SIZE];
  struct pending *reads[PIPELINED];
  const struct span span = span_at (target, 4096, SMALL);

  for (unsigned i = 0; i < PIPELINED; i++) {
    const struct request request = make_read (session, span);

    encode_request (&request, packet + (size_t) i * REQUEST_SIZE);
    reads[i] = add_pending (session, &request);
  }
  channel_send (&session->channel, packet, sizeof packet);
  for (unsigned i = 0; i < PIPELINED; i++) {
    await_reply (session, reads[i]);
    expect_bytes (target, span, reply_bytes (reads[i]));
  }
}

static void
request_by_single_bytes (const struct target *target)
{
  struct session *session = session_open (target);
  uint8_t bytes[3 * REQUEST_SIZE];
  struct pending *reads[3];
  const struct span span = span_at (target, 0, SMALL);

  for (unsigned i = 0; i < ARRAY_LEN (reads); i++) {
    const struct request request = make_read (session, span);

    encode_request (&request, bytes + (size_t) i * REQUEST_SIZE);
    reads[i] = add_pending (session, &request);
  }
  channel_send_slowly (&session->channel, bytes, sizeof bytes);
  for (unsigned i = 0; i < ARRAY_LEN (reads); i++) {
    await_reply (session, reads[i]);
    expect_bytes (target, span, reply_bytes (reads[i]));
  }
}

/* One and a half, then the other half and another; over and over, for the
 * server may look only when all is there.
 */
static void
packets_end_inside_requests (const struct target *target)
{
  struct session *session = session_open (target);
  const struct span span = span_at (target, 0, SMALL);
  const size_t half = REQUEST_SIZE + REQUEST_SIZE / 2;

  for (unsigned round = 0; round < ROUNDS; round++) {
    uint8_t bytes[3 * REQUEST_SIZE];
    struct pending *reads[3];

    for (unsigned i = 0; i < ARRAY_LEN (reads); i++) {
      const struct request request = make_read (session, span);

      encode_request (&request, bytes + (size_t) i * REQUEST_SIZE);
      reads[i] = add_pending (session, &request);
    }
    channel_send (&session->channel, bytes, half);
    await_reply (session, reads[0]);
    channel_send (&session->channel, bytes + half, sizeof bytes - half);
    await_reply (session, reads[1]);
    await_reply (session, reads[2]);
    expect_bytes (target, span, reply_bytes (reads[2]));
  }
}

static void
request_behind_the_option (const struct target *target)
{
  struct session *session = session_begin (target);
  const struct uri *uri = target->uri;
  uint8_t packet[4096], reply[EXPORT_NAME_REPLY_SIZE + EXPORT_NAME_ZEROES];
  const struct span span = span_at (target, 0, SMALL);
  const struct request request = make_read (session, span);
  const size_t len = OPTION_HEADER_SIZE + uri->export_len;
  struct pending *pending;

  if (len + REQUEST_SIZE > sizeof packet)
    skip ("the export's name is too long");
  put_be64 (packet, OPTION_MAGIC);
  put_be32 (packet + 8, OPT_EXPORT_NAME);
  put_be32 (packet + 12, (uint32_t) uri->export_len);
  memcpy (packet + OPTION_HEADER_SIZE, uri->export, uri->export_len);
  encode_request (&request, packet + len);
  pending = add_pending (session, &request);
  channel_send (&session->channel, packet, len + REQUEST_SIZE);
  if (!channel_recv_or_end (&session->channel, reply,
                            session->handshake_flags & FLAG_NO_ZEROES
                              ? EXPORT_NAME_REPLY_SIZE
                              : sizeof reply,
                            "the reply to NBD_OPT_EXPORT_NAME"))
    skip ("the server refuses NBD_OPT_EXPORT_NAME, as it may");
  await_reply (session, pending);
  expect_bytes (target, span, reply_bytes (pending));
}

/* ---- Broken framing ---- */

static void
wrong_request_magic_is_no_request (const struct target *target)
{
  struct session *session = session_open (target);
  const struct request request =
    make_read (session, span_at (target, 0, SMALL));
  uint8_t wire[REQUEST_SIZE];
  struct pending *pending;

  encode_request (&request, wire);
  put_be32 (wire, REQUEST_MAGIC ^ 1);
  pending = add_pending (session, &request);
  channel_send (&session->channel, wire, sizeof wire);
  if (await_reply_or_end (session, pending))
    expect (reply_error (pending) != ERROR_NONE,
            "a request with the magic number 0x%08" PRIx32
            ": expected an error or the end of the connection, got success",
            REQUEST_MAGIC ^ 1);
  expect_new_client_served (target, "a wrong magic number");
}

/* clang-format off */
const struct check flow_checks[] = {
  { "flow/cookies-are-echoed", LEVEL_MUST, "Transmission",
    "In each reply message (whether simple or structured), the server MUST "
    "use the same value for handle as was sent by the client in the "
    "corresponding request.",
    cookies_are_echoed },
  { "flow/pipelined-reads-are-sorted-by-cookie", LEVEL_MUST,
    "Transmission",
    "Replies need not be sent in the same order as requests [...]. In this "
    "way, the client can correlate which request is receiving a response.",
    pipelined_reads_are_sorted_by_cookie },
  { "flow/pipelined-structured-reads-are-sorted-by-cookie", LEVEL_MUST,
    "Transmission",
    "structured reply chunks from one request may be interleaved with reply "
    "messages from other requests",
    pipelined_structured_reads },
  { "flow/a-cookie-may-be-used-again", LEVEL_MUST, "Transmission",
    "Clients [...] MAY reuse handles that are no longer in flight; handles "
    "need not be consecutive.",
    cookie_may_be_used_again },
  { "flow/equal-cookies-are-both-answered", LEVEL_SHOULD, "Transmission",
    "Clients SHOULD use a handle that is distinct from all other currently "
    "pending transactions",
    equal_cookies_are_both_answered },
  { "flow/errors-find-their-requests", LEVEL_MUST, "Transmission",
    "the server MUST use the same value for handle as was sent by the "
    "client in the corresponding request",
    errors_find_their_requests },
  { "flow/a-thousand-may-be-in-flight", LEVEL_ROBUST, "Transmission",
    "requests may be handled by the server asynchronously",
    thousand_in_flight },
  { "flow/large-reads-may-be-in-flight", LEVEL_ROBUST, "Transmission",
    "requests may be handled by the server asynchronously",
    large_reads_in_flight },
  { "flow/requests-may-share-a-packet", LEVEL_ROBUST, "Transmission",
    "The transmission phase consists of a series of transactions",
    several_requests_in_one_packet },
  { "flow/a-request-may-arrive-byte-by-byte", LEVEL_ROBUST,
    "Transmission",
    "The transmission phase consists of a series of transactions",
    request_by_single_bytes },
  { "flow/a-packet-may-end-inside-a-request", LEVEL_ROBUST,
    "Transmission",
    "The transmission phase consists of a series of transactions",
    packets_end_inside_requests },
  { "flow/a-request-may-share-a-packet-with-the-option", LEVEL_ROBUST,
    "Option types",
    "`NBD_OPT_EXPORT_NAME`: Choose the export which the client would like "
    "to use, end option haggling, and proceed to the transmission phase.",
    request_behind_the_option },
  { "flow/a-wrong-magic-is-no-request", LEVEL_MUST, "Request message",
    "C: 32 bits, 0x25609513, magic (`NBD_REQUEST_MAGIC`)",
    wrong_request_magic_is_no_request },
  { 0 },
};
/* clang-format on */
