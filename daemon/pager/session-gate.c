/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The session gate. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/pager/wire.h"
#include "daemon/pager/session-gate.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

int
session_gate_init (struct session_gate *gate, int driver_event_fd)
{
  pthread_condattr_t attr;

  memset (gate, 0, sizeof *gate);
  gate->driver_event_fd = driver_event_fd;
  pthread_mutex_init (&gate->lock, NULL);
  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&gate->changed, &attr);
  pthread_condattr_destroy (&attr);
  return 0;
}

void
session_gate_done (struct session_gate *gate)
{
  pthread_cond_destroy (&gate->changed);
  pthread_mutex_destroy (&gate->lock);
}

void
session_begin (struct session_gate *gate, const struct bp_hello_reply *hello)
{
  LOCKED (&gate->lock);

  gate->session.epoch++;
  stpcpy (stpcpy (gate->session.export, "session/"), hello->id);
  gate->session.max_batch = hello->max_batch;
  gate->session.max_unanswered = hello->max_unanswered;
  gate->is_doubtful = false;
  gate->is_up = true;
  pthread_cond_broadcast (&gate->changed);
}

void
session_end (struct session_gate *gate)
{
  LOCKED (&gate->lock);

  gate->is_up = false;
  pthread_cond_broadcast (&gate->changed);
}

void
session_wait_empty (struct session_gate *gate)
{
  LOCKED (&gate->lock);

  while (gate->nr_inside > 0)
    pthread_cond_wait (&gate->changed, &gate->lock);
}

bool
session_is_doubtful (struct session_gate *gate)
{
  LOCKED (&gate->lock);

  return gate->is_doubtful;
}

void
session_stop (struct session_gate *gate)
{
  LOCKED (&gate->lock);

  gate->is_stopping = true;
  pthread_cond_broadcast (&gate->changed);
}

bool
session_wait (struct session_gate *gate, struct session *ret_session)
{
  LOCKED (&gate->lock);

  while (!gate->is_up && !gate->is_stopping)
    pthread_cond_wait (&gate->changed, &gate->lock);
  *ret_session = gate->session;
  return !gate->is_stopping;
}

static struct timespec
to_timespec (uint64_t ns)
{
  return (struct timespec){ .tv_sec = (time_t) (ns / NS_PER_SEC),
                            .tv_nsec = (long) (ns % NS_PER_SEC) };
}

int
session_wait_until (struct session_gate *gate, uint64_t until_ns,
                    struct session *ret_session)
{
  const struct timespec until = to_timespec (until_ns);
  LOCKED (&gate->lock);

  while (!gate->is_up && !gate->is_stopping)
    if (pthread_cond_timedwait (&gate->changed, &gate->lock, &until) ==
        ETIMEDOUT)
      break;
  if (gate->is_stopping)
    return -ESHUTDOWN;
  if (!gate->is_up)
    return -ETIMEDOUT;
  *ret_session = gate->session;
  return 0;
}

void
session_wait_lanes (struct session_gate *gate, unsigned nr_lanes,
                    uint64_t until_ns)
{
  const struct timespec until = to_timespec (until_ns);
  LOCKED (&gate->lock);

  while (gate->is_up && !gate->is_stopping && gate->nr_inside < nr_lanes)
    if (pthread_cond_timedwait (&gate->changed, &gate->lock, &until) ==
        ETIMEDOUT)
      return;
}

/* Called with gate->lock held. */
static bool
is_current (const struct session_gate *gate, uint64_t epoch)
{
  return gate->is_up && !gate->is_stopping && gate->session.epoch == epoch;
}

bool
session_is_current (struct session_gate *gate, uint64_t epoch)
{
  LOCKED (&gate->lock);

  return is_current (gate, epoch);
}

bool
session_enter (struct session_gate *gate, uint64_t epoch)
{
  LOCKED (&gate->lock);

  if (!is_current (gate, epoch))
    return false;
  gate->nr_inside++;
  pthread_cond_broadcast (&gate->changed);
  return true;
}

void
session_leave (struct session_gate *gate)
{
  LOCKED (&gate->lock);

  assert (gate->nr_inside > 0);
  gate->nr_inside--;
  pthread_cond_broadcast (&gate->changed);
}

void
session_doubt (struct session_gate *gate, uint64_t epoch)
{
  LOCKED (&gate->lock);

  if (!is_current (gate, epoch))
    return;
  gate->is_doubtful = true;
  event_fd_signal (gate->driver_event_fd);
}

void
session_pause (struct session_gate *gate, uint64_t epoch, unsigned ms)
{
  const struct timespec until = to_timespec (now_ns () + ms * NS_PER_MS);
  LOCKED (&gate->lock);

  while (is_current (gate, epoch))
    if (pthread_cond_timedwait (&gate->changed, &gate->lock, &until) ==
        ETIMEDOUT)
      break;
}
