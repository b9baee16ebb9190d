/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the server says during negotiation, as bytes. */
#ifndef BP_OPTION_REPLY_H
#define BP_OPTION_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/pager/pager.h"

struct bp_tag;

/* Bytes to be sent. */
struct out_buf {
  uint8_t *data; /* Owned; NULL while there is nothing. */
  size_t len;
  size_t capacity;
  size_t sent; /* Of len. */
};

void out_free (struct out_buf *out);

/* This and all of the following append to OUT.  They return false when
 * memory runs out; the connection cannot go on then.
 */
bool out_append (struct out_buf *out, const void *data, size_t len);

bool reply_greeting (struct out_buf *out);

/* A reply of TYPE to OPTION, with LEN bytes of data. */
bool reply_option (struct out_buf *out, uint32_t option, uint32_t type,
                   const void *data, size_t len);

/* An error, with a message for people. */
bool reply_option_error (struct out_buf *out, uint32_t option, uint32_t type,
                         const char *message);

/* One export of the answer to LIST. */
bool reply_listed (struct out_buf *out, const struct bp_tag *tag);

/* What INFO and GO tell about an export, before the acknowledgement. */
bool reply_info (struct out_buf *out, uint32_t option,
                 const struct export_info *info, bool structured,
                 bool wants_name, bool wants_description);

/* One context of the answer to LIST_META_CONTEXT (which tells no
 * identifiers) or SET_META_CONTEXT.
 */
bool reply_context (struct out_buf *out, uint32_t option, enum map_kind kind,
                    bool has_id);

/* The answer to EXPORT_NAME. */
bool reply_export_name (struct out_buf *out, const struct export_info *info,
                        bool structured, bool no_zeroes);

#endif /* BP_OPTION_REPLY_H */
