/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A read whose structured reply is sent part by part as the parts come,
 * so that it need not fit in the cache, nor wait for its slowest window.
 *
 *   offset                     next              end
 *     ├───────┬───────┬───────┬──┼────────────────┤
 *     │ sent  │replies│reading│ asked for when there is room
 *
 * Each part is a request of its own (request->large) with its client's
 * cookie, and is answered in any order.  The last chunk of the part that
 * is queued last ends the reply.  When a part fails, no more are asked
 * for.
 *
 * Belongs to the loop's thread.
 */
#ifndef BP_LARGE_READ_H
#define BP_LARGE_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/front/nbd-protocol.h"

struct conn;
struct request;

struct large_read {
  TAILQ_ENTRY (large_read)
  entry; /* In conn->large while next < end. */
  struct conn *conn;
  uint64_t next;       /* Offset in the export of what is not asked for; */
  uint64_t end;        /* of the end. */
  unsigned nr_parts;   /* That are not answered. */
  unsigned nr_pending; /* Of these, those that are not queued. */
  bool has_failed;     /* A part. */
  uint8_t cookie[NBD_COOKIE_SIZE];
};

TAILQ_HEAD (large_read_list, large_read);

/* Read LEN bytes at OFFSET.  Returns false if there is no memory. */
bool large_read_start (struct conn *conn, const uint8_t *cookie,
                       uint64_t offset, uint32_t len);

/* Ask for parts as long as fewer than max_resume bytes wait for CONN's
 * socket and its window is not full.  May close CONN.
 */
void large_reads_advance (struct conn *conn);

/* PART is about to be queued: is it the last? */
bool large_read_part_is_last (struct request *part);

/* PART was queued, and will be read again. */
void large_read_part_parked (struct request *part);

/* PART is being freed. */
void large_read_part_gone (struct request *part);

/* CONN is closed: ask for no more. */
void large_reads_abandon (struct conn *conn);

#endif /* BP_LARGE_READ_H */
