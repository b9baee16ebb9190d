/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Standard input and output as a client.
 *
 *   in ends      the front sees the end of what the client sends, answers
 *                what it has, and hangs up
 *   out fails    the front sees that the client has gone
 *   front closes what it sent is written, then done_fd
 *
 * Standard input and output are polled, since a read or write that blocks
 * could not be stopped; the socket is shut down.  The threads share nothing
 * but descriptors, which main closes after they have ended.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "lib/base/io.h"
#include "lib/base/range.h"

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

/* Wait until FD, which is not ours alone and may block, is ready.  Returns
 * false if there is no use in it any more.
 */
static bool
wait_for (const struct stdio_client *stdio, int fd, short events)
{
  struct pollfd fds[] = {
    { .fd = fd, .events = events },
    { .fd = stdio->stop_fd, .events = POLLIN },
  };

  while (poll (fds, ARRAY_LEN (fds), -1) == -1)
    assert (errno == EINTR);
  return fds[1].revents == 0;
}

static bool
may_retry (void)
{
  return errno == EAGAIN || errno == EINTR;
}

static void *
copy_in (void *opaque)
{
  const struct stdio_client *stdio = opaque;
  char buf[COPY_BYTES];
  ssize_t n;

  while (wait_for (stdio, stdio->in_fd, POLLIN)) {
    n = read (stdio->in_fd, buf, sizeof buf);
    if (n > 0 ? bp_write_all (stdio->socket_fd, buf, (size_t) n) < 0
              : n == 0 || !may_retry ())
      break;
  }
  shutdown (stdio->socket_fd, SHUT_WR);
  return NULL;
}

/* A pipe that is ready has room for PIPE_BUF bytes. */
static bool
write_out (const struct stdio_client *stdio, const char *buf, size_t len)
{
  ssize_t n;

  while (len > 0) {
    if (!wait_for (stdio, stdio->out_fd, POLLOUT))
      return false;
    n = write (stdio->out_fd, buf, MIN (len, PIPE_BUF));
    if (n == -1 && !may_retry ())
      return false;
    if (n > 0) {
      buf += n;
      len -= (size_t) n;
    }
  }
  return true;
}

static void *
copy_out (void *opaque)
{
  const struct stdio_client *stdio = opaque;
  char buf[COPY_BYTES];
  ssize_t n;

  do
    n = read (stdio->socket_fd, buf, sizeof buf);
  while (n > 0 ? write_out (stdio, buf, (size_t) n)
               : n == -1 && errno == EINTR);
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
  stdio->nr_threads = r == 0;
  if (r == 0) {
    r = pthread_create (&stdio->out_thread, NULL, copy_out, stdio);
    stdio->nr_threads += r == 0;
  }
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (r != 0)
    return bp_error_set (err, -r, "--stdio: start a thread: %s",
                         strerror (r));
  pthread_setname_np (stdio->in_thread, "stdio-in");
  pthread_setname_np (stdio->out_thread, "stdio-out");
  return 0;
}

/* The threads that there are give up whatever they wait for. */
static void
stop_threads (struct stdio_client *stdio)
{
  if (stdio->nr_threads == 0)
    return;
  eventfd_write (stdio->stop_fd, 1);
  shutdown (stdio->socket_fd, SHUT_RDWR);
  pthread_join (stdio->in_thread, NULL);
  if (stdio->nr_threads == 2)
    pthread_join (stdio->out_thread, NULL);
  stdio->nr_threads = 0;
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
  stdio->stop_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stdio->done_fd == -1 || stdio->stop_fd == -1 ||
      socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == -1)
    return bp_error_set (err, -errno, "--stdio: %m");
  stdio->socket_fd = fds[0];
  front_fd = fds[1];
  stdio->is_bridged = true;
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
  if (stdio->nr_threads == 2)
    drain_wait (stdio->done_fd, end_ns, hurry_fd);
  stop_threads (stdio);
  close_fd (&stdio->in_fd);
  close_fd (&stdio->out_fd);
  close_fd (&stdio->socket_fd);
  close_fd (&stdio->done_fd);
  close_fd (&stdio->stop_fd);
}
