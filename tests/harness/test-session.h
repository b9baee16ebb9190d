/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A client of the session protocol, for tests: it can do everything the
 * daemon does, and everything it must not do.
 *
 * A command is sent at once and waited for later, so tests choose what is
 * pipelined.  A connection that fails exits the test, an answer does not.
 */
#ifndef BP_TEST_SESSION_H
#define BP_TEST_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libnbd.h>

#include "lib/session-proto.h"

struct lane {
  struct nbd_handle *nbd;
  uint64_t next; /* Number of the next request. */
};

/* Connect to EXPORT of the driver at SOCKET.  lane_try returns false if
 * the driver refuses it.
 */
struct lane lane_connect (const char *socket, const char *export);
bool lane_try (const char *socket, const char *export,
               struct lane *ret_lane);
void lane_close (struct lane *lane);

/* Send a raw write or read; returns its cookie. */
int64_t lane_send_write (struct lane *lane, const void *buf, size_t len,
                         uint64_t offset);
int64_t lane_send_read (struct lane *lane, void *buf, size_t len,
                        uint64_t offset);
/* Send request number lane->next. */
int64_t lane_send_request (struct lane *lane,
                           const struct bp_request *request,
                           const struct bp_open_item *items,
                           const uint64_t *keys);

/* Wait for a command: 0, or the errno of its answer. */
int lane_wait (struct lane *lane, int64_t cookie);

/* The same, sent and waited for. */
int lane_write (struct lane *lane, const void *buf, size_t len,
                uint64_t offset);
int lane_read (struct lane *lane, void *buf, size_t len, uint64_t offset);

/* ---- Whole requests: sent and the reply read.  Each returns the reply's
 * status, or the negative errno of the write. ----
 */

/* The payload is the caller's to free; RET_LEN may be NULL with it. */
int lane_request (struct lane *lane, const struct bp_request *request,
                  const struct bp_open_item *items, const uint64_t *keys,
                  uint8_t **ret_payload, size_t *ret_len);
/* The id of the session into RET_ID on success. */
int lane_hello (struct lane *lane, char ret_id[BP_SESSION_ID_SIZE]);
/* One key; returns the status of its result if the request worked. */
int lane_open (struct lane *lane, uint64_t key, const struct bp_root *root,
               struct bp_open_result *ret_result);
int lane_close_key (struct lane *lane, uint64_t key);
/* Read one byte; how long that took, in milliseconds. */
int lane_read_timed (struct lane *lane, uint64_t offset,
                     unsigned *ret_took_ms);

#endif /* BP_TEST_SESSION_H */
