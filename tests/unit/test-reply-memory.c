/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a connection can still read of its replies. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "lib/base/bytes.h"
#include "nbdkit-plugin/reply-memory.h"

static void
add (struct reply_memory *memory, int status, size_t len, uint8_t fill)
{
  struct reply reply = { .status = status, .len = len };

  if (len > 0) {
    reply.payload = malloc (len);
    cr_assert_not_null (reply.payload);
    memset (reply.payload, fill, len);
  }
  reply_memory_add (memory, &reply);
}

Test (reply_memory, reads_any_part_of_a_reply)
{
  struct reply_memory memory = { 0 };
  uint8_t whole[64], part[64];

  add (&memory, -ENOENT, 20, 7);
  cr_assert (reply_memory_read (&memory, 0, whole, sizeof whole, 0));
  cr_assert_eq ((int32_t) get_le32 (whole), -ENOENT);
  cr_assert_eq (get_le64 (whole + 8), 36);
  cr_assert_eq (whole[16], 7);
  cr_assert_eq (whole[35], 7);
  cr_assert (bytes_are_zero (whole + 36, sizeof whole - 36));

  for (size_t offset = 0; offset < sizeof whole; offset++)
    for (size_t len = 0; offset + len <= sizeof whole; len++) {
      cr_assert (reply_memory_read (&memory, 0, part, len, offset));
      cr_assert_eq (memcmp (part, whole + offset, len), 0,
                    "%zu bytes at %zu", len, offset);
    }
  reply_memory_done (&memory);
}

Test (reply_memory, forgets_all_but_the_last_64)
{
  struct reply_memory memory = { 0 };
  uint8_t bytes[17];

  cr_assert_not (reply_memory_read (&memory, 0, bytes, 1, 0));
  for (uint64_t n = 0; n < 200; n++)
    add (&memory, 0, 1, (uint8_t) n);
  for (uint64_t n = 0; n < 200; n++) {
    const bool is_kept =
      reply_memory_read (&memory, n, bytes, sizeof bytes, 0);

    cr_assert_eq (is_kept, n >= 200 - 64, "reply %d", (int) n);
    if (is_kept)
      cr_assert_eq (bytes[16], (uint8_t) n);
  }
  cr_assert_not (reply_memory_read (&memory, 200, bytes, 1, 0));
  reply_memory_done (&memory);
}

Test (reply_memory, holds_64_mib_at_most)
{
  const size_t largest = BP_AREA_SIZE - BP_REPLY_HEADER_SIZE;
  struct reply_memory memory = { 0 };
  uint8_t byte;

  add (&memory, 0, largest, 1);
  add (&memory, 0, largest, 2);
  cr_assert_eq (memory.bytes, REPLY_MEMORY_MAX_BYTES);
  cr_assert (reply_memory_read (&memory, 0, &byte, 1, 16));

  add (&memory, 0, 0, 0);
  cr_assert_not (reply_memory_read (&memory, 0, &byte, 1, 0));
  cr_assert (reply_memory_read (&memory, 1, &byte, 1, largest));
  cr_assert_eq (byte, 2);
  cr_assert (reply_memory_read (&memory, 2, &byte, 1, 0));
  reply_memory_done (&memory);
}
