/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Reads with structured replies: chunks of any number of them, in any
 * order, are put together and compared with the fake pager's image.
 */
#ifndef BP_TEST_STRUCTURED_READ_H
#define BP_TEST_STRUCTURED_READ_H

#include "harness/front-client.h"

/* A read, and what came of it. */
struct structured_read {
  uint64_t offset;
  uint32_t len;
  uint8_t *is_there; /* For each byte: a chunk had it. */
  bool is_over;
  uint64_t nr_data; /* Chunks. */
  uint64_t nr_holes;
  uint64_t data_bytes;
  uint64_t hole_bytes;
  unsigned nr_errors;
  uint32_t error;      /* The last. */
  uint64_t bad_offset; /* UINT64_MAX: none. */
};

/* Ask for LEN bytes at OFFSET. */
void structured_read_start (struct structured_read *read, int fd,
                            uint64_t cookie, uint16_t flags, uint64_t offset,
                            uint32_t len);

/* Receive a chunk: it belongs to one of the COUNT reads whose cookies are
 * their numbers, lies in its range and on nothing that came before, has
 * the image's bytes, and comes before the read's last.  The last of a read
 * without error leaves nothing out.  Returns the read.
 */
struct structured_read *structured_read_take (
  const struct front_fixture *fixture, int fd,
  struct structured_read *reads, size_t count);

/* Start one and receive all of it. */
struct structured_read structured_read_whole (
  const struct front_fixture *fixture, int fd, uint16_t flags,
  uint64_t offset, uint32_t len);

#endif /* BP_TEST_STRUCTURED_READ_H */
