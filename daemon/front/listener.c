/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Opening the sockets to listen on: Unix, TCP on every address that a
 * name has, and what systemd opened for us.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "daemon/front/listener.h"
#include "daemon/options.h"
#include "daemon/systemd.h"

static bool
is_loopback (const struct sockaddr *addr)
{
  const struct sockaddr_in *in4 = (const void *) addr;
  const struct sockaddr_in6 *in6 = (const void *) addr;

  if (addr->sa_family == AF_INET)
    return ntohl (in4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  return addr->sa_family == AF_INET6 &&
         (IN6_IS_ADDR_LOOPBACK (&in6->sin6_addr) ||
          (IN6_IS_ADDR_V4MAPPED (&in6->sin6_addr) &&
           in6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET));
}

/* What is no address that we know counts as the network. */
static enum listener_reach
find_reach (int fd)
{
  union {
    struct sockaddr any;
    struct sockaddr_storage storage;
  } addr = { .any.sa_family = AF_UNSPEC };
  socklen_t len = sizeof addr;

  if (getsockname (fd, &addr.any, &len) == -1)
    return REACH_NETWORK;
  if (addr.any.sa_family == AF_UNIX)
    return REACH_UNIX;
  return is_loopback (&addr.any) ? REACH_LOOPBACK : REACH_NETWORK;
}

static int
add_listener (struct listeners *listeners, const struct listener *listener,
              struct bp_error *err)
{
  struct listener *list;

  list = realloc (listeners->list, (listeners->count + 1) * sizeof *list);
  if (list == NULL)
    return bp_error_set (err, -ENOMEM, "listen: out of memory");
  list[listeners->count++] = *listener;
  listeners->list = list;
  return 0;
}

static int
listen_unix (struct listeners *listeners, const struct listen_option *option,
             struct bp_error *err)
{
  struct listener listener = { .socket = UNIX_SOCKET_NONE };
  int r;

  r = unix_socket_listen (&listener.socket, option->path, option->mode,
                          option->gid, err);
  if (r < 0)
    return bp_error_wrap (err, r, "listen");
  listener.fd = listener.socket.fd;
  r = add_listener (listeners, &listener, err);
  if (r < 0)
    unix_socket_close (&listener.socket);
  return r;
}

static int
listen_address (struct listeners *listeners, const struct addrinfo *ai,
                const struct listen_option *option, struct bp_error *err)
{
  CLEANUP_CLOSE int fd =
    socket (ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const struct listener listener = { .fd = fd, .socket = UNIX_SOCKET_NONE };
  const int one = 1;
  int r;

  /* Each family has a socket of its own. */
  if (fd == -1 ||
      setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == -1 ||
      (ai->ai_family == AF_INET6 &&
       setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == -1) ||
      bind (fd, ai->ai_addr, ai->ai_addrlen) == -1 ||
      listen (fd, SOMAXCONN) == -1)
    return bp_error_set (err, -errno, "listen: tcp:%s:%s: %m",
                         option->host ? option->host : "", option->port);
  r = add_listener (listeners, &listener, err);
  if (r == 0)
    steal_fd (&fd);
  return r;
}

/* Listen on every address that the name has; one of a family that this
 * host lacks is passed over, as long as another is left.
 */
static int
listen_addresses (struct listeners *listeners,
                  const struct addrinfo *addresses,
                  const struct listen_option *option, struct bp_error *err)
{
  const size_t before = listeners->count;
  const struct addrinfo *ai;
  int r = -EADDRNOTAVAIL;

  for (ai = addresses; ai; ai = ai->ai_next) {
    r = listen_address (listeners, ai, option, err);
    if (r < 0 && r != -EAFNOSUPPORT && r != -EADDRNOTAVAIL)
      return r;
  }
  return listeners->count > before ? 0 : r;
}

static int
listen_tcp (struct listeners *listeners, const struct listen_option *option,
            struct bp_error *err)
{
  const struct addrinfo hints = {
    .ai_flags = AI_PASSIVE,
    .ai_family = AF_UNSPEC,
    .ai_socktype = SOCK_STREAM,
  };
  const char *host = option->host ? option->host : "";
  struct addrinfo *addresses;
  int r;

  r = getaddrinfo (host[0] != '\0' ? host : NULL, option->port, &hints,
                   &addresses);
  if (r != 0)
    return bp_error_set (err, -EADDRNOTAVAIL, "listen: tcp:%s:%s: %s", host,
                         option->port, gai_strerror (r));
  r = listen_addresses (listeners, addresses, option, err);
  freeaddrinfo (addresses);
  return r;
}

/* A descriptor that systemd passed; taken over on success. */
static int
adopt (struct listeners *listeners, int fd, struct bp_error *err)
{
  const struct listener listener = { .fd = fd, .socket = UNIX_SOCKET_NONE };
  int listens = 0, flags;
  socklen_t len = sizeof listens;

  if (getsockopt (fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == -1 ||
      !listens)
    return bp_error_set (err, -EINVAL,
                         "descriptor %d from systemd: no listening socket",
                         fd);
  flags = fcntl (fd, F_GETFL);
  if (flags == -1 || fcntl (fd, F_SETFL, flags | O_NONBLOCK) == -1)
    return bp_error_set (err, -errno, "descriptor %d from systemd: %m", fd);
  return add_listener (listeners, &listener, err);
}

/* The policy of the listeners from number FROM on. */
static void
set_policies (struct listeners *listeners, size_t from,
              const struct client_settings *own,
              const struct client_settings *defaults)
{
  size_t i;

  for (i = from; i < listeners->count; i++)
    listeners->list[i].policy = client_policy_resolve (
      own, defaults, find_reach (listeners->list[i].fd));
}

static int
adopt_from_systemd (struct listeners *listeners,
                    const struct options *options, struct bp_error *err)
{
  const struct client_settings nothing = { 0 };
  unsigned fd;
  int r;

  for (fd = 0; fd < options->nr_systemd_fds; fd++) {
    r = adopt (listeners, SYSTEMD_FIRST_FD + (int) fd, err);
    if (r < 0)
      return r;
  }
  set_policies (listeners, 0, &nothing, &options->clients);
  return 0;
}

int
listeners_open (struct listeners *listeners, const struct options *options,
                struct bp_error *err)
{
  size_t i, before;
  int r;

  *listeners = (struct listeners){ 0 };
  r = adopt_from_systemd (listeners, options, err);
  for (i = 0; i < options->nr_listens && r == 0; i++) {
    const struct listen_option *option = &options->listens[i];

    before = listeners->count;
    r = option->path ? listen_unix (listeners, option, err)
                     : listen_tcp (listeners, option, err);
    set_policies (listeners, before, &option->clients, &options->clients);
  }
  if (r < 0)
    listeners_close (listeners);
  return r;
}

void
listeners_close (struct listeners *listeners)
{
  size_t i;

  for (i = 0; i < listeners->count; i++) {
    struct listener *listener = &listeners->list[i];

    if (listener->socket.fd == -1)
      close (listener->fd);
    else
      unix_socket_close (&listener->socket);
  }
  free (listeners->list);
  *listeners = (struct listeners){ 0 };
}
