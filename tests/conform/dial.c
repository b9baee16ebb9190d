/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Sockets of both kinds.  TCP addresses are tried in the order in which
 * the resolver gives them.
 */
#include <config.h>

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "conform/check.h"
#include "conform/dial.h"
#include "conform/uri.h"
#include "lib/base/clock.h"

/* connect that gives up at the check's deadline.  Returns 0 or -errno. */
static int
connect_in_time (int fd, const struct sockaddr *addr, socklen_t len)
{
  const uint64_t now = now_ns (), deadline = check_deadline_ns ();
  const uint64_t left = now < deadline ? deadline - now : 1000;
  const struct timeval limit = {
    .tv_sec = (time_t) (left / NS_PER_SEC),
    .tv_usec = (suseconds_t) (left % NS_PER_SEC / 1000),
  };

  if (setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0)
    return -errno;
  if (connect (fd, addr, len) < 0)
    return errno == EINPROGRESS || errno == EAGAIN ? -ETIMEDOUT : -errno;
  return 0;
}

static int
dial_unix (const char *path)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  int fd, r;

  if (strlen (path) >= sizeof addr.sun_path)
    fail ("'%s': too long for a socket", path);
  strcpy (addr.sun_path, path);
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    fail ("socket: %m");
  r = connect_in_time (fd, (const struct sockaddr *) &addr, sizeof addr);
  if (r < 0)
    unreachable ("'%s': connect: %s", path, strerror (-r));
  return fd;
}

/* Returns a socket or -errno. */
static int
dial_address (const struct addrinfo *info)
{
  const int on = 1;
  int fd, r;

  fd = socket (info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -errno;
  r = connect_in_time (fd, info->ai_addr, info->ai_addrlen);
  if (r == 0 &&
      setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
    r = -errno;
  if (r == 0)
    return fd;
  close (fd);
  return r;
}

static int
dial_tcp (const char *host, const char *port)
{
  const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
  struct addrinfo *list;
  int r, fd = -ENOENT;

  r = getaddrinfo (host, port, &hints, &list);
  if (r != 0)
    unreachable ("%s: %s", host, gai_strerror (r));
  for (const struct addrinfo *info = list; info && fd < 0;
       info = info->ai_next)
    fd = dial_address (info);
  freeaddrinfo (list);
  if (fd < 0)
    unreachable ("%s:%s: connect: %s", host, port, strerror (-fd));
  return fd;
}

int
dial (const struct uri *uri)
{
  return uri->is_unix ? dial_unix (uri->socket)
                      : dial_tcp (uri->host, uri->port);
}
