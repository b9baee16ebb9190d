/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Signals through signalfd. */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon/signals.h"

int
signals_init (struct signals *signals, struct bp_error *err)
{
  const int flags = SFD_CLOEXEC | SFD_NONBLOCK;
  sigset_t set;
  int r;

  sigemptyset (&set);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGINT);
  signals->end_fd = signalfd (-1, &set, flags);
  sigaddset (&set, SIGHUP);
  signals->fd = signalfd (-1, &set, flags);
  if (signals->end_fd == -1 || signals->fd == -1 ||
      signal (SIGPIPE, SIG_IGN) == SIG_ERR ||
      sigprocmask (SIG_BLOCK, &set, NULL) == -1) {
    r = bp_error_set (err, -errno, "signals: %m");
    signals_done (signals);
    return r;
  }
  return 0;
}

void
signals_done (struct signals *signals)
{
  if (signals->fd != -1)
    close (signals->fd);
  if (signals->end_fd != -1)
    close (signals->end_fd);
}

int
signals_take (struct signals *signals)
{
  struct signalfd_siginfo info;

  if (read (signals->fd, &info, sizeof info) != sizeof info)
    return 0;
  return (int) info.ssi_signo;
}

bool
signals_take_end (struct signals *signals)
{
  int sig;

  while ((sig = signals_take (signals)) != 0)
    if (sig != SIGHUP)
      return true;
  return false;
}
