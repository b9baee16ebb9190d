/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The transmission phase: reads of every shape, and every request that is
 * refused.  After each refusal the connection still serves.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "harness/check.h"
#include "harness/front-client.h"

static struct front_fixture fixture;

static void
reads_of_any_alignment_and_length_are_exact (void)
{
  static const uint32_t lengths[] = { 1, 511, 512, 4096,
                                      4097, 48 << 10, 131073, 1 << 20,
                                      3333333, 32 << 20 };
  const int fd = client_attach (&fixture, "mixed");
  size_t i;

  for (i = 0; i < ARRAY_LEN (lengths); i++) {
    client_expect_bytes (&fixture, fd, 0, lengths[i]);
    client_expect_bytes (&fixture, fd, 12345, lengths[i]);
    client_expect_bytes (&fixture, fd, FAKE_SIZE - lengths[i], lengths[i]);
  }
  close (fd);
}

static void
reads_out_of_bounds_are_refused_and_the_connection_goes_on (void)
{
  static const struct {
    uint64_t offset;
    uint32_t len;
  } bad[] = {
    { FAKE_SIZE, 1 },
    { FAKE_SIZE - 1, 2 },
    { 0, 0 },
    { UINT64_MAX, 1 },
    { UINT64_MAX - 511, 512 },
    { 0, UINT32_MAX },
    { 0, (32 << 20) + 1 },
    { UINT64_MAX, UINT32_MAX },
    { UINT64_C (1) << 63, 4096 },
  };
  const int fd = client_attach (&fixture, "fast");
  size_t i;

  for (i = 0; i < ARRAY_LEN (bad); i++) {
    CHECK_EQ (client_request (fd, 0, NBD_CMD_READ, bad[i].offset,
                              bad[i].len),
              NBD_EINVAL);
    client_expect_bytes (&fixture, fd, 1000, 1000);
  }
  close (fd);
}

static void
unknown_flags_and_commands_are_refused (void)
{
  const int fd = client_attach (&fixture, "fast");
  uint16_t i;

  for (i = 0; i < 16; i++)
    CHECK_EQ (client_request (fd, (uint16_t) (1 << i), NBD_CMD_READ, 0, 512),
              NBD_EINVAL);
  CHECK_EQ (client_request (fd, 1, NBD_CMD_CACHE, 0, 512), NBD_EINVAL);
  CHECK_EQ (client_request (fd, 0, NBD_CMD_FLUSH, 0, 0), NBD_EINVAL);
  for (i = 7; i < 20; i++)
    CHECK_EQ (client_request (fd, 0, i, 0, 512), NBD_EINVAL);
  CHECK_EQ (client_request (fd, 0, UINT16_MAX, 0, 512), NBD_EINVAL);
  client_expect_bytes (&fixture, fd, 4096, 4096);
  close (fd);
}

/* A write's payload that looks like requests must not be taken for them. */
static void
writes_are_refused_after_their_payload_is_read_over (void)
{
  static const uint32_t lengths[] = { 0, 1, 4000, 4096, 100000, 32 << 20 };
  const int fd = client_attach (&fixture, "fast");
  uint8_t *payload = malloc (32 << 20);
  uint64_t cookie;
  size_t i;

  CHECK (payload != NULL);
  for (i = 0; i < 32 << 20; i += 4)
    put_be32 (payload + i, NBD_REQUEST_MAGIC);
  for (i = 0; i < ARRAY_LEN (lengths); i++) {
    client_send_request (fd, 0, NBD_CMD_WRITE, 77, 0, lengths[i]);
    client_send (fd, payload, lengths[i]);
    CHECK_EQ (client_recv_reply (fd, &cookie), NBD_EPERM);
    CHECK_EQ (cookie, 77);
    client_expect_bytes (&fixture, fd, 0, 100);
  }
  CHECK_EQ (client_request (fd, 0, NBD_CMD_TRIM, 0, 4096), NBD_EPERM);
  CHECK_EQ (client_request (fd, 1, NBD_CMD_WRITE_ZEROES, 0, UINT32_MAX),
            NBD_EPERM);
  client_expect_bytes (&fixture, fd, 0, 100);
  free (payload);
  close (fd);
}

/* Kilobytes that this process has ever used at once. */
static long
peak_memory (void)
{
  struct rusage usage;

  CHECK_EQ (getrusage (RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss;
}

static void
the_largest_payload_is_read_over_in_constant_memory (void)
{
  enum {
    CHUNK = 1 << 20
  };
  const int fd = client_attach (&fixture, "fast");
  uint8_t *payload = calloc (1, CHUNK);
  uint64_t left = UINT32_MAX, cookie, n;
  long before;

  CHECK (payload != NULL);
  memset (payload, 0x25, CHUNK);
  before = peak_memory ();
  client_send_request (fd, 0, NBD_CMD_WRITE, 77, 0, UINT32_MAX);
  for (; left > 0; left -= n) {
    n = MIN (left, CHUNK);
    client_send (fd, payload, n);
  }
  CHECK_EQ (client_recv_reply (fd, &cookie), NBD_EPERM);
  CHECK_EQ (cookie, 77);
  client_expect_bytes (&fixture, fd, 0, 100);
  CHECK (peak_memory () - before < 16 << 10);
  free (payload);
  close (fd);
}

static void
a_wrong_magic_ends_that_connection_only (void)
{
  const int other = client_attach (&fixture, "fast");
  const int fd = client_attach (&fixture, "slow");
  uint8_t nonsense[NBD_REQUEST_SIZE];

  memset (nonsense, 0x5a, sizeof nonsense);
  client_send (fd, nonsense, sizeof nonsense);
  client_expect_closed (fd);
  client_expect_bytes (&fixture, other, 0, 4096);
  close (other);
}

static void
cache_is_answered_at_once (void)
{
  const uint64_t before = fake_pager_counts (fixture.pager).prefetched;
  const int fd = client_attach (&fixture, "held");

  CHECK_EQ (client_request (fd, 0, NBD_CMD_CACHE, 100, 5000), 0);
  CHECK_EQ (client_request (fd, 0, NBD_CMD_CACHE, FAKE_SIZE - 1, 2),
            NBD_EINVAL);
  CHECK_EQ (client_request (fd, 0, NBD_CMD_CACHE, 0, UINT32_MAX),
            NBD_EINVAL);
  CHECK_EQ (fake_pager_counts (fixture.pager).prefetched - before, 5000);
  close (fd);
}

static void
corrupt_bytes_are_an_error_for_exactly_that_range (void)
{
  const int fd = client_attach (&fixture, "corrupt");
  const uint64_t end = FAKE_BAD_OFFSET + FAKE_BAD_LEN;

  CHECK_EQ (client_request (fd, 0, NBD_CMD_READ, FAKE_BAD_OFFSET, 1),
            NBD_EIO);
  CHECK_EQ (client_request (fd, 0, NBD_CMD_READ, end - 1, 100), NBD_EIO);
  CHECK_EQ (client_request (fd, 0, NBD_CMD_READ, 0, 4 << 20), NBD_EIO);
  client_expect_bytes (&fixture, fd, 0, FAKE_BAD_OFFSET);
  client_expect_bytes (&fixture, fd, end, 4 << 20);
  close (fd);
}

/* A client that reconnects tries again; an answer would be a failed read of
 * its guest.
 */
static void
a_read_that_ends_with_the_daemon_is_not_answered (void)
{
  static const uint64_t offsets[] = { 0, 512 }; /* At once, and later. */
  size_t i;
  int fd;

  for (i = 0; i < ARRAY_LEN (offsets); i++) {
    fd = client_attach (&fixture, "ending");
    client_send_request (fd, 0, NBD_CMD_READ, 1, offsets[i], 4096);
    client_expect_closed (fd);
  }
}

/* Replies come in any order; each names its request. */
static void
many_requests_in_flight_are_each_answered_once (void)
{
  enum {
    COUNT = 3000
  };
  const int fd = client_attach (&fixture, "mixed");
  const struct {
    uint16_t type;
    uint32_t error;
  } kinds[] = {
    { NBD_CMD_READ, 0 },
    { NBD_CMD_TRIM, NBD_EPERM },
    { NBD_CMD_CACHE, 0 },
    { NBD_CMD_FLUSH, NBD_EINVAL },
    { NBD_CMD_READ, 0 },
  };
  static bool is_answered[COUNT];
  uint64_t sent = 0, received, cookie;
  uint32_t len, error;

  memset (is_answered, 0, sizeof is_answered);
  for (received = 0; received < COUNT; received++) {
    /* 200 in flight. */
    for (; sent < COUNT && sent < received + 200; sent++)
      client_send_request (fd, 0, kinds[sent % 5].type, sent, sent * 1500,
                           (uint32_t) (1 + sent % 9000));
    error = client_recv_reply (fd, &cookie);
    CHECK (cookie < sent && !is_answered[cookie]);
    is_answered[cookie] = true;
    CHECK_EQ (error, kinds[cookie % 5].error);
    len = (uint32_t) (1 + cookie % 9000);
    if (kinds[cookie % 5].type == NBD_CMD_READ)
      client_recv_bytes (&fixture, fd, cookie * 1500, len);
  }
  close (fd);
}

/* Of a client that has shown to read. */
static void
four_thousand_reads_are_under_way_at_once (void)
{
  enum {
    COUNT = 4096,
    LEN = 4096
  };
  const int fd = client_attach (&fixture, "held");
  static bool is_answered[COUNT];
  uint64_t i, cookie;

  fake_pager_let_go (fixture.pager);
  client_expect_bytes (&fixture, fd, 0, COUNT * LEN);
  fake_pager_hold_again (fixture.pager);
  for (i = 0; i < COUNT; i++)
    client_send_request (fd, 0, NBD_CMD_READ, i, i * 4097, LEN);
  WAIT_UNTIL (fake_pager_counts (fixture.pager).waiting == COUNT);
  fake_pager_let_go (fixture.pager);
  for (i = 0; i < COUNT; i++) {
    CHECK_EQ (client_recv_reply (fd, &cookie), 0);
    CHECK (cookie < COUNT && !is_answered[cookie]);
    is_answered[cookie] = true;
    client_recv_bytes (&fixture, fd, cookie * 4097, LEN);
  }
  fake_pager_hold_again (fixture.pager);
  close (fd);
}

/* DISC with reads under way: they are answered, then the end. */
static void
disc_answers_what_is_under_way (void)
{
  const int fd = client_attach (&fixture, "slow");
  uint64_t cookie;
  int i;

  for (i = 0; i < 10; i++)
    client_send_request (fd, 0, NBD_CMD_READ, 5, 4096, 4096);
  client_send_request (fd, 0, NBD_CMD_DISC, 6, 0, 0);
  for (i = 0; i < 10; i++) {
    CHECK_EQ (client_recv_reply (fd, &cookie), 0);
    client_recv_bytes (&fixture, fd, 4096, 4096);
  }
  client_expect_closed (fd);
}

int
main (void)
{
  fixture_start (&fixture);
  RUN (reads_of_any_alignment_and_length_are_exact);
  RUN (reads_out_of_bounds_are_refused_and_the_connection_goes_on);
  RUN (unknown_flags_and_commands_are_refused);
  RUN (writes_are_refused_after_their_payload_is_read_over);
  RUN (the_largest_payload_is_read_over_in_constant_memory);
  RUN (a_wrong_magic_ends_that_connection_only);
  RUN (cache_is_answered_at_once);
  RUN (corrupt_bytes_are_an_error_for_exactly_that_range);
  RUN (a_read_that_ends_with_the_daemon_is_not_answered);
  RUN (many_requests_in_flight_are_each_answered_once);
  RUN (four_thousand_reads_are_under_way_at_once);
  RUN (disc_answers_what_is_under_way);
  fixture_stop (&fixture);
  return EXIT_SUCCESS;
}
