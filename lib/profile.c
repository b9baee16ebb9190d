/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Packing and unpacking records.
 *
 *   block   [ record record … record | zeros ]   4096 bytes
 *   I/O unit  32 blocks                          128 KiB
 *
 * Both kinds of record are packed alike; only the size of a
 * record differs.  Unpacking walks twice, first to count, so that memory
 * follows from the records that are there, not from the length.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "lib/profile.h"

enum {
  BLOB_RECORD_SIZE = 40, /* root, u64 offset */
  FILE_RECORD_SIZE = 16, /* u64 id, u64 offset */
};

/* ---- Records ---- */

static void
put_blob (uint8_t *p, const struct bp_blob_message *message)
{
  memcpy (p, message->root.bytes, BP_ROOT_SIZE);
  put_le64 (p + BP_ROOT_SIZE, message->offset);
}

static void
get_blob (const uint8_t *p, struct bp_blob_message *message)
{
  memcpy (message->root.bytes, p, BP_ROOT_SIZE);
  message->offset = get_le64 (p + BP_ROOT_SIZE);
}

static void
put_file (uint8_t *p, const struct bp_file_message *message)
{
  put_le64 (p, message->id);
  put_le64 (p + 8, message->offset);
}

static void
get_file (const uint8_t *p, struct bp_file_message *message)
{
  message->id = get_le64 (p);
  message->offset = get_le64 (p + 8);
}

/* ---- Packing ---- */

/* Where record I of its kind stands. */
static size_t
record_at (size_t i, size_t record_size)
{
  const size_t per_block = BP_PROFILE_BLOCK / record_size;

  return i / per_block * BP_PROFILE_BLOCK + i % per_block * record_size;
}

/* Zeroed memory for COUNT records; NULL with length 0 for none. */
static int
allocate_profile (size_t count, size_t record_size, uint8_t **ret_data,
                  size_t *ret_len, struct bp_error *err)
{
  const size_t per_block = BP_PROFILE_BLOCK / record_size;
  const size_t nr_blocks = (size_t) div_round_up (count, per_block);
  uint8_t *data = NULL;

  if (nr_blocks > BP_PROFILE_MAX_SIZE / BP_PROFILE_BLOCK)
    return bp_error_set (err, -ERANGE,
                         "profile: %zu records are more than fit %d bytes",
                         count, BP_PROFILE_MAX_SIZE);
  if (nr_blocks > 0) {
    data = calloc (nr_blocks, BP_PROFILE_BLOCK);
    if (data == NULL)
      return bp_error_set (err, -ENOMEM, "profile: out of memory");
  }
  *ret_data = data;
  *ret_len = nr_blocks * BP_PROFILE_BLOCK;
  return 0;
}

int
bp_profile_encode_blobs (const struct bp_blob_message *messages,
                         size_t count, uint8_t **ret_data, size_t *ret_len,
                         struct bp_error *err)
{
  uint8_t *data;
  const int r =
    allocate_profile (count, BLOB_RECORD_SIZE, &data, ret_len, err);

  if (r < 0)
    return r;
  for (size_t i = 0; i < count; i++)
    put_blob (data + record_at (i, BLOB_RECORD_SIZE), &messages[i]);
  *ret_data = data;
  return 0;
}

int
bp_profile_encode_files (const struct bp_file_message *messages,
                         size_t count, uint8_t **ret_data, size_t *ret_len,
                         struct bp_error *err)
{
  uint8_t *data;
  const int r =
    allocate_profile (count, FILE_RECORD_SIZE, &data, ret_len, err);

  if (r < 0)
    return r;
  for (size_t i = 0; i < count; i++)
    put_file (data + record_at (i, FILE_RECORD_SIZE), &messages[i]);
  *ret_data = data;
  return 0;
}

/* ---- Unpacking ---- */

/* Walks the records of LEN bytes, whole blocks, at DATA. */
struct walk {
  const uint8_t *data;
  size_t len;
  size_t record_size;
  size_t at; /* Of the next record. */
};

/* The next record, or NULL at the end.  An all-zero one ends its I/O
 * unit: the walk goes on with the next.
 */
static const uint8_t *
walk_next (struct walk *walk)
{
  while (walk->at < walk->len) {
    const uint8_t *record = walk->data + walk->at;

    if (BP_PROFILE_BLOCK - walk->at % BP_PROFILE_BLOCK < walk->record_size)
      walk->at = round_up (walk->at, BP_PROFILE_BLOCK);
    else if (bytes_are_zero (record, walk->record_size))
      walk->at = round_down (walk->at, BP_PROFILE_IO_UNIT) +
                 BP_PROFILE_IO_UNIT;
    else {
      walk->at += walk->record_size;
      return record;
    }
  }
  return NULL;
}

static size_t
count_records (struct walk walk)
{
  size_t count = 0;

  while (walk_next (&walk))
    count++;
  return count;
}

/* Start a walk of bytes from outside, and allocate MESSAGE_SIZE bytes for
 * each record that it will meet.
 */
static int
start_walk (const uint8_t *data, size_t len, size_t record_size,
            size_t message_size, struct walk *ret_walk, void **ret_messages,
            struct bp_error *err)
{
  const struct walk walk = {
    .data = data,
    .len = len,
    .record_size = record_size,
  };
  void *messages = NULL;
  size_t count;

  if (len > BP_PROFILE_MAX_SIZE)
    return bp_error_set (err, -ERANGE,
                         "profile: %zu bytes are above the limit of %d",
                         len, BP_PROFILE_MAX_SIZE);
  if (len % BP_PROFILE_BLOCK != 0)
    return bp_error_set (err, -EBADMSG,
                         "profile: %zu bytes are not whole blocks of %d",
                         len, BP_PROFILE_BLOCK);
  count = count_records (walk);
  if (count > 0) {
    messages = calloc (count, message_size);
    if (messages == NULL)
      return bp_error_set (err, -ENOMEM, "profile: out of memory");
  }
  *ret_walk = walk;
  *ret_messages = messages;
  return 0;
}

int
bp_profile_decode_blobs (const uint8_t *data, size_t len,
                         struct bp_blob_message **ret_messages,
                         size_t *ret_count, struct bp_error *err)
{
  struct bp_blob_message *messages;
  const uint8_t *record;
  struct walk walk;
  void *memory;
  size_t count = 0;
  const int r = start_walk (data, len, BLOB_RECORD_SIZE, sizeof *messages,
                            &walk, &memory, err);

  if (r < 0)
    return r;
  messages = memory;
  while ((record = walk_next (&walk)) != NULL)
    get_blob (record, &messages[count++]);
  *ret_messages = messages;
  *ret_count = count;
  return 0;
}

int
bp_profile_decode_files (const uint8_t *data, size_t len,
                         struct bp_file_message **ret_messages,
                         size_t *ret_count, struct bp_error *err)
{
  struct bp_file_message *messages;
  const uint8_t *record;
  struct walk walk;
  void *memory;
  size_t count = 0;
  const int r = start_walk (data, len, FILE_RECORD_SIZE, sizeof *messages,
                            &walk, &memory, err);

  if (r < 0)
    return r;
  messages = memory;
  while ((record = walk_next (&walk)) != NULL)
    get_file (record, &messages[count++]);
  *ret_messages = messages;
  *ret_count = count;
  return 0;
}
