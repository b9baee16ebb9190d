/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Several connections: what one client does must not hurt another. */
#include <config.h>

#include <inttypes.h>

#include "conform/check.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "conform/transmission.h"
#include "lib/base/range.h"

enum {
  CLIENTS = 16,
  UNREAD = 1 << 20, /* Bytes of each reply that is not read. */
  NR_UNREAD = 32,
  ROUNDS = 8,
};

static void
clients_see_the_same (const struct target *target)
{
  struct session *a = session_open (target), *b;
  const struct span spans[] = {
    span_at (target, 0, 65536),
    span_at_end (target, 65536),
  };

  if (!(a->flags & EXPORT_CAN_MULTI_CONN))
    skip ("NBD_FLAG_CAN_MULTI_CONN is not set");
  skip_if_one_client (target);
  b = session_open (target);
  expect_u64 ("size of the export", a->size, b->size);
  expect_u64 ("transmission flags", a->flags, b->flags);
  for (size_t i = 0; i < ARRAY_LEN (spans); i++) {
    expect_read_succeeds (a, spans[i]);
    expect_read_succeeds (b, spans[i]);
  }
}

static void
many_clients_at_once (const struct target *target)
{
  struct session *sessions[CLIENTS];
  struct pending *reads[CLIENTS];
  const struct span span = span_at (target, 0, 65536);

  skip_if_one_client (target);
  for (unsigned i = 0; i < CLIENTS; i++)
    sessions[i] = session_open (target);
  for (unsigned i = 0; i < CLIENTS; i++)
    reads[i] = send_request (sessions[i], make_read (sessions[i], span));
  for (unsigned i = 0; i < CLIENTS; i++) {
    await_reply (sessions[i], reads[i]);
    expect_bytes (target, span, reply_bytes (reads[i]));
  }
}

static void
slow_reader_blocks_nobody (const struct target *target)
{
  struct session *slow = session_open (target);
  struct pending *reads[NR_UNREAD];
  const struct span span = span_at (target, 0, UNREAD);

  skip_if_one_client (target);
  for (unsigned i = 0; i < NR_UNREAD; i++)
    reads[i] = send_request (slow, make_read (slow, span));
  expect_new_client_served (target, "a client that does not read");
  for (unsigned i = 0; i < NR_UNREAD; i++) {
    await_reply (slow, reads[i]);
    expect_bytes (target, span, reply_bytes (reads[i]));
  }
}

/* Leave a session in the middle of what the bytes begin. */
static void
leave_inside (const struct target *target, const struct request *request,
              size_t len)
{
  struct session *session = session_open (target);
  uint8_t wire[REQUEST_SIZE];

  encode_request (request, wire);
  channel_send (&session->channel, wire, len);
  channel_close (&session->channel);
}

/* Several times, for it takes a moment until the server notices. */
static void
lost_clients_are_harmless (const struct target *target)
{
  struct session *other = session_open (target);
  const struct span span = span_at (target, 0, 4096);
  const struct request read = make_read (other, span);
  const struct request write =
    make_request (other, CMD_WRITE, 0, span.offset, span.len);

  skip_if_one_client (target);
  for (unsigned i = 0; i < ROUNDS; i++) {
    leave_inside (target, &read, 0);
    leave_inside (target, &read, REQUEST_SIZE / 2);
    leave_inside (target, &read, REQUEST_SIZE);
    leave_inside (target, &write, REQUEST_SIZE);
    expect_requests_go_on (other, "clients that went away");
    expect_new_client_served (target, "clients that went away");
  }
}

static void
leave_replies_unread (const struct target *target)
{
  struct session *gone = session_open (target);

  for (unsigned i = 0; i < NR_UNREAD; i++)
    send_request (gone, make_read (gone, span_at (target, 0, UNREAD)));
  channel_close (&gone->channel);
}

/* Several times, for it takes a moment until the server notices. */
static void
unread_replies_are_harmless (const struct target *target)
{
  struct session *other;

  skip_if_one_client (target);
  other = session_open (target);
  for (unsigned i = 0; i < ROUNDS; i++) {
    leave_replies_unread (target);
    expect_requests_go_on (other, "a client that left its replies");
    expect_new_client_served (target, "a client that left its replies");
  }
}

/* clang-format off */
#define NO_DISCONNECT                                                     \
  "The client and the server MUST NOT initiate any form of disconnect "   \
  "other than in one of the above circumstances."

const struct check several_checks[] = {
  { "several/clients-see-the-same", LEVEL_MUST, "Transmission flags",
    "bit 8, `NBD_FLAG_CAN_MULTI_CONN`: Indicates that the server operates "
    "entirely without cache, or that the cache it uses is shared among all "
    "connections to the given device.",
    clients_see_the_same },
  { "several/many-clients-at-once", LEVEL_ROBUST, "Transmission",
    "The transmission phase consists of a series of transactions",
    many_clients_at_once },
  { "several/a-slow-reader-blocks-nobody", LEVEL_ROBUST,
    "Terminating the transmission phase",
    NO_DISCONNECT, slow_reader_blocks_nobody },
  { "several/lost-clients-are-harmless", LEVEL_ROBUST,
    "Terminating the transmission phase",
    NO_DISCONNECT, lost_clients_are_harmless },
  { "several/unread-replies-are-harmless", LEVEL_ROBUST,
    "Terminating the transmission phase",
    NO_DISCONNECT, unread_replies_are_harmless },
  { 0 },
};
/* clang-format on */
