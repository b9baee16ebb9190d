/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Negotiation: fixed newstyle. */
#ifndef BP_HANDSHAKE_H
#define BP_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* ---- For the files handshake*.c ---- */

enum {
  HANDSHAKE_MAX_NAME = 256, /* Bytes: no export's name is as long. */
};

/* SENT is what appending a reply returned. */
void handshake_check_reply (struct conn *conn, bool sent);

/* We do not wait for the client now, until handshake_next. */
void handshake_stop_deadline (struct conn *conn);

/* The option is answered (unless CONN is closed): wait for the next. */
void handshake_next (struct conn *conn);

/* Refuse the option, or acknowledge it, and wait for the next. */
void handshake_refuse (struct conn *conn, uint32_t type,
                       const char *message);
void handshake_acknowledge (struct conn *conn);

/* How an export that could not be opened is refused.  Damage must not
 * look like absence.
 */
uint32_t handshake_open_error (int status);

/* Ask the pager for the export; its answer ends the option. */
void handshake_open_export (struct conn *conn, const uint8_t *name,
                            size_t len);

/* INFO and GO: u32 length, name, u16 count, u16 information requests. */
void handshake_get_info (struct conn *conn);

/* LIST_META_CONTEXT and SET_META_CONTEXT. */
void handshake_query_contexts (struct conn *conn);

#endif /* BP_HANDSHAKE_H */
