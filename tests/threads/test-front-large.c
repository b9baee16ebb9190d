/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Structured reads that go out in parts: as the parts come, for clients
 * that read fast, slowly, or not at all.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/base/range.h"
#include "harness/structured-read.h"

enum {
  MIB = 1 << 20,
  PART = 64 << 10,
  READY = 256 << 10,
  STALL_MS = 10,
};

static struct front_fixture fixture;

static struct fake_counts
counts (void)
{
  return fake_pager_counts (fixture.pager);
}

/* Start COUNT reads of LEN bytes each. */
static void
start_reads (struct structured_read *reads, size_t count, int fd,
             uint32_t len)
{
  size_t i;

  for (i = 0; i < count; i++)
    structured_read_start (&reads[i], fd, i, 0, i * 4097, len);
}

/* Receive all of COUNT reads, PAUSE_MS after each chunk. */
static void
take_reads (struct structured_read *reads, size_t count, int fd,
            int pause_ms)
{
  size_t nr_over = 0;

  while (nr_over < count) {
    nr_over += structured_read_take (&fixture, fd, reads, count)->is_over;
    if (pause_ms > 0)
      poll (NULL, 0, pause_ms);
  }
}

static void
expect_no_errors (const struct structured_read *reads, size_t count)
{
  size_t i;

  for (i = 0; i < count; i++)
    CHECK_EQ (reads[i].nr_errors, 0);
}

/* ---- Clients that do not read ---- */

/* What is ready for it is bounded, however much it asked for; then it
 * holds nothing, and in the end it has all.
 */
static void
a_client_that_does_not_read_holds_little (void)
{
  struct structured_read reads[8];
  const int fd = client_attach_structured (&fixture, "fast");

  start_reads (reads, 8, fd, 4 * MIB);
  WAIT_UNTIL (counts ().max_unreleased >= READY);
  WAIT_UNTIL (counts ().unreleased == 0);
  CHECK (counts ().max_unreleased <= READY + PART);
  take_reads (reads, 8, fd, 0);
  expect_no_errors (reads, 8);
  close (fd);
}

/* Parked and resumed again and again, also in the middle of a chunk. */
static void
a_client_that_reads_slowly_gets_every_byte (void)
{
  static const char *const exports[] = { "fast", "slow", "mixed" };
  struct structured_read reads[4];
  size_t i;
  int fd;

  for (i = 0; i < ARRAY_LEN (exports); i++) {
    fd = client_attach_structured (&fixture, exports[i]);
    start_reads (reads, 4, fd, MIB);
    take_reads (reads, 4, fd, 2 * STALL_MS);
    expect_no_errors (reads, 4);
    close (fd);
  }
}

/* Bytes that wait to be received from FD. */
static int
nr_unread (int fd)
{
  int count;

  CHECK_EQ (ioctl (fd, FIONREAD, &count), 0);
  return count;
}

/* It is parked, too: it may not end the reply before the parts that it
 * followed.  Nor may it succeed later, since no more are asked for.
 */
static void
a_part_that_failed_while_others_wait_ends_the_read (void)
{
  struct structured_read reads[2];
  const int fd = client_attach_structured (&fixture, "healing");
  const unsigned before = counts ().failed;
  enum {
    FIRST = 160 << 10
  };

  /* The socket takes the first, but not all of three parts more. */
  structured_read_start (&reads[0], fd, 0, NBD_CMD_FLAG_DF, 0, FIRST);
  WAIT_UNTIL (nr_unread (fd) > FIRST);
  structured_read_start (&reads[1], fd, 1, 0, FAKE_BAD_OFFSET - 3 * PART,
                         6 * PART);
  WAIT_UNTIL (counts ().failed > before);
  WAIT_UNTIL (counts ().unreleased == 0);
  fake_pager_let_go (fixture.pager);
  take_reads (reads, 2, fd, 0);
  fake_pager_hold_again (fixture.pager);
  CHECK_EQ (reads[0].nr_errors, 0);
  CHECK_EQ (reads[1].nr_errors, 1);
  CHECK_EQ (reads[1].data_bytes + reads[1].hole_bytes, 3 * PART);
  close (fd);
}

/* ---- Parts ---- */

static void
parts_that_are_there_do_not_wait_for_the_others (void)
{
  struct structured_read read;
  const int fd = client_attach_structured (&fixture, "later");

  structured_read_start (&read, fd, 0, 0, 12345, 4 * MIB);
  while (read.data_bytes + read.hole_bytes < FAKE_LATER_OFFSET - 12345 - PART)
    structured_read_take (&fixture, fd, &read, 1);
  CHECK (!read.is_over);
  /* Those that nobody has yet are asked for together. */
  WAIT_UNTIL (counts ().waiting >= 2 * MIB / PART);
  fake_pager_let_go (fixture.pager);
  take_reads (&read, 1, fd, 0);
  fake_pager_hold_again (fixture.pager);
  CHECK_EQ (read.nr_errors, 0);
  close (fd);
}

static void
reads_of_all_sizes_share_a_connection (void)
{
  enum {
    COUNT = 60
  };
  static struct structured_read reads[COUNT];
  const int fd = client_attach_structured (&fixture, "mixed");
  size_t i;

  for (i = 0; i < COUNT; i++)
    structured_read_start (&reads[i], fd, i,
                           i % 7 == 0 ? NBD_CMD_FLAG_DF : 0, i * 77777,
                           (uint32_t) (1 + i * i * 997 % (3 * MIB)));
  take_reads (reads, COUNT, fd, 0);
  expect_no_errors (reads, COUNT);
  close (fd);
}

static void
a_part_that_fails_ends_the_read (void)
{
  struct structured_read read;
  const int fd = client_attach_structured (&fixture, "failing");

  read = structured_read_whole (&fixture, fd, 0, FAKE_BAD_OFFSET, 32 * MIB);
  CHECK_EQ (read.nr_errors, 1);
  CHECK_EQ (read.bad_offset, FAKE_BAD_OFFSET);
  CHECK_EQ (counts ().waiting, 0); /* No other part was asked for. */
  read = structured_read_whole (&fixture, fd, 0, FAKE_BAD_OFFSET + 1, 1);
  CHECK_EQ (read.nr_errors, 1);
  close (fd);
}

static void
what_precedes_a_failure_is_delivered (void)
{
  struct structured_read read;
  const int fd = client_attach_structured (&fixture, "corrupt");

  read = structured_read_whole (&fixture, fd, 0, 0,
                                FAKE_BAD_OFFSET + FAKE_BAD_LEN);
  CHECK (read.nr_errors >= 1);
  CHECK_EQ (read.data_bytes + read.hole_bytes, FAKE_BAD_OFFSET);
  close (fd);
}

/* ---- The end ---- */

static void
disc_answers_all_parts (void)
{
  struct structured_read reads[3];
  const int fd = client_attach_structured (&fixture, "mixed");

  start_reads (reads, 3, fd, 5 * MIB);
  client_send_request (fd, 0, NBD_CMD_DISC, 6, 0, 0);
  take_reads (reads, 3, fd, 0);
  expect_no_errors (reads, 3);
  client_expect_closed (fd);
}

static void
a_client_may_vanish_at_any_moment (void)
{
  static const char *const exports[] = { "fast", "slow", "mixed", "held",
                                         "later", "corrupt" };
  struct structured_read reads[8];
  unsigned i, k;
  int fd;

  for (i = 0; i < 60; i++) {
    fd = client_attach_structured (&fixture, exports[i % 6]);
    start_reads (reads, i % 8, fd, 3 * MIB);
    for (k = 0; k < i % 8; k++)
      free (reads[k].is_there);
    close (fd);
  }
  CHECK (fake_pager_wait_idle (fixture.pager));
}

int
main (void)
{
  fixture.limits = default_front_limits;
  fixture.limits.stall_ns = STALL_MS * NS_PER_MS;
  fixture.limits.send_buffer = 104 << 10; /* Doubled. */
  fixture.limits.max_bytes = 40 * MIB;
  fixture.limits.max_resume = READY;
  fixture.limits.part_bytes = PART;
  fixture_start (&fixture);
  RUN (a_client_that_does_not_read_holds_little);
  RUN (a_client_that_reads_slowly_gets_every_byte);
  RUN (a_part_that_failed_while_others_wait_ends_the_read);
  RUN (parts_that_are_there_do_not_wait_for_the_others);
  RUN (reads_of_all_sizes_share_a_connection);
  RUN (a_part_that_fails_ends_the_read);
  RUN (what_precedes_a_failure_is_delivered);
  RUN (disc_answers_all_parts);
  RUN (a_client_may_vanish_at_any_moment);
  fixture_stop (&fixture);
  return EXIT_SUCCESS;
}
