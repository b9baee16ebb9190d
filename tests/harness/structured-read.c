/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Structured replies put together. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "harness/check.h"
#include "harness/structured-read.h"

void
structured_read_start (struct structured_read *read, int fd, uint64_t cookie,
                       uint16_t flags, uint64_t offset, uint32_t len)
{
  *read = (struct structured_read){
    .offset = offset,
    .len = len,
    .is_there = calloc (len <= NBD_MAX_READ ? len + 1 : 1, 1),
    .bad_offset = UINT64_MAX,
  };
  CHECK (read->is_there != NULL);
  client_send_request (fd, flags, NBD_CMD_READ, cookie, offset, len);
}

/* N bytes at OFFSET have come: whole blocks, except at the ends. */
static void
mark (struct structured_read *read, uint64_t offset, uint64_t n)
{
  uint8_t *p = read->is_there + (offset - read->offset);
  const uint64_t end = read->offset + read->len;

  CHECK (n > 0 && offset >= read->offset && offset + n <= end);
  CHECK (offset % 512 == 0 || offset == read->offset);
  CHECK ((offset + n) % 512 == 0 || offset + n == end);
  CHECK (memchr (p, 1, n) == NULL);
  memset (p, 1, n);
}

static void
take_data (const struct front_fixture *fixture, int fd, uint32_t payload,
           struct structured_read *read)
{
  uint8_t offset[8];

  CHECK (payload > sizeof offset);
  client_recv (fd, offset, sizeof offset);
  mark (read, get_be64 (offset), payload - 8);
  client_recv_bytes (fixture, fd, get_be64 (offset), payload - 8);
  read->nr_data++;
  read->data_bytes += payload - 8;
}

static void
take_hole (const struct front_fixture *fixture, int fd, uint32_t payload,
           struct structured_read *read)
{
  uint8_t fields[12];
  uint64_t offset, len, i;

  CHECK_EQ (payload, sizeof fields);
  client_recv (fd, fields, sizeof fields);
  offset = get_be64 (fields);
  len = get_be32 (fields + 8);
  mark (read, offset, len);
  for (i = 0; i < len; i++)
    CHECK_EQ (*fake_pager_bytes (fixture->pager, offset + i), 0);
  read->nr_holes++;
  read->hole_bytes += len;
}

static void
end (struct structured_read *read)
{
  read->is_over = true;
  if (read->nr_errors == 0)
    CHECK (memchr (read->is_there, 0, read->len) == NULL);
  free (read->is_there);
  read->is_there = NULL;
}

struct structured_read *
structured_read_take (const struct front_fixture *fixture, int fd,
                      struct structured_read *reads, size_t count)
{
  const struct client_chunk chunk = client_recv_chunk (fd);
  struct structured_read *read = &reads[chunk.cookie];

  CHECK (chunk.cookie < count);
  CHECK (!read->is_over);
  switch (chunk.type) {
  case NBD_REPLY_TYPE_NONE: CHECK_EQ (chunk.len, 0); break;
  case NBD_REPLY_TYPE_OFFSET_DATA:
    take_data (fixture, fd, chunk.len, read);
    break;
  case NBD_REPLY_TYPE_OFFSET_HOLE:
    take_hole (fixture, fd, chunk.len, read);
    break;
  default:
    read->error = client_recv_error (fd, &chunk, &read->bad_offset);
    read->nr_errors++;
    break;
  }
  if (chunk.flags & NBD_REPLY_FLAG_DONE)
    end (read);
  return read;
}

struct structured_read
structured_read_whole (const struct front_fixture *fixture, int fd,
                       uint16_t flags, uint64_t offset, uint32_t len)
{
  struct structured_read read;

  structured_read_start (&read, fd, 0, flags, offset, len);
  while (!read.is_over)
    structured_read_take (fixture, fd, &read, 1);
  return read;
}
