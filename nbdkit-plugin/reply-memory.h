/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The replies that a connection can still read: those of its last 64
 * requests, 64 MiB in all.  The oldest is forgotten first.
 *
 * Threads: belongs to its lane, under the lane's lock.
 */
#ifndef BP_REPLY_MEMORY_H
#define BP_REPLY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/session-proto.h"

enum {
  REPLY_MEMORY_MAX_BYTES = 64 << 20, /* Of payloads and headers. */
};

/* What a request answers.  The payload is owned. */
struct reply {
  int status;       /* 0 or negative errno. */
  uint8_t *payload; /* NULL if there is none. */
  size_t len;       /* Bytes of it; at most BP_AREA_SIZE less a header. */
};

struct reply_memory {
  uint64_t next;   /* Number of the next reply that is added. */
  uint64_t oldest; /* Oldest that is kept; equal to next: none. */
  size_t bytes;    /* Kept in all. */
  struct {
    uint8_t header[BP_REPLY_HEADER_SIZE];
    uint8_t *payload;
    size_t len;
  } replies[BP_MAX_UNANSWERED]; /* Reply n stands at n mod 64. */
};

/* Zeroed memory is an empty one. */
void reply_memory_done (struct reply_memory *memory);

/* Add the reply of request number memory->next.  Takes ownership of the
 * payload.  Never fails: the header needs no memory.
 */
void reply_memory_add (struct reply_memory *memory,
                       const struct reply *reply);

/* Copy LEN bytes at OFFSET of reply N's area into BUF; past the reply they
 * are zero.  False if reply N has been forgotten or not been added.
 */
bool reply_memory_read (const struct reply_memory *memory, uint64_t n,
                        void *buf, size_t len, size_t offset);

#endif /* BP_REPLY_MEMORY_H */
