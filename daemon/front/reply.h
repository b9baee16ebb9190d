/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Replies: how they look on the wire, and sending them. */
#ifndef BP_REPLY_H
#define BP_REPLY_H

#include <stdint.h>

struct conn;
struct request;

/* Queue the reply to REQUEST, whose op (if has_op) is complete. */
void reply_queue (struct request *request);

/* Send what the socket takes of the handshake's output and the replies.
 * Closes the connection if the client has gone.
 */
void replies_send (struct conn *conn);

/* The stall timer: if the client reads slowly or not at all, let the
 * windows of its replies go.
 */
void replies_stalled (struct conn *conn);

#endif /* BP_REPLY_H */
