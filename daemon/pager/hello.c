/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* HELLO: the first request of a control connection, which makes the
 * session.  Its answer sets limits; those beyond our own are cut to ours,
 * and those too low to work with are refused.
 *
 * Threads: the driver thread.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "daemon/pager/driver-internal.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/session-proto.h"

enum {
  HELLO_TIMEOUT_S = 10
};

/* Answers of HELLO. */
struct hello {
  struct command write, read;
  unsigned waiting;
  int error;
  uint8_t *request;
  uint8_t reply[BP_REPLY_HEADER_SIZE + BP_HELLO_REPLY_SIZE];
};

static void
hello_answered (struct command *command, int error)
{
  struct hello *hello = command->owner;

  if (hello->error == 0)
    hello->error = error;
  hello->waiting--;
}

static int
decode_hello (const struct hello *hello, struct bp_hello_reply *ret_reply,
              struct bp_error *err)
{
  int status, r;
  size_t len;

  r = bp_reply_header_decode (hello->reply, &status, &len);
  if (r < 0 || (status == 0 && len != BP_HELLO_REPLY_SIZE))
    return bp_error_set (err, -EPROTO, "HELLO: malformed reply");
  if (status < 0)
    return bp_error_set (err, status, "HELLO: %m");
  r = bp_hello_reply_decode (hello->reply + BP_REPLY_HEADER_SIZE, len,
                             ret_reply, err);
  if (r < 0)
    return r;
  /* Room for a large blob's nodes, its OPEN and a CLOSE. */
  if (ret_reply->max_unanswered < 8)
    return bp_error_set (err, -EOPNOTSUPP, "HELLO: limits too low");
  if (ret_reply->max_batch > BP_MAX_BATCH)
    ret_reply->max_batch = BP_MAX_BATCH;
  if (ret_reply->max_unanswered > BP_MAX_UNANSWERED)
    ret_reply->max_unanswered = BP_MAX_UNANSWERED;
  return 0;
}

/* The commands are lent until every one is answered: after a failure the
 * connection has to be closed before HELLO is freed.
 */
static int
exchange_hello (struct driver *driver, struct hello *hello,
                struct bp_error *err)
{
  const uint64_t deadline = now_ns () + HELLO_TIMEOUT_S * NS_PER_SEC;
  const struct bp_request request = { .op = BP_OP_HELLO,
                                      .version = BP_SESSION_VERSION };
  size_t len;
  uint64_t n;

  if (bp_request_encode (&request, NULL, NULL, &hello->request, &len) < 0)
    return bp_error_set (err, -ENOMEM, "HELLO: out of memory");
  hello->waiting = 2;
  hello->write = (struct command){ .answered = hello_answered,
                                   .owner = hello };
  hello->read = hello->write;
  n = wire_request (driver->control, &hello->write, hello->request, len);
  wire_read (driver->control, &hello->read, hello->reply,
             sizeof hello->reply, bp_control_offset (n));
  while (hello->waiting > 0) {
    if (driver_is_stopping (driver))
      return bp_error_set (err, -ECANCELED, "HELLO: cancelled");
    if (now_ns () > deadline)
      return bp_error_set (err, -ETIMEDOUT, "HELLO: no answer in time");
    if (wire_poll (driver->control, driver->event_fd, 1000) < 0)
      hello->error = -ENOTCONN;
    wire_dispatch (driver->control);
    if (hello->error == -ENOTCONN)
      return bp_error_set (err, -ENOTCONN, "HELLO: connection lost");
  }
  if (hello->error < 0)
    return bp_error_set (err, hello->error, "HELLO: %m");
  return 0;
}

int
driver_say_hello (struct driver *driver, struct bp_hello_reply *ret_reply,
                  struct bp_error *err)
{
  struct hello *hello = calloc (1, sizeof *hello);
  int r;

  if (hello == NULL)
    return bp_error_set (err, -ENOMEM, "HELLO: out of memory");
  r = exchange_hello (driver, hello, err);
  if (r == 0)
    r = decode_hello (hello, ret_reply, err);
  if (r < 0)
    wire_close (steal_ptr (&driver->control));
  free (hello->request);
  free (hello);
  return r;
}
