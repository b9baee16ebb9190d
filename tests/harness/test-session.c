/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The session protocol over libnbd's asynchronous calls. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "harness/test-driver.h"
#include "harness/test-session.h"

bool
lane_try (const char *socket, const char *export, struct lane *ret_lane)
{
  struct nbd_handle *nbd = nbd_create ();

  EXPECT (nbd != NULL);
  /* What a client may not do is part of what is tested. */
  EXPECT (nbd_set_strict_mode (nbd, 0) == 0);
  EXPECT (nbd_set_export_name (nbd, export) == 0);
  if (nbd_connect_unix (nbd, socket) == -1) {
    nbd_close (nbd);
    return false;
  }
  *ret_lane = (struct lane){ .nbd = nbd };
  return true;
}

struct lane
lane_connect (const char *socket, const char *export)
{
  struct lane lane;

  if (!lane_try (socket, export, &lane))
    FAIL ("export '%s': %s", export, nbd_get_error ());
  return lane;
}

void
lane_close (struct lane *lane)
{
  nbd_close (lane->nbd);
  lane->nbd = NULL;
}

int64_t
lane_send_write (struct lane *lane, const void *buf, size_t len,
                 uint64_t offset)
{
  const int64_t cookie = nbd_aio_pwrite (lane->nbd, buf, len, offset,
                                         NBD_NULL_COMPLETION, 0);

  if (cookie == -1)
    FAIL ("write: %s", nbd_get_error ());
  return cookie;
}

int64_t
lane_send_read (struct lane *lane, void *buf, size_t len, uint64_t offset)
{
  const int64_t cookie = nbd_aio_pread (lane->nbd, buf, len, offset,
                                        NBD_NULL_COMPLETION, 0);

  if (cookie == -1)
    FAIL ("read: %s", nbd_get_error ());
  return cookie;
}

/* Keeps the bytes of requests until the process ends: a command borrows
 * them until it is answered.
 */
int64_t
lane_send_request (struct lane *lane, const struct bp_request *request,
                   const struct bp_open_item *items, const uint64_t *keys)
{
  static uint8_t *kept[1 << 16];
  static size_t nr_kept;
  size_t len;

  EXPECT (nr_kept < sizeof kept / sizeof *kept);
  EXPECT_EQ (bp_request_encode (request, items, keys, &kept[nr_kept], &len),
             0);
  return lane_send_write (lane, kept[nr_kept++], len,
                          bp_control_offset (lane->next++));
}

int
lane_wait (struct lane *lane, int64_t cookie)
{
  int r;

  while ((r = nbd_aio_command_completed (lane->nbd, (uint64_t) cookie)) ==
         0)
    if (nbd_poll (lane->nbd, -1) == -1)
      FAIL ("connection: %s", nbd_get_error ());
  return r == 1 ? 0 : nbd_get_errno ();
}

int
lane_write (struct lane *lane, const void *buf, size_t len, uint64_t offset)
{
  return lane_wait (lane, lane_send_write (lane, buf, len, offset));
}

int
lane_read (struct lane *lane, void *buf, size_t len, uint64_t offset)
{
  return lane_wait (lane, lane_send_read (lane, buf, len, offset));
}

/* The reply of request N; returns its status. */
static int
read_reply (struct lane *lane, uint64_t n, uint8_t **ret_payload,
            size_t *ret_len)
{
  uint8_t header[BP_REPLY_HEADER_SIZE];
  CLEANUP_FREE uint8_t *payload = NULL;
  size_t len;
  int status;

  EXPECT_EQ (lane_read (lane, header, sizeof header, bp_control_offset (n)),
             0);
  EXPECT_EQ (bp_reply_header_decode (header, &status, &len), 0);
  payload = malloc (len + 1);
  EXPECT (payload != NULL);
  payload[len] = '\0';
  if (len > 0)
    EXPECT_EQ (lane_read (lane, payload, len,
                          bp_control_offset (n) + sizeof header),
               0);
  if (ret_payload) {
    *ret_payload = steal_ptr (&payload);
    *ret_len = len;
  }
  return status;
}

int
lane_request (struct lane *lane, const struct bp_request *request,
              const struct bp_open_item *items, const uint64_t *keys,
              uint8_t **ret_payload, size_t *ret_len)
{
  const uint64_t n = lane->next;
  const int64_t cookie = lane_send_request (lane, request, items, keys);
  const int r = lane_wait (lane, cookie);

  return r ? -r : read_reply (lane, n, ret_payload, ret_len);
}

int
lane_hello (struct lane *lane, char ret_id[BP_SESSION_ID_SIZE])
{
  const struct bp_request request = {
    .op = BP_OP_HELLO,
    .version = BP_SESSION_VERSION,
  };
  CLEANUP_FREE uint8_t *payload = NULL;
  struct bp_hello_reply reply;
  size_t len;
  const int status =
    lane_request (lane, &request, NULL, NULL, &payload, &len);

  if (status == 0) {
    EXPECT_EQ (bp_hello_reply_decode (payload, len, &reply, NULL), 0);
    memcpy (ret_id, reply.id, BP_SESSION_ID_SIZE);
  }
  return status;
}

int
lane_open (struct lane *lane, uint64_t key, const struct bp_root *root,
           struct bp_open_result *ret_result)
{
  const struct bp_open_item item = { .key = key, .root = *root };
  const struct bp_request request = { .op = BP_OP_OPEN, .count = 1 };
  CLEANUP_FREE uint8_t *payload = NULL;
  struct bp_open_result result;
  size_t len;
  const int status =
    lane_request (lane, &request, &item, NULL, &payload, &len);

  if (status < 0)
    return status;
  EXPECT_EQ (len, BP_OPEN_RESULT_SIZE);
  EXPECT_EQ (bp_open_result_decode (payload, &result), 0);
  if (ret_result)
    *ret_result = result;
  return result.status;
}

int
lane_close_key (struct lane *lane, uint64_t key)
{
  const struct bp_request request = { .op = BP_OP_CLOSE, .count = 1 };

  return lane_request (lane, &request, NULL, &key, NULL, NULL);
}

int
lane_read_timed (struct lane *lane, uint64_t offset, unsigned *ret_took_ms)
{
  const uint64_t start = now_ns ();
  uint8_t byte;
  const int r = lane_read (lane, &byte, 1, offset);

  *ret_took_ms = (unsigned) ((now_ns () - start) / NS_PER_MS);
  return r;
}
