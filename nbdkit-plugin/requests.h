/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What each control request does, HELLO excepted (lane.c). */
#ifndef BP_REQUESTS_H
#define BP_REQUESTS_H

#include "lib/session-proto.h"
#include "nbdkit-plugin/reply-memory.h"
#include "nbdkit-plugin/session.h"

/* Run REQUEST, of any kind but HELLO.  It always gets a reply, whose
 * payload is the caller's.  Called from the one thread that runs the
 * requests of its connection at that moment.
 */
void request_run (struct session *session, const struct bp_request *request,
                  struct reply *ret_reply);

#endif /* BP_REQUESTS_H */
