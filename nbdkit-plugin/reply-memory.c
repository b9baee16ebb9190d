/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A ring of replies, bounded in number and in bytes. */
#include <config.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/range.h"
#include "nbdkit-plugin/reply-memory.h"

static void
forget_oldest (struct reply_memory *memory)
{
  const size_t i = memory->oldest++ % ARRAY_LEN (memory->replies);

  memory->bytes -= BP_REPLY_HEADER_SIZE + memory->replies[i].len;
  free (memory->replies[i].payload);
  memory->replies[i].payload = NULL;
  memory->replies[i].len = 0;
}

void
reply_memory_done (struct reply_memory *memory)
{
  while (memory->oldest < memory->next)
    forget_oldest (memory);
}

void
reply_memory_add (struct reply_memory *memory, const struct reply *reply)
{
  const size_t bytes = BP_REPLY_HEADER_SIZE + reply->len;
  const size_t i = memory->next % ARRAY_LEN (memory->replies);

  assert (bytes <= BP_AREA_SIZE);
  while (memory->next - memory->oldest == ARRAY_LEN (memory->replies) ||
         memory->bytes + bytes > REPLY_MEMORY_MAX_BYTES)
    forget_oldest (memory);

  bp_reply_header_encode (reply->status, reply->len,
                          memory->replies[i].header);
  memory->replies[i].payload = reply->payload;
  memory->replies[i].len = reply->len;
  memory->bytes += bytes;
  memory->next++;
}

/* The part of PART (PART_LEN bytes, standing at START of the area) that
 * lies in the LEN bytes at OFFSET.
 */
static void
copy_part (uint8_t *buf, size_t len, size_t offset, const uint8_t *part,
           size_t part_len, size_t start)
{
  const size_t from = MAX (offset, start);
  const size_t to = MIN (offset + len, start + part_len);

  if (from < to)
    memcpy (buf + (from - offset), part + (from - start), to - from);
}

bool
reply_memory_read (const struct reply_memory *memory, uint64_t n, void *buf,
                   size_t len, size_t offset)
{
  const size_t i = n % ARRAY_LEN (memory->replies);

  if (n < memory->oldest || n >= memory->next)
    return false;
  memset (buf, 0, len);
  copy_part (buf, len, offset, memory->replies[i].header,
             BP_REPLY_HEADER_SIZE, 0);
  if (memory->replies[i].payload)
    copy_part (buf, len, offset, memory->replies[i].payload,
               memory->replies[i].len, BP_REPLY_HEADER_SIZE);
  return true;
}
