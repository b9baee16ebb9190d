/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Large reads, part by part. */
#include <config.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/range.h"
#include "daemon/front/conn.h"
#include "daemon/front/large-read.h"
#include "daemon/front/request.h"
#include "daemon/front/shard.h"

/* Parts end on such offsets, so that chunks are whole blocks. */
enum {
  PART_ALIGN = 4096
};

bool
large_read_start (struct conn *conn, const uint8_t *cookie, uint64_t offset,
                  uint32_t len)
{
  struct large_read *large = malloc (sizeof *large);

  if (large == NULL)
    return false;
  *large = (struct large_read){
    .conn = conn,
    .next = offset,
    .end = offset + len,
  };
  memcpy (large->cookie, cookie, NBD_COOKIE_SIZE);
  conn->nr_requests++;
  conn->nr_bytes += len;
  TAILQ_INSERT_TAIL (&conn->large, large, entry);
  return true;
}

/* Nothing more of LARGE will be asked for. */
static void
stop_asking (struct large_read *large)
{
  if (large->next == large->end)
    return;
  TAILQ_REMOVE (&large->conn->large, large, entry);
  large->conn->nr_bytes -= large->end - large->next;
  large->next = large->end;
}

static void
free_if_over (struct large_read *large)
{
  if (large->nr_parts > 0 || large->next < large->end)
    return;
  large->conn->nr_requests--;
  free (large);
}

/* Ask for the next part of LARGE. */
static void
ask (struct large_read *large)
{
  struct conn *conn = large->conn;
  const uint32_t max = conn->shard->limits->part_bytes;
  struct request *part = request_new (conn, large->cookie);

  if (part == NULL)
    return;
  part->is_read = true;
  part->form = REPLY_CHUNKS;
  part->large = large;
  part->offset = large->next;
  part->len = (uint32_t) MIN (large->end - large->next,
                              max - large->next % PART_ALIGN);
  large->nr_parts++;
  large->nr_pending++;
  large->next += part->len;
  if (large->next == large->end)
    TAILQ_REMOVE (&conn->large, large, entry);
  request_start_read (part, 0, part->len);
}

void
large_reads_advance (struct conn *conn)
{
  const size_t max_ready = conn->shard->limits->max_resume;

  while (conn->state != CONN_CLOSED && conn->nr_ready < max_ready &&
         conn->nr_ready + conn->nr_asked < conn->window &&
         !TAILQ_EMPTY (&conn->large))
    ask (TAILQ_FIRST (&conn->large));
}

bool
large_read_part_is_last (struct request *part)
{
  struct large_read *large = part->large;

  if (part->error != 0) {
    large->has_failed = true;
    stop_asking (large);
  }
  assert (large->nr_pending > 0);
  large->nr_pending--;
  return large->nr_pending == 0 && large->next == large->end;
}

void
large_read_part_parked (struct request *part)
{
  part->large->nr_pending++;
}

void
large_read_part_gone (struct request *part)
{
  part->large->nr_parts--;
  free_if_over (part->large);
}

void
large_reads_abandon (struct conn *conn)
{
  struct large_read *large;

  while ((large = TAILQ_FIRST (&conn->large)) != NULL) {
    stop_asking (large);
    free_if_over (large);
  }
}
