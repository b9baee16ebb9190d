/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Connecting to where a URI points. */
#ifndef BP_CONFORM_DIAL_H
#define BP_CONFORM_DIAL_H

struct uri;

/* A connected socket, with Nagle's algorithm off; ends the check, with
 * the reason, if there is no connection.
 */
int dial (const struct uri *uri);

#endif /* BP_CONFORM_DIAL_H */
