/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A child, and the pipe that is its standard output.
 *
 * The child knows its deadline and says what it was waiting for when it
 * came (check.c); the parent kills it two seconds later, for a suite must
 * not hang even if it has an error itself.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/apart.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"

enum {
  GRACE_S = 2,
};

static void __attribute__ ((noreturn))
run_child (void (*run) (const struct target *target),
           const struct target *target, unsigned timeout_s, int out)
{
  if (dup2 (out, STDOUT_FILENO) < 0)
    _exit (CHECK_FAILED);
  check_begin (timeout_s);
  run (target);
  check_end ();
}

/* Room for what is read: at the end of it, over and over. */
static ssize_t
read_output (int fd, struct outcome *outcome)
{
  char lost[4096];
  const size_t room = MAX_OUTPUT - outcome->len;
  ssize_t n;

  if (room == 0)
    return read (fd, lost, sizeof lost);
  n = read (fd, outcome->text + outcome->len, room);
  if (n > 0)
    outcome->len += (size_t) n;
  return n;
}

/* Until the child has closed it.  Returns false if the time is up. */
static bool
gather_output (int fd, uint64_t deadline_ns, struct outcome *outcome)
{
  while (1) {
    const uint64_t now = now_ns ();
    struct pollfd pollfd = { .fd = fd, .events = POLLIN };
    int n = 0;

    if (now < deadline_ns)
      n = poll (&pollfd, 1, (int) ((deadline_ns - now) / NS_PER_MS) + 1);
    if (n == 0)
      return false;
    if (n > 0 && read_output (fd, outcome) == 0)
      return true;
  }
}

static void
say (struct outcome *outcome, const char *text)
{
  const size_t len = MIN (strlen (text), MAX_OUTPUT - outcome->len);

  memcpy (outcome->text + outcome->len, text, len);
  outcome->len += len;
}

static void
judge (int status, struct outcome *outcome)
{
  if (WIFEXITED (status) && WEXITSTATUS (status) <= CHECK_UNREACHABLE) {
    outcome->result = (enum check_result) WEXITSTATUS (status);
    return;
  }
  outcome->result = CHECK_FAILED;
  if (WIFSIGNALED (status) && WTERMSIG (status) != SIGKILL) {
    say (outcome, "the check itself died: ");
    say (outcome, strsignal (WTERMSIG (status)));
    say (outcome, "\n");
  }
}

int
run_apart (void (*run) (const struct target *target),
           const struct target *target, unsigned timeout_s,
           struct outcome *ret_outcome)
{
  int fds[2], status;
  pid_t pid;

  ret_outcome->len = 0;
  if (pipe (fds) < 0)
    return -errno;
  fflush (stdout);
  pid = fork ();
  if (pid < 0) {
    const int r = -errno;

    close (fds[0]);
    close (fds[1]);
    return r;
  }
  if (pid == 0) {
    close (fds[0]);
    run_child (run, target, timeout_s, fds[1]);
  }
  close (fds[1]);
  if (!gather_output (fds[0],
                      now_ns () + (timeout_s + GRACE_S) * NS_PER_SEC,
                      ret_outcome)) {
    kill (pid, SIGKILL);
    say (ret_outcome, "killed: it did not come to an end\n");
  }
  close (fds[0]);
  while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
    ;
  judge (status, ret_outcome);
  ret_outcome->text[ret_outcome->len] = '\0';
  return 0;
}
