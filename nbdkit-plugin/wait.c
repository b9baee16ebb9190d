/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Waiting is a loop of short nbdkit_nanosleep, because that is what ends
 * when the client goes away or nbdkit shuts down.  What is waited for is
 * under way already as a rule, so the first slices are very short.
 *
 * When the client goes, all workers that wait learn it in the same
 * moment, and nbdkit (seen with 1.32.5) does not survive that they all
 * answer at once: the one whose send fails closes the socket, and one
 * that has looked at the state of the connection just before sends to a
 * socket of -1 and aborts the process.  So they leave one behind the
 * other: first whoever receives, then one that waits, whose thread ends
 * because its send fails, and then the rest, whom nbdkit no longer lets
 * send anything.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "nbdkit-plugin/wait.h"

#define ARRIVAL_NS NS_PER_SEC
#define LEAVE_NS NS_PER_SEC /* How long the others wait for the first. */
enum {
  FIRST_SLICE_NS = 20 * 1000,
  LAST_SLICE_NS = 4 * 1000 * 1000,
  LEAVE_SLICE_NS = 10 * 1000 * 1000,
};

struct wait
wait_begin (struct departure *departure)
{
  return (struct wait){
    .departure = departure,
    .deadline_ns = now_ns () + ARRIVAL_NS,
    .slice_ns = FIRST_SLICE_NS,
  };
}

bool
wait_may_arrive (const struct wait *wait)
{
  return now_ns () < wait->deadline_ns;
}

static void
doze (void)
{
  const struct timespec slice = { .tv_nsec = LEAVE_SLICE_NS };

  nanosleep (&slice, NULL);
}

static bool
is_thread (int tid)
{
  return syscall (SYS_tgkill, getpid (), tid, 0) == 0;
}

/* The client has gone: return when it is this worker's turn. */
static void
wait_to_leave (struct departure *departure)
{
  const uint64_t deadline_ns = now_ns () + LEAVE_NS;
  const int self = (int) syscall (SYS_gettid);
  int first = 0;

  doze (); /* Whoever receives notices the end meanwhile. */
  if (atomic_compare_exchange_strong (&departure->first, &first, self) ||
      first == self)
    return;
  while (is_thread (first) && now_ns () < deadline_ns)
    doze ();
}

int
wait_slice (struct wait *wait, struct bp_error *err)
{
  if (nbdkit_nanosleep (0, wait->slice_ns) == -1) {
    wait_to_leave (wait->departure);
    return bp_error_set (err, -ESHUTDOWN, "session: the client has gone");
  }
  wait->slice_ns = MIN (2 * wait->slice_ns, LAST_SLICE_NS);
  return 0;
}
