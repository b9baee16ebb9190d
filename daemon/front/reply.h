/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Replies: how they look on the wire, and sending them. */
#ifndef BP_REPLY_H
#define BP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct request;

/* Queue the reply to REQUEST, whose op (if has_op) is complete. */
void reply_queue (struct request *request);

/* Append a chunk of TYPE with FLAGS to the answer of REQUEST, which is no
 * read and has no error: its payload is LEN bytes of DATA.  The last one
 * has NBD_REPLY_FLAG_DONE; then queue it.  Returns false if there is no
 * memory, and nothing has been appended.
 */
bool reply_add_chunk (struct request *request, uint16_t type, uint16_t flags,
                      const void *data, size_t len);

/* Send what the socket takes of the handshake's output and the replies.
 * Closes the connection if the client has gone.
 */
void replies_send (struct conn *conn);

/* The stall timer: if the client reads slowly or not at all, let the
 * windows of its replies go.
 */
void replies_stalled (struct conn *conn);

#endif /* BP_REPLY_H */
