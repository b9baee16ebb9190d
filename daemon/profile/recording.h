/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the daemon remembers of one recording: which key was which root,
 * and what clients touched first.  The driver's log gives the order; this
 * says what of it counts.
 *
 * Threads: the owner's lock; nothing here blocks.
 */
#ifndef BP_RECORDING_H
#define BP_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/merkle.h"
#include "lib/profile.h"

struct recording;

/* Returns NULL when memory has run out. */
struct recording *recording_new (void);
void recording_free (struct recording *recording);

/* KEY is, or was, open for ROOT.  May be told twice. */
void recording_add_key (struct recording *recording, uint64_t key,
                        const struct bp_root *root);

/* A window whose verified bytes were served to a client. */
struct touch {
  struct bp_root root;
  uint64_t offset; /* Window start in the blob, bytes. */
  uint64_t sent;   /* Windows put on the wire, since the program started,
                      when it was looked up. */
  uint32_t len;    /* Bytes of the window. */
  bool multi;      /* The blob has more than one window. */
  bool warm;       /* It was verified already. */
};

/* Returns true if it is the first touch of that window. */
bool recording_add_touch (struct recording *recording,
                          const struct touch *touch);

struct recording_counts {
  size_t touches;   /* Client opens (windows, of blobs with several). */
  uint64_t bytes;   /* Of the windows touched, each once. */
  bool is_complete; /* Nothing was left out for want of room. */
};
void recording_count (const struct recording *recording,
                      struct recording_counts *ret_counts);

/* Rules 5 and 6: make the profile of the driver's packed LOG of LOG_LEN
 * bytes.  SENT_START: windows put on the wire when the recording started.
 * UNFILTERED: an attached profile.  The caller frees *ret_messages;
 * *ret_logged (messages in the log) may be NULL.  Returns 0; -ERANGE or
 * -EBADMSG for a log that does not decode; -ENOMEM.
 */
int recording_convert (const struct recording *recording,
                       const uint8_t *log, size_t log_len,
                       uint64_t sent_start, bool unfiltered,
                       struct bp_blob_message **ret_messages,
                       size_t *ret_count, size_t *ret_logged,
                       struct bp_error *err);

#endif /* BP_RECORDING_H */
