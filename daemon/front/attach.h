/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the handshake asks of the pager, which answers later and from
 * another thread: opening an export, and listing them.
 */
#ifndef BP_ATTACH_H
#define BP_ATTACH_H

#include <stdbool.h>
#include <stddef.h>

struct conn;

/* Have the pager open the export of LEN bytes of NAME for CONN; ends in
 * handshake_opened, unless it is abandoned.  Returns false if there is no
 * memory.
 */
bool attach_open (struct conn *conn, const void *name, size_t len);

/* Have the pager list the exports; ends in handshake_listed. */
bool attach_list (struct conn *conn);

/* CONN does not want the answer any more. */
void attach_abandon (struct conn *conn);

#endif /* BP_ATTACH_H */
