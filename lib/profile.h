/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Profiles: the records, their packing, and the conversion of a driver's
 * log into a profile (blobpager-profile(5)).
 *
 * Records are packed into blocks of 4096 bytes and never cross one; the
 * rest of a block is zero.  An all-zero record ends its 128 KiB I/O unit.
 *
 * Threads: pure functions on the caller's memory.
 */
#ifndef BP_PROFILE_H
#define BP_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/merkle.h"

enum {
  BP_PROFILE_BLOCK = 4096,
  BP_PROFILE_IO_UNIT = 128 << 10,
  BP_PROFILE_MAX_SIZE = 16 << 20, /* Bytes of an encoded profile. */
  BP_RECORDING_MAX = 1 << 20,     /* Messages of a log, and warm notes. */
};
#define BP_OPEN_MARKER UINT64_MAX /* Offset that is no page-in. */

/* Bytes ROOT ‖ u64 offset on disk. */
struct bp_blob_message {
  struct bp_root root;
  uint64_t offset; /* Bytes in the blob, or BP_OPEN_MARKER. */
};

/* Bytes u64 id ‖ u64 offset on disk. */
struct bp_file_message {
  uint64_t id; /* Session key, or the store's object id. */
  uint64_t offset;
};

/* Encode COUNT messages.  The caller frees *ret_data (NULL, with length
 * 0, for no messages).  Returns 0, -ENOMEM, -ERANGE past
 * BP_PROFILE_MAX_SIZE.
 */
int bp_profile_encode_blobs (const struct bp_blob_message *messages,
                             size_t count, uint8_t **ret_data,
                             size_t *ret_len, struct bp_error *err);
int bp_profile_encode_files (const struct bp_file_message *messages,
                             size_t count, uint8_t **ret_data,
                             size_t *ret_len, struct bp_error *err);

/* Decode LEN bytes.  Open markers are kept.  The caller frees
 * *ret_messages (NULL for none).  Returns 0; -ERANGE past the maximum;
 * -EBADMSG for a length that is no multiple of the block; -ENOMEM.
 */
int bp_profile_decode_blobs (const uint8_t *data, size_t len,
                             struct bp_blob_message **ret_messages,
                             size_t *ret_count, struct bp_error *err);
int bp_profile_decode_files (const uint8_t *data, size_t len,
                             struct bp_file_message **ret_messages,
                             size_t *ret_count, struct bp_error *err);

/* ---- Conversion (rules 5 and 6 of recording) ---- */

/* A blob that was open during the recording. */
struct bp_key_entry {
  uint64_t key;
  struct bp_root root;
};

/* The first client touch of a window that was verified already: it goes
 * before the driver's message number SENT.
 */
struct bp_warm_note {
  struct bp_root root;
  uint64_t offset; /* Window start, bytes. */
  uint64_t sent;   /* Windows put on the wire before it. */
};

/* A client open: verified bytes of ROOT served to a client in scope.
 * For a blob of more than one window there is one entry for each window
 * that was touched, and only those windows pass; MULTI says so.
 */
struct bp_client_open {
  struct bp_root root;
  uint64_t offset; /* Window start; 0 for a blob of one window. */
  bool multi;      /* The blob has more than one window. */
};

/* What a recording leaves behind; all arrays are borrowed. */
struct bp_recording_log {
  const struct bp_file_message *messages; /* Driver's log, in order. */
  size_t nr_messages;
  const struct bp_key_entry *keys; /* Any order; keys are unique. */
  size_t nr_keys;
  const struct bp_client_open *opens; /* Any order; may repeat. */
  size_t nr_opens;
  const struct bp_warm_note *notes; /* In the order they were made. */
  size_t nr_notes;
  bool unfiltered; /* Attached profile: client opens are not asked for. */
};

/* Key to root, unknown keys dropped, notes merged in by their stamps,
 * only roots (windows) with a client open, open markers dropped, and of
 * equal (root, offset) the first kept.  For the filter, an offset of a blob
 * whose opens say MULTI stands for its window.  O(n log n).  The caller
 * frees *ret_messages.  Returns 0 or -ENOMEM.
 */
int bp_profile_convert (const struct bp_recording_log *log,
                        struct bp_blob_message **ret_messages,
                        size_t *ret_count, struct bp_error *err);

#endif /* BP_PROFILE_H */
