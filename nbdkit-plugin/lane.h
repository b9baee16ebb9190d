/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* One connection to `session` or `session/ID`: its requests run in order
 * of their numbers, and what waits for one of them waits here.
 *
 * nbdkit hands the requests of a connection to 16 workers, which start in
 * order but may overtake each other.  So:
 *
 *   - request n runs after request n - 1,
 *   - a read of reply n waits for request n,
 *   - a data read of a slot that is neither open nor failed waits for it
 *     to be opened.
 *
 * A wait lasts as long as the request it waits for runs, and at most 1 s
 * for it to arrive.  It ends when the client has gone.
 *
 * Threads: lane_pread and lane_pwrite from any number of nbdkit's workers
 * at once; lane_free after the last of them.  Lock order: the lane's lock
 * is taken alone, except that reply-memory copies under it.
 */
#ifndef BP_LANE_H
#define BP_LANE_H

#include <stdint.h>

#include "lib/error.h"
#include "nbdkit-plugin/session.h"

struct lane;

/* A connection to the export `session`: SESSION_ID is NULL and the lane
 * is nothing until HELLO; or to `session/SESSION_ID`: -ENOENT if there is
 * no such session.  CONFIG is borrowed until the lane is freed.
 */
int lane_new (struct lane **ret_lane, const struct session_config *config,
              const char *session_id, struct bp_error *err);

/* The connection has ended; with the last one, so does the session. */
void lane_free (struct lane *lane);

/* Data, or a reply.  Returns 0; -EINVAL for anything that is neither, or
 * that waited in vain; -ESHUTDOWN when the client has gone; -ENOMEM; or
 * an I/O error of the store.
 */
int lane_pread (struct lane *lane, void *buf, uint32_t count,
                uint64_t offset, struct bp_error *err);

/* A request, which has run when this returns 0: its status, whatever it
 * is, is in the reply.  -EINVAL for a write that is no request, and for a
 * number that is used or whose predecessor does not arrive.
 */
int lane_pwrite (struct lane *lane, const void *buf, uint32_t count,
                 uint64_t offset, struct bp_error *err);

#endif /* BP_LANE_H */
