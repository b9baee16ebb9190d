/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Structured replies: what a client puts together from the chunks is the
 * image, or says exactly where it is not.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "harness/check.h"
#include "harness/structured-read.h"

enum {
  PIECE = 48 << 10, /* Of the fake image; every fifth is a hole. */
};

static struct front_fixture fixture;

static struct structured_read
read_range (int fd, uint16_t flags, uint64_t offset, uint32_t len)
{
  return structured_read_whole (&fixture, fd, flags, offset, len);
}

/* ---- Reads ---- */

static void
reads_of_any_alignment_and_length_are_exact (void)
{
  static const uint32_t lengths[] = { 1, 511, 512, 4096,
                                      4097, 48 << 10, 131073, 1 << 20,
                                      3333333, 32 << 20 };
  static const char *const exports[] = { "fast", "slow", "mixed" };
  size_t i;
  int fd;

  for (i = 0; i < 3 * ARRAY_LEN (lengths); i++) {
    const uint32_t len = lengths[i / 3];

    fd = client_attach_structured (&fixture, exports[i % 3]);
    CHECK_EQ (read_range (fd, 0, 0, len).error, 0);
    CHECK_EQ (read_range (fd, 0, 12345, len).error, 0);
    CHECK_EQ (read_range (fd, 0, FAKE_SIZE - len, len).error, 0);
    CHECK_EQ (read_range (fd, NBD_CMD_FLAG_DF, 54321, len).error, 0);
    close (fd);
  }
}

static void
holes_are_told_and_not_sent (void)
{
  const int fd = client_attach_structured (&fixture, "mixed");
  struct structured_read answer;

  answer = read_range (fd, 0, 0, 10 * PIECE);
  CHECK_EQ (answer.hole_bytes, 2 * PIECE);
  CHECK_EQ (answer.data_bytes, 8 * PIECE);
  CHECK_EQ (answer.nr_holes, 2);
  answer = read_range (fd, 0, 4 * PIECE + 7, 100); /* Nothing else. */
  CHECK_EQ (answer.nr_holes, 1);
  CHECK_EQ (answer.nr_data, 0);
  close (fd);
}

/* A client handles a chunk more slowly than some zeros. */
static void
a_short_hole_beside_data_is_sent_as_zeros (void)
{
  const int fd = client_attach_structured (&fixture, "fast");
  struct structured_read answer;

  answer = read_range (fd, 0, 3 * PIECE, PIECE + 512);
  CHECK_EQ (answer.nr_data, 1);
  CHECK_EQ (answer.nr_holes, 0);
  answer = read_range (fd, 0, 5 * PIECE - 512, PIECE);
  CHECK_EQ (answer.nr_data, 1);
  CHECK_EQ (answer.nr_holes, 0);
  close (fd);
}

static void
df_gets_one_chunk_with_the_zeros_in_it (void)
{
  const int fd = client_attach_structured (&fixture, "mixed");
  struct structured_read answer;

  answer = read_range (fd, NBD_CMD_FLAG_DF, 0, 32 << 20);
  CHECK_EQ (answer.nr_data, 1);
  CHECK_EQ (answer.nr_holes, 0);
  answer = read_range (fd, NBD_CMD_FLAG_DF, 4 * PIECE, PIECE);
  CHECK_EQ (answer.nr_data, 1);
  CHECK_EQ (answer.nr_holes, 0);
  close (fd);
}

/* ---- Errors ---- */

static void
what_is_wrong_with_a_read_is_said_in_a_chunk (void)
{
  static const struct {
    uint16_t flags;
    uint64_t offset;
    uint32_t len;
  } bad[] = {
    { 0, FAKE_SIZE, 1 },
    { 0, FAKE_SIZE - 1, 2 },
    { 0, 0, 0 },
    { 0, UINT64_MAX, UINT32_MAX },
    { 0, 0, (32 << 20) + 1 },
    { NBD_CMD_FLAG_DF, FAKE_SIZE, 1 },
    { 1, 0, 512 },
    { NBD_CMD_FLAG_DF | 1 << 3, 0, 512 },
    { 1 << 15, 0, 512 },
  };
  const int fd = client_attach_structured (&fixture, "fast");
  struct structured_read answer;
  size_t i;

  for (i = 0; i < ARRAY_LEN (bad); i++) {
    answer = read_range (fd, bad[i].flags, bad[i].offset, bad[i].len);
    CHECK_EQ (answer.error, NBD_EINVAL);
    CHECK (answer.bad_offset == UINT64_MAX);
    CHECK_EQ (read_range (fd, 0, 1000, 1000).error, 0);
  }
  close (fd);
}

static void
refusals_of_other_commands_say_why (void)
{
  static const struct {
    uint16_t type;
    uint32_t error;
  } refused[] = {
    { NBD_CMD_WRITE, NBD_EPERM },
    { NBD_CMD_TRIM, NBD_EPERM },
    { NBD_CMD_WRITE_ZEROES, NBD_EPERM },
    { NBD_CMD_FLUSH, NBD_EINVAL },
    { 100, NBD_EINVAL },
  };
  const int fd = client_attach_structured (&fixture, "fast");
  struct client_chunk chunk;
  uint64_t offset;
  size_t i;

  for (i = 0; i < ARRAY_LEN (refused); i++) {
    client_send_request (fd, 0, refused[i].type, i, 0, 512);
    if (refused[i].type == NBD_CMD_WRITE)
      client_send (fd, fake_pager_bytes (fixture.pager, 0), 512);
    chunk = client_recv_chunk (fd);
    CHECK_EQ (chunk.cookie, i);
    CHECK_EQ (chunk.flags, NBD_REPLY_FLAG_DONE);
    CHECK_EQ (client_recv_error (fd, &chunk, &offset), refused[i].error);
    CHECK (offset == UINT64_MAX);
  }
  CHECK_EQ (client_request (fd, 0, NBD_CMD_CACHE, 0, 512), 0);
  close (fd);
}

static void
corrupt_bytes_are_an_error_at_their_offset (void)
{
  const int fd = client_attach_structured (&fixture, "corrupt");
  struct structured_read answer;

  answer = read_range (fd, 0, FAKE_BAD_OFFSET + 7, 1);
  CHECK_EQ (answer.error, NBD_EIO);
  CHECK_EQ (answer.bad_offset, FAKE_BAD_OFFSET + 7);
  CHECK_EQ (answer.nr_data + answer.nr_holes, 0);
  answer = read_range (fd, NBD_CMD_FLAG_DF, 0, 4 << 20);
  CHECK_EQ (answer.error, NBD_EIO);
  CHECK_EQ (answer.bad_offset, FAKE_BAD_OFFSET);
  CHECK_EQ (answer.nr_data + answer.nr_holes, 0);
  CHECK_EQ (read_range (fd, 0, 0, FAKE_BAD_OFFSET).error, 0);
  close (fd);
}

static void
what_precedes_a_failure_is_delivered (void)
{
  static const uint64_t starts[] = { 0, 1, FAKE_BAD_OFFSET - 1,
                                     FAKE_BAD_OFFSET - 100000 };
  const int fd = client_attach_structured (&fixture, "corrupt");
  struct structured_read answer;
  size_t i;

  for (i = 0; i < ARRAY_LEN (starts); i++) {
    answer = read_range (fd, 0, starts[i], FAKE_BAD_OFFSET + 1 - starts[i]);
    CHECK_EQ (answer.error, NBD_EIO);
    CHECK_EQ (answer.bad_offset, FAKE_BAD_OFFSET);
    CHECK_EQ (answer.data_bytes + answer.hole_bytes,
              FAKE_BAD_OFFSET - starts[i]);
  }
  close (fd);
}

/* ---- Side by side ---- */

static void
simple_and_structured_clients_do_not_disturb_each_other (void)
{
  const int simple = client_attach (&fixture, "mixed");
  const int structured = client_attach_structured (&fixture, "mixed");
  struct structured_read read;
  uint64_t i;

  for (i = 0; i < 50; i++) {
    structured_read_start (&read, structured, 0, 0, i * 4097, 99999);
    client_expect_bytes (&fixture, simple, i * 1234, 54321);
    while (!read.is_over)
      structured_read_take (&fixture, structured, &read, 1);
    CHECK_EQ (read.error, 0);
  }
  close (simple);
  close (structured);
}

int
main (void)
{
  fixture_start (&fixture);
  RUN (reads_of_any_alignment_and_length_are_exact);
  RUN (holes_are_told_and_not_sent);
  RUN (a_short_hole_beside_data_is_sent_as_zeros);
  RUN (df_gets_one_chunk_with_the_zeros_in_it);
  RUN (what_is_wrong_with_a_read_is_said_in_a_chunk);
  RUN (refusals_of_other_commands_say_why);
  RUN (corrupt_bytes_are_an_error_at_their_offset);
  RUN (what_precedes_a_failure_is_delivered);
  RUN (simple_and_structured_clients_do_not_disturb_each_other);
  fixture_stop (&fixture);
  return EXIT_SUCCESS;
}
