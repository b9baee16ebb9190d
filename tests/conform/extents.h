/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The extents in a reply to NBD_CMD_BLOCK_STATUS. */
#ifndef BP_CONFORM_EXTENTS_H
#define BP_CONFORM_EXTENTS_H

#include <stdint.h>

#include "conform/data.h"

struct chunk;
struct pending;
struct session;

struct extent {
  uint32_t len; /* Bytes. */
  uint32_t status;
};

struct extents {
  uint32_t context;
  unsigned count;
  const struct extent *list;
};

/* Of one chunk; fails if its length is none of those that are allowed. */
struct extents extents_of_chunk (const struct chunk *chunk);

/* The one chunk of context ID in a reply; fails if it is an error, or has
 * no such chunk, or more than one.
 */
struct extents extents_of_reply (const struct pending *pending, uint32_t id);

/* Ask for SPAN with command FLAGS, and wait for the reply. */
struct pending *ask_status (struct session *session, struct span span,
                            uint16_t flags);

#endif /* BP_CONFORM_EXTENTS_H */
