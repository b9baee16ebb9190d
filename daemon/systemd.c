/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Socket activation and readiness. */
#include <config.h>

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/systemd.h"
#include "lib/base/cleanup.h"
#include "lib/base/size.h"

enum {
  MAX_FDS = 64
};

unsigned
systemd_take_fds (void)
{
  const char *pid_text = getenv ("LISTEN_PID");
  const char *fds_text = getenv ("LISTEN_FDS");
  uint64_t pid, count;
  const bool ours =
    pid_text != NULL && fds_text != NULL &&
    bp_number_parse (pid_text, 1, INT32_MAX, &pid) == 0 &&
    pid == (uint64_t) getpid () &&
    bp_number_parse (fds_text, 1, MAX_FDS, &count) == 0;

  unsetenv ("LISTEN_PID");
  unsetenv ("LISTEN_FDS");
  unsetenv ("LISTEN_FDNAMES");
  if (!ours)
    return 0;
  for (int i = 0; i < (int) count; i++)
    if (fcntl (SYSTEMD_FIRST_FD + i, F_SETFD, FD_CLOEXEC) == -1)
      fatal ("LISTEN_FDS: descriptor %d: %m", SYSTEMD_FIRST_FD + i);
  return (unsigned) count;
}

bool
systemd_fd_listens (int fd)
{
  int listens = 0;
  socklen_t len = sizeof listens;

  return getsockopt (fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 &&
         listens;
}

void
systemd_notify (const char *state)
{
  const char *path = getenv ("NOTIFY_SOCKET");
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  CLEANUP_CLOSE int fd = -1;
  socklen_t len;

  if (path == NULL || strlen (path) < 2 ||
      strlen (path) >= sizeof addr.sun_path)
    return;
  memcpy (addr.sun_path, path, strlen (path));
  len = (socklen_t) (offsetof (struct sockaddr_un, sun_path) +
                     strlen (path));
  if (path[0] == '@')
    addr.sun_path[0] = '\0';

  fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd == -1 ||
      sendto (fd, state, strlen (state), MSG_NOSIGNAL,
              (struct sockaddr *) &addr, len) == -1)
    log_warn ("NOTIFY_SOCKET: '%s': %m; going on", path);
}
