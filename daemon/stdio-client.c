/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Standard input and output as a client.
 *
 *   in ends      the front sees the end of what the client sends, answers
 *                what it has, and hangs up
 *   out fails    the front sees that the client has gone
 *   front closes what it sent is written, then done_fd
 *
 * The threads share nothing but descriptors, which main closes after they
 * have ended.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/drain.h"
#include "daemon/stdio-client.h"
#include "lib/base/cleanup.h"

enum {
  COPY_BYTES = 128 << 10, /* On a thread's stack. */
};

int
stdio_take (struct stdio_client *stdio, struct bp_error *err)
{
  CLEANUP_CLOSE int null_fd = open ("/dev/null", O_RDWR | O_CLOEXEC);

  stdio->in_fd = fcntl (STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  if (stdio->in_fd == -1)
    return bp_error_set (err, -errno, "standard input: %m");
  stdio->out_fd = fcntl (STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (stdio->out_fd == -1)
    return bp_error_set (err, -errno, "standard output: %m");
  if (isatty (stdio->in_fd) || isatty (stdio->out_fd))
    return bp_error_set (err, -EINVAL,
                         "--stdio: a terminal is no NBD client");
  if (null_fd == -1 || dup2 (null_fd, STDIN_FILENO) == -1 ||
      dup2 (STDERR_FILENO, STDOUT_FILENO) == -1)
    return bp_error_set (err, -errno, "standard input and output: %m");
  return 0;
}

static bool
is_one_socket (const struct stdio_client *stdio)
{
  struct stat in, out;

  return fstat (stdio->in_fd, &in) == 0 &&
         fstat (stdio->out_fd, &out) == 0 && S_ISSOCK (in.st_mode) &&
         in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

/* ---- The threads ---- */

/* After a failed system call on FD: wait until it could do better.
 * Returns false if it never will.
 */
static bool
may_retry (int fd, short events)
{
  struct pollfd pollfd = { .fd = fd, .events = events };

  if (errno == EAGAIN)
    poll (&pollfd, 1, -1);
  return errno == EAGAIN || errno == EINTR;
}

/* Returns what read does, but waits. */
static ssize_t
read_some (int fd, void *buf, size_t len)
{
  ssize_t n;

  do
    n = read (fd, buf, len);
  while (n == -1 && may_retry (fd, POLLIN));
  return n;
}

static bool
write_all (int fd, const char *buf, size_t len)
{
  ssize_t n;

  while (len > 0) {
    n = write (fd, buf, len);
    if (n >= 0) {
      buf += n;
      len -= (size_t) n;
    }
    else if (!may_retry (fd, POLLOUT))
      return false;
  }
  return true;
}

/* Until one side has gone. */
static void
copy (int from_fd, int to_fd)
{
  char buf[COPY_BYTES];
  ssize_t n;

  do
    n = read_some (from_fd, buf, sizeof buf);
  while (n > 0 && write_all (to_fd, buf, (size_t) n));
}

static void *
copy_in (void *opaque)
{
  const struct stdio_client *stdio = opaque;

  copy (stdio->in_fd, stdio->socket_fd);
  shutdown (stdio->socket_fd, SHUT_WR);
  return NULL;
}

static void *
copy_out (void *opaque)
{
  const struct stdio_client *stdio = opaque;

  copy (stdio->socket_fd, stdio->out_fd);
  shutdown (stdio->socket_fd, SHUT_RDWR);
  eventfd_write (stdio->done_fd, 1);
  return NULL;
}

/* ---- Main ---- */

static int
start_threads (struct stdio_client *stdio, struct bp_error *err)
{
  sigset_t all, before;
  int r;

  sigfillset (&all);
  pthread_sigmask (SIG_BLOCK, &all, &before);
  r = pthread_create (&stdio->in_thread, NULL, copy_in, stdio);
  if (r == 0) {
    r = pthread_create (&stdio->out_thread, NULL, copy_out, stdio);
    if (r != 0) {
      pthread_cancel (stdio->in_thread);
      pthread_join (stdio->in_thread, NULL);
    }
  }
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (r != 0)
    return bp_error_set (err, -r, "--stdio: start a thread: %s",
                         strerror (r));
  pthread_setname_np (stdio->in_thread, "stdio-in");
  pthread_setname_np (stdio->out_thread, "stdio-out");
  stdio->is_bridged = true;
  return 0;
}

int
stdio_connect (struct stdio_client *stdio, int *ret_fd, struct bp_error *err)
{
  CLEANUP_CLOSE int front_fd = -1;
  int fds[2], r;

  if (is_one_socket (stdio)) {
    close (steal_fd (&stdio->out_fd));
    *ret_fd = steal_fd (&stdio->in_fd);
    return 0;
  }
  stdio->done_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stdio->done_fd == -1 ||
      socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == -1)
    return bp_error_set (err, -errno, "--stdio: %m");
  stdio->socket_fd = fds[0];
  front_fd = fds[1];
  r = start_threads (stdio, err);
  if (r == 0)
    *ret_fd = steal_fd (&front_fd);
  return r;
}

static void
close_fd (int *fd)
{
  if (*fd != -1)
    close (steal_fd (fd));
}

void
stdio_done (struct stdio_client *stdio, uint64_t end_ns, int hurry_fd)
{
  if (stdio->is_bridged) {
    drain_wait (stdio->done_fd, end_ns, hurry_fd);
    pthread_cancel (stdio->in_thread);
    pthread_cancel (stdio->out_thread);
    pthread_join (stdio->in_thread, NULL);
    pthread_join (stdio->out_thread, NULL);
  }
  close_fd (&stdio->in_fd);
  close_fd (&stdio->out_fd);
  close_fd (&stdio->socket_fd);
  close_fd (&stdio->done_fd);
}
