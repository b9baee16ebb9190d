/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* NBD_CMD_CACHE: page a range in, for nobody in particular.
 *
 * The range is read a piece at a time by reads that are no client's: they
 * are admitted like others, and neither counted nor watched nor touched.
 * What would push itself out again is not worth the trouble, so at most a
 * quarter of the budget is paged in for one command.
 */
#include <config.h>

#include <stdlib.h>

#include "lib/base/range.h"
#include "daemon/pager/read.h"

enum {
  WARM_PIECE = 1 << 20, /* Bytes read at a time. */
  WARM_SHARE = 4,
};

struct warm {
  struct read_op op; /* First. */
  uint64_t end;
  /* Pieces that are over and not yet followed up: whoever makes it 1 does
   * so, which keeps a run of pieces from recursing.
   */
  _Atomic unsigned nr_over;
};

static void warm_go_on (struct warm *warm);

static void
warm_free (struct warm *warm)
{
  export_unref (warm->op.export);
  free (warm);
}

static void
piece_over (struct read_op *op)
{
  struct warm *warm = (struct warm *) op;

  if (atomic_fetch_add (&warm->nr_over, 1) == 0)
    warm_go_on (warm);
}

/* Start the piece at op->offset.  False if the range is done. */
static bool
start_piece (struct warm *warm)
{
  if (warm->op.offset >= warm->end)
    return false;
  warm->op.len =
    (uint32_t) MIN (warm->end - warm->op.offset, WARM_PIECE);
  if (read_start_quiet (&warm->op))
    atomic_fetch_add (&warm->nr_over, 1);
  return true;
}

/* A piece is over, and this thread follows it up.  A failure ends the
 * whole: a client that reads there will hear of it.
 */
static void
warm_go_on (struct warm *warm)
{
  do {
    const int status = warm->op.status;

    read_op_release (&warm->op);
    warm->op.offset += warm->op.len;
    if (status < 0 || !start_piece (warm)) {
      warm_free (warm);
      return;
    }
  } while (atomic_fetch_sub (&warm->nr_over, 1) > 1);
}

void
export_prefetch (struct export *export, uint64_t offset, uint64_t len)
{
  const uint64_t most = export->pager->cache->budget / WARM_SHARE;
  struct warm *warm;

  if (len == 0 || !range_is_within (export->info.size, offset, len))
    return;
  warm = calloc (1, sizeof *warm);
  if (warm == NULL)
    return; /* It was but a hint. */
  export_ref (export);
  warm->op.export = export;
  warm->op.offset = offset;
  warm->op.complete = piece_over;
  warm->end = offset + MIN (len, most);
  atomic_init (&warm->nr_over, 1); /* A piece of no bytes is over. */
  warm_go_on (warm);
}
