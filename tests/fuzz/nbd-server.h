/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The front for fuzz targets: one connection over a socket pair, its event
 * loop run by the caller's thread, over the fake pager.
 */
#ifndef BP_FUZZ_NBD_SERVER_H
#define BP_FUZZ_NBD_SERVER_H

#include <stddef.h>
#include <stdint.h>

/* Gets what the server sends, in order, in pieces of any length. */
typedef void (*nbd_output_fn) (void *opaque, const uint8_t *data,
                               size_t len);

/* Connect, send SIZE bytes, wait until the server has done with them, then
 * hang up and wait until the connection is gone.  Checks that nothing of
 * it is left.
 */
void nbd_server_converse (const uint8_t *data, size_t size,
                          nbd_output_fn output, void *opaque);

/* Of the image that every export has. */
const uint8_t *nbd_server_image (void);

#endif /* BP_FUZZ_NBD_SERVER_H */
