/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Waiting for one descriptor, a deadline and a reason to hurry. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>

#include "daemon/drain.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"

bool
drain_wait (int fd, uint64_t end_ns, int hurry_fd)
{
  struct pollfd fds[] = {
    { .fd = fd, .events = POLLIN },
    { .fd = hurry_fd, .events = POLLIN },
  };
  uint64_t now, wait_ms;
  int r;

  do {
    now = now_ns ();
    wait_ms = now < end_ns ? div_round_up (end_ns - now, NS_PER_MS) : 0;
    r = poll (fds, ARRAY_LEN (fds), (int) MIN (wait_ms, INT_MAX));
    assert (r >= 0 || errno == EINTR);
  } while (r < 0 || (r == 0 && now < end_ns));
  return fds[0].revents != 0;
}
