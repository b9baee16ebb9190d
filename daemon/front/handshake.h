/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Negotiation: fixed newstyle. */
#ifndef BP_HANDSHAKE_H
#define BP_HANDSHAKE_H

#include <stdbool.h>

#include "daemon/front/option-reply.h"

struct conn;
struct export;

/* Queue our greeting. */
void handshake_start (struct conn *conn);

/* Handle what has been received.  May close CONN.  Returns true if there
 * was anything.
 */
bool handshake_parse (struct conn *conn);

/* The data of an option that was too long has been read over. */
void handshake_option_skipped (struct conn *conn);

/* The pager has opened EXPORT (a reference, taken over) for the option of
 * CONN, or STATUS says why not.
 */
void handshake_opened (struct conn *conn, struct export *export, int status,
                       const char *why);

/* The pager has listed the exports: REPLIES is taken over. */
void handshake_listed (struct conn *conn, struct out_buf *replies,
                       int status);

#endif /* BP_HANDSHAKE_H */
