/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Slow requests: tags, lists, profiles, recordings.
 *
 * Callers queue them and wait; the driver thread sends one at a time on
 * the control connection, so that none of them holds up a lane:
 *
 *   write, read of the header and 64 KiB ─▶ read of the rest ─▶ answered
 *
 * If the session is lost meanwhile, one that may be repeated waits for the
 * next; a recording's fails, as the recording is gone.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/metrics.h"
#include "daemon/pager/driver-internal.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/session-proto.h"

enum {
  FIRST_READ = 64 << 10
}; /* Bytes asked for with the request. */

void
slow_request_free (struct slow_request *request)
{
  if (request == NULL)
    return;
  free (request->bytes);
  free (request->reply);
  free (request);
}

/* ---- The driver thread ---- */

/* Give the current request back to its caller. */
static void
finish (struct slow_request *request, int status)
{
  struct driver *driver = request->driver;
  bool is_abandoned;

  driver->current = NULL;
  request->answered_epoch = driver->session.epoch;
  request->windows_sent = fetcher_windows_sent (driver->fetcher);
  pthread_mutex_lock (&driver->lock);
  is_abandoned = request->is_abandoned;
  request->status = status;
  request->state = SLOW_ANSWERED;
  pthread_cond_broadcast (&driver->changed);
  pthread_mutex_unlock (&driver->lock);
  if (is_abandoned)
    slow_request_free (request);
}

/* The connection ended before the answer.  Returns true if the request
 * waits for another one.
 */
static bool
put_back (struct slow_request *request)
{
  struct driver *driver = request->driver;
  LOCKED (&driver->lock);

  if (!request->is_repeatable || request->is_abandoned ||
      driver->is_stopping)
    return false;
  free (steal_ptr (&request->reply));
  request->state = SLOW_QUEUED;
  TAILQ_INSERT_HEAD (&driver->queue, request, link);
  driver->current = NULL;
  return true;
}

/* The errors that a request may answer; anything else is an I/O error. */
static int
check_status (int status)
{
  static const int known[] = { ENOENT, EINVAL, EBADMSG, EPROTO, ERANGE,
                               EBUSY, EEXIST, EROFS, ENOMEM, ENOSPC,
                               EOPNOTSUPP };

  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (status == -known[i])
      return status;
  return -EIO;
}

/* An NBD error of the control connection itself. */
static int
check_error (int error)
{
  METRIC_ADD (driver_errors, 1);
  return error == -EINVAL ? -EPROTO : error == -ENOMEM ? error
                                                       : -EIO;
}

static void
read_part (struct slow_request *request, size_t from)
{
  wire_read (request->driver->control, &request->read,
             request->reply + from, request->room - from,
             bp_control_offset (request->number) + from);
}

/* Ask for what stands behind the first read. */
static void
read_rest (struct slow_request *request, size_t whole)
{
  const size_t from = request->room;
  uint8_t *reply = realloc (request->reply, whole);

  if (reply == NULL) {
    finish (request, -ENOMEM);
    return;
  }
  request->reply = reply;
  request->room = whole;
  request->waiting = 1;
  read_part (request, from);
}

static void
all_answered (struct slow_request *request)
{
  int status, r;
  size_t len;

  if (request->error == -ENOTCONN) {
    if (!put_back (request))
      finish (request, -EIO);
    return;
  }
  if (request->error < 0) {
    finish (request, check_error (request->error));
    return;
  }
  r = bp_reply_header_decode (request->reply, &status, &len);
  if (r < 0 || len > request->max_reply) {
    METRIC_ADD (driver_errors, 1);
    finish (request, -EPROTO);
  }
  else if (status < 0)
    finish (request, check_status (status));
  else if (BP_REPLY_HEADER_SIZE + len > request->room)
    read_rest (request, BP_REPLY_HEADER_SIZE + len);
  else {
    request->reply_len = len;
    finish (request, 0);
  }
}

static void
command_answered (struct command *command, int error)
{
  struct slow_request *request = command->owner;

  if (request->error == 0)
    request->error = error;
  if (--request->waiting == 0)
    all_answered (request);
}

static void
send_request (struct slow_request *request)
{
  struct driver *driver = request->driver;

  request->room = BP_REPLY_HEADER_SIZE +
                  (request->max_reply < FIRST_READ ? request->max_reply
                                                   : FIRST_READ);
  request->reply = malloc (request->room);
  if (request->reply == NULL) {
    finish (request, -ENOMEM);
    return;
  }
  request->error = 0;
  request->waiting = 2;
  request->write = (struct command){ .answered = command_answered,
                                     .owner = request };
  request->read = request->write;
  request->number = wire_request (driver->control, &request->write,
                                  request->bytes, request->len);
  read_part (request, 0);
}

void
slow_request_start_next (struct driver *driver)
{
  struct slow_request *request;

  while (driver->current == NULL) {
    pthread_mutex_lock (&driver->lock);
    request = TAILQ_FIRST (&driver->queue);
    if (request) {
      TAILQ_REMOVE (&driver->queue, request, link);
      request->state = SLOW_SENT;
    }
    pthread_mutex_unlock (&driver->lock);
    if (request == NULL)
      return;
    driver->current = request;
    if (request->epoch != 0 && request->epoch != driver->session.epoch)
      finish (request, -EIO);
    else
      send_request (request);
  }
}

int
slow_request_timeout_ms (struct driver *driver)
{
  const struct slow_request *current = driver->current;
  const uint64_t now = now_ns ();

  if (current == NULL)
    return -1;
  if (current->deadline_ns <= now)
    return 0;
  /* The caller gives up first. */
  return (int) ((current->deadline_ns - now) / NS_PER_MS) + 10;
}

bool
slow_request_is_stuck (struct driver *driver)
{
  return driver->current && slow_request_timeout_ms (driver) == 0;
}

/* ---- The caller ---- */

/* Leave a request that was not answered in time.  Called with the lock
 * held.
 */
static void
abandon (struct driver *driver, struct slow_request *request)
{
  if (request->state == SLOW_QUEUED) {
    TAILQ_REMOVE (&driver->queue, request, link);
    slow_request_free (request);
  }
  else
    request->is_abandoned = true;
}

/* Called with the lock held.  Returns 0 if it was answered. */
static int
wait_for_answer (struct driver *driver, struct slow_request *request)
{
  const struct timespec until = {
    .tv_sec = (time_t) (request->deadline_ns / NS_PER_SEC),
    .tv_nsec = (long) (request->deadline_ns % NS_PER_SEC),
  };
  int r = 0;

  while (request->state != SLOW_ANSWERED && !driver->is_stopping && r == 0)
    r = pthread_cond_timedwait (&driver->changed, &driver->lock, &until);
  if (request->state == SLOW_ANSWERED)
    return 0;
  return driver->is_stopping ? -ESHUTDOWN : -ETIMEDOUT;
}

static int
queue_and_wait (struct driver *driver, struct slow_request *request)
{
  int r;
  LOCKED (&driver->lock);

  if (driver->is_stopping) {
    slow_request_free (request);
    return -ESHUTDOWN;
  }
  driver->nr_callers++;
  request->state = SLOW_QUEUED;
  TAILQ_INSERT_TAIL (&driver->queue, request, link);
  event_fd_signal (driver->event_fd);
  r = wait_for_answer (driver, request);
  if (r < 0)
    abandon (driver, request);
  driver->nr_callers--;
  pthread_cond_broadcast (&driver->changed);
  return r;
}

int
slow_request_run (struct driver *driver, struct slow_request *request,
                  struct slow_request **ret_request)
{
  int r;

  request->driver = driver;
  request->deadline_ns = now_ns () + driver->target.timeout_s * NS_PER_SEC;
  r = queue_and_wait (driver, request);
  if (r < 0)
    return r == -ETIMEDOUT ? -EIO : r;
  r = request->status;
  if (r < 0)
    slow_request_free (request);
  else
    *ret_request = request;
  return r;
}
