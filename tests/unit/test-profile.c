/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Profiles: how records are packed and unpacked. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "harness/vectors.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/hex.h"
#include "lib/base/io.h"
#include "lib/base/range.h"
#include "lib/profile.h"

/* Record number I of a reproducible series; none is all zero. */
static struct bp_blob_message
blob_number (uint64_t i)
{
  struct bp_blob_message message = { .offset = i * 4096 };

  fill_splitmix (message.root.bytes, BP_ROOT_SIZE, i);
  return message;
}

static struct bp_blob_message *
blobs_of (size_t count)
{
  struct bp_blob_message *messages = calloc (count + 1, sizeof *messages);

  cr_assert_not_null (messages);
  for (size_t i = 0; i < count; i++)
    messages[i] = blob_number (i);
  return messages;
}

static struct bp_file_message *
files_of (size_t count)
{
  struct bp_file_message *messages = calloc (count + 1, sizeof *messages);

  cr_assert_not_null (messages);
  for (size_t i = 0; i < count; i++)
    messages[i] = (struct bp_file_message){ i + 1, i * 4096 };
  return messages;
}

/* COUNT blob records, encoded. */
static uint8_t *
encoded_blobs (size_t count, size_t *ret_len)
{
  CLEANUP_FREE struct bp_blob_message *messages = blobs_of (count);
  uint8_t *data = NULL;

  cr_assert_eq (
    bp_profile_encode_blobs (messages, count, &data, ret_len, NULL), 0);
  return data;
}

static uint8_t *
encoded_files (size_t count, size_t *ret_len)
{
  CLEANUP_FREE struct bp_file_message *messages = files_of (count);
  uint8_t *data = NULL;

  cr_assert_eq (
    bp_profile_encode_files (messages, count, &data, ret_len, NULL), 0);
  return data;
}

static size_t
nr_decoded (const uint8_t *data, size_t len)
{
  struct bp_blob_message *messages;
  size_t count;

  cr_assert_eq (bp_profile_decode_blobs (data, len, &messages, &count, NULL),
                0);
  free (messages);
  return count;
}

/* ---- Vectors ---- */

static void
assert_record (const char *kind, const char *hex)
{
  CLEANUP_FREE uint8_t *data = NULL;
  struct bp_blob_message blob = { .offset = 77 };
  const struct bp_file_message file = { .id = 88, .offset = 77 };
  char got[128];
  size_t len;

  memset (blob.root.bytes, 0x58, BP_ROOT_SIZE);
  if (strcmp (kind, "file-record") == 0)
    cr_assert_eq (bp_profile_encode_files (&file, 1, &data, &len, NULL), 0);
  else
    cr_assert_eq (bp_profile_encode_blobs (&blob, 1, &data, &len, NULL), 0);
  bp_hex_encode (data, strlen (hex) / 2, got);
  cr_assert_str_eq (got, hex, "%s: %s", kind, got);
  cr_assert (bytes_are_zero (data + strlen (hex) / 2,
                             len - strlen (hex) / 2));
}

static void
assert_size (const char *what, uint64_t wanted)
{
  CLEANUP_FREE uint8_t *data = NULL;
  unsigned long count;
  size_t len = 1;

  if (sscanf (what, "blob x%lu", &count) == 1)
    data = encoded_blobs (count, &len);
  else if (sscanf (what, "file x%lu", &count) == 1)
    data = encoded_files (count, &len);
  else
    cr_assert (0, "unknown row: '%s'", what);
  cr_assert_eq (len, wanted, "%s: %zu bytes", what, len);
}

Test (profile, records_and_sizes_are_those_of_every_vector)
{
  struct vectors row;
  size_t nr_rows = 0;

  vectors_open (&row, "profile.tsv");
  while (vectors_next (&row)) {
    nr_rows++;
    if (strcmp (row.columns[0], "size") == 0)
      assert_size (row.columns[1], vector_number (row.columns[2]));
    else
      assert_record (row.columns[0], row.columns[2]);
  }
  cr_assert_eq (nr_rows, 10);
}

/* ---- Packing ---- */

Test (profile, no_records_are_no_bytes)
{
  uint8_t *data = (uint8_t *) "";
  size_t len = 1, count = 1;
  struct bp_file_message *messages;

  cr_assert_eq (bp_profile_encode_blobs (NULL, 0, &data, &len, NULL), 0);
  cr_assert_null (data);
  cr_assert_eq (len, 0);
  cr_assert_eq (bp_profile_decode_files (NULL, 0, &messages, &count, NULL),
                0);
  cr_assert_null (messages);
  cr_assert_eq (count, 0);
}

Test (profile, records_come_back_in_order)
{
  static const size_t counts[] = { 1, 101, 102, 103, 3264, 3265, 10000 };

  for (size_t i = 0; i < ARRAY_LEN (counts); i++) {
    size_t len, count;
    CLEANUP_FREE uint8_t *data = encoded_blobs (counts[i], &len);
    CLEANUP_FREE struct bp_blob_message *wanted = blobs_of (counts[i]);
    CLEANUP_FREE struct bp_blob_message *got = NULL;

    cr_assert_eq (bp_profile_decode_blobs (data, len, &got, &count, NULL),
                  0);
    cr_assert_eq (count, counts[i]);
    cr_assert_eq (memcmp (got, wanted, count * sizeof *got), 0, "x%zu",
                  count);
  }
}

Test (profile, file_records_come_back_in_order)
{
  size_t len, count;
  CLEANUP_FREE uint8_t *data = encoded_files (20000, &len);
  CLEANUP_FREE struct bp_file_message *wanted = files_of (20000);
  CLEANUP_FREE struct bp_file_message *got = NULL;

  cr_assert_eq (bp_profile_decode_files (data, len, &got, &count, NULL), 0);
  cr_assert_eq (count, 20000);
  cr_assert_eq (memcmp (got, wanted, count * sizeof *got), 0);
}

Test (profile, an_open_marker_is_kept)
{
  struct bp_blob_message marker = blob_number (1), *got;
  CLEANUP_FREE uint8_t *data = NULL;
  size_t len, count;

  marker.offset = BP_OPEN_MARKER;
  cr_assert_eq (bp_profile_encode_blobs (&marker, 1, &data, &len, NULL), 0);
  cr_assert_eq (bp_profile_decode_blobs (data, len, &got, &count, NULL), 0);
  cr_assert_eq (count, 1);
  cr_assert_eq (got[0].offset, BP_OPEN_MARKER);
  free (got);
}

/* ---- The manual ---- */

/* The line of hexdump -C that shows the 16 bytes at P, without its text
 * column.
 */
static void
format_dump (char *out, size_t len, size_t at, const uint8_t *p)
{
  size_t used = (size_t) snprintf (out, len, " %08zx", at);

  for (size_t i = 0; i < 16; i++)
    used += (size_t) snprintf (out + used, len - used, "%s%02x",
                               i % 8 == 0 ? "  " : " ", p[i]);
}

Test (profile, the_worked_example_of_the_manual_is_what_is_encoded)
{
  struct bp_blob_message messages[2] = { { .offset = 0 }, { .offset = 4096 } };
  CLEANUP_FREE uint8_t *data = NULL, *page = NULL;
  CLEANUP_CLOSE int man = -1;
  uint8_t bytes[8192];
  char line[128], hex[BP_ROOT_HEX_SIZE];
  struct bp_root root;
  size_t len, page_len;

  memset (bytes, 0x42, sizeof bytes);
  cr_assert_eq (bp_merkle_root (bytes, sizeof bytes, &messages[0].root), 0);
  memset (bytes, 0x99, sizeof bytes);
  cr_assert_eq (bp_merkle_root (bytes, sizeof bytes, &messages[1].root), 0);
  cr_assert_eq (bp_profile_encode_blobs (messages, 2, &data, &len, NULL), 0);
  cr_assert_eq (bp_merkle_root (data, len, &root), 0);

  man = open (SRCDIR "/../man", O_PATH | O_CLOEXEC);
  cr_assert_eq (
    bp_read_file (man, "blobpager-profile.pod", 1 << 20, &page, &page_len),
    0);
  for (size_t at = 0; at < 0x60; at += 16) {
    format_dump (line, sizeof line, at, data + at);
    cr_assert_not_null (strstr ((const char *) page, line), "'%s'", line);
  }
  cr_assert_not_null (
    strstr ((const char *) page, bp_root_format (&root, hex)), "%s", hex);
}

/* ---- The zero record ---- */

Test (profile, a_zero_record_ends_its_io_unit_and_no_other)
{
  enum {
    PER_UNIT = 3264
  };
  size_t len;
  CLEANUP_FREE uint8_t *data = encoded_blobs (3 * PER_UNIT, &len);

  cr_assert_eq (len, 3 * BP_PROFILE_IO_UNIT);
  cr_assert_eq (nr_decoded (data, len), 3 * PER_UNIT);
  /* Record 10 of the second unit. */
  memset (data + BP_PROFILE_IO_UNIT + 10 * 40, 0, 40);
  cr_assert_eq (nr_decoded (data, len), 2 * PER_UNIT + 10);
  /* The first of the first unit: that unit is empty. */
  memset (data, 0, 40);
  cr_assert_eq (nr_decoded (data, len), PER_UNIT + 10);
}

Test (profile, a_record_with_a_zero_root_or_a_zero_offset_alone_counts)
{
  struct bp_blob_message messages[2] = { blob_number (1), { .offset = 4096 } };
  CLEANUP_FREE uint8_t *data = NULL;
  size_t len;

  messages[0].offset = 0;
  cr_assert_eq (bp_profile_encode_blobs (messages, 2, &data, &len, NULL), 0);
  cr_assert_eq (nr_decoded (data, len), 2);
}

Test (profile, one_record_at_the_start_of_each_of_two_units_is_two_records)
{
  CLEANUP_FREE uint8_t *data = calloc (1, BP_PROFILE_IO_UNIT + 4096);

  data[0] = 1;
  data[BP_PROFILE_IO_UNIT] = 2;
  cr_assert_eq (nr_decoded (data, BP_PROFILE_IO_UNIT + 4096), 2);
}

Test (profile, what_pads_a_block_is_no_record)
{
  size_t len;
  CLEANUP_FREE uint8_t *data = encoded_blobs (103, &len);

  memset (data + 102 * 40, 0xff, 16);
  cr_assert_eq (nr_decoded (data, len), 103);
}

/* ---- Limits ---- */

Test (profile, a_length_that_is_no_multiple_of_the_block_is_corrupt)
{
  static const size_t bad[] = { 1, 40, 4095, 4097, 131073 };
  CLEANUP_FREE uint8_t *data = calloc (1, 131073);
  struct bp_blob_message *blobs;
  struct bp_file_message *files;
  struct bp_error err;
  size_t count;

  for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
    cr_assert_eq (
      bp_profile_decode_blobs (data, bad[i], &blobs, &count, &err),
      -EBADMSG, "%zu bytes", bad[i]);
    cr_assert_eq (err.code, -EBADMSG);
    cr_assert_eq (
      bp_profile_decode_files (data, bad[i], &files, &count, &err),
      -EBADMSG, "%zu bytes", bad[i]);
  }
}

Test (profile, more_than_16_mib_is_too_large)
{
  const size_t len = BP_PROFILE_MAX_SIZE + 4096;
  CLEANUP_FREE uint8_t *data = calloc (1, len);
  struct bp_blob_message *messages;
  size_t count;

  cr_assert_eq (bp_profile_decode_blobs (data, len, &messages, &count, NULL),
                -ERANGE);
  /* Whatever the length: the limit is looked at first. */
  cr_assert_eq (
    bp_profile_decode_blobs (data, len - 1, &messages, &count, NULL),
    -ERANGE);
  cr_assert_eq (nr_decoded (data, BP_PROFILE_MAX_SIZE), 0);
}

Test (profile, records_that_do_not_fit_16_mib_are_too_many)
{
  enum {
    MOST = 102 * 4096
  };
  CLEANUP_FREE struct bp_blob_message *messages = blobs_of (MOST + 1);
  CLEANUP_FREE uint8_t *data = NULL;
  size_t len;

  cr_assert_eq (
    bp_profile_encode_blobs (messages, MOST + 1, &data, &len, NULL),
    -ERANGE);
  cr_assert_eq (bp_profile_encode_blobs (messages, MOST, &data, &len, NULL),
                0);
  cr_assert_eq (len, BP_PROFILE_MAX_SIZE);
}

Test (profile, a_full_log_of_2_20_file_messages_fits_exactly)
{
  size_t len;
  CLEANUP_FREE uint8_t *data = encoded_files (BP_RECORDING_MAX, &len);

  cr_assert_not_null (data);
  cr_assert_eq (len, BP_PROFILE_MAX_SIZE);
}
