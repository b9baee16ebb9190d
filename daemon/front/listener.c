/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Opening the sockets to listen on: Unix, TCP on every address that a
 * name has, and what systemd opened for us; and deciding what the clients
 * of each may do.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "daemon/log.h"
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

/* The addresses of a TCP listener; freed with freeaddrinfo. */
static int
find_addresses (struct addrinfo **ret_addresses,
                const struct listen_option *option, struct bp_error *err)
{
  const struct addrinfo hints = {
    .ai_flags = AI_PASSIVE,
    .ai_family = AF_UNSPEC,
    .ai_socktype = SOCK_STREAM,
  };
  const char *host = option->host ? option->host : "";
  const int r = getaddrinfo (host[0] != '\0' ? host : NULL, option->port,
                             &hints, ret_addresses);

  if (r == 0)
    return 0;
  return bp_error_set (err, -EADDRNOTAVAIL, "listen: tcp:%s:%s: %s", host,
                       option->port, gai_strerror (r));
}

static int
listen_tcp (struct listeners *listeners, const struct listen_option *option,
            struct bp_error *err)
{
  struct addrinfo *addresses;
  int r;

  r = find_addresses (&addresses, option, err);
  if (r < 0)
    return r;
  r = listen_addresses (listeners, addresses, option, err);
  freeaddrinfo (addresses);
  return r;
}

/* A descriptor that systemd passed; taken over on success. */
static int
adopt (struct listeners *listeners, int fd, struct bp_error *err)
{
  const struct listener listener = { .fd = fd, .socket = UNIX_SOCKET_NONE };
  int flags;

  if (!systemd_fd_listens (fd))
    return bp_error_set (err, -EINVAL,
                         "descriptor %d from systemd: no listening socket",
                         fd);
  flags = fcntl (fd, F_GETFL);
  if (flags == -1 || fcntl (fd, F_SETFL, flags | O_NONBLOCK) == -1)
    return bp_error_set (err, -errno, "descriptor %d from systemd: %m", fd);
  return add_listener (listeners, &listener, err);
}

/* ---- Policies ---- */

static const struct client_settings nothing_said;

/* What the option or, without one, systemd calls a listener. */
struct listener_name {
  char text[128];
};

static struct listener_name
name_option (const struct listen_option *option)
{
  const char *host = option->host ? option->host : "";
  struct listener_name name;

  if (option->path)
    snprintf (name.text, sizeof name.text, "unix:%s", option->path);
  else
    snprintf (name.text, sizeof name.text,
              strchr (host, ':') ? "tcp:[%s]:%s" : "tcp:%s:%s", host,
              option->port);
  return name;
}

/* Decide about TLS, and see that it can be done. */
static int
settle_tls (struct client_policy *policy, const char *name,
            enum listener_reach reach, const struct options *options,
            struct bp_error *err)
{
  const bool has_credentials = tls_config_has_credentials (&options->tls);
  const bool is_said = policy->tls != TLS_UNSAID;

  if (!is_said)
    policy->tls =
      tls_mode_default (reach, has_credentials, options->is_insecure);
  if (policy->tls != TLS_OFF && !has_credentials)
    return bp_error_set (err, -EINVAL,
                         is_said ? "listen: %s: TLS needs --tls-certificates "
                                   "or --tls-psk"
                                 : "listen: %s: other hosts can connect: give "
                                   "--tls-certificates or --tls-psk, or "
                                   "--insecure to serve them in plain text",
                         name);
  if (policy->tls != TLS_REQUIRE && reach == REACH_NETWORK)
    log_warn ("listen: %s: clients of other hosts may read in plain text",
              name);
  return 0;
}

/* The policy of a listener called NAME. */
static int
make_policy (struct client_policy *ret_policy, const char *name,
             const struct client_settings *own, enum listener_reach reach,
             const struct options *options, struct bp_error *err)
{
  *ret_policy = client_policy_resolve (own, &options->clients, reach);
  return settle_tls (ret_policy, name, reach, options, err);
}

/* All addresses of a name have one policy: that of the worst. */
static int
set_policies (struct listeners *listeners, size_t from,
              const struct listen_option *option,
              const struct options *options, struct bp_error *err)
{
  const struct listener_name name = name_option (option);
  enum listener_reach reach = REACH_UNIX;
  struct client_policy policy;
  size_t i;
  int r;

  for (i = from; i < listeners->count; i++)
    reach = MAX (reach, find_reach (listeners->list[i].fd));
  r = make_policy (&policy, name.text, &option->clients, reach, options,
                   err);
  for (i = from; i < listeners->count; i++)
    listeners->list[i].policy = policy;
  return r;
}

int
listener_make_policy (struct client_policy *ret_policy, int fd,
                      const char *name, const struct options *options,
                      struct bp_error *err)
{
  return make_policy (ret_policy, name, &nothing_said, find_reach (fd),
                      options, err);
}

static int
make_systemd_policy (struct client_policy *ret_policy, int fd,
                     const struct options *options, struct bp_error *err)
{
  struct listener_name name;

  snprintf (name.text, sizeof name.text, "descriptor %d from systemd", fd);
  return listener_make_policy (ret_policy, fd, name.text, options, err);
}

/* ---- All of them ---- */

static int
adopt_from_systemd (struct listeners *listeners,
                    const struct options *options, struct bp_error *err)
{
  unsigned i;
  int r;

  for (i = 0; i < options->nr_systemd_fds; i++) {
    const int fd = SYSTEMD_FIRST_FD + (int) i;

    r = adopt (listeners, fd, err);
    if (r == 0)
      r = make_systemd_policy (&listeners->list[i].policy, fd, options,
                               err);
    if (r < 0)
      return r;
  }
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
    if (r == 0)
      r = set_policies (listeners, before, option, options, err);
  }
  if (r < 0)
    listeners_close (listeners);
  return r;
}

/* What opening it would say of its policy. */
static int
check_option (const struct listen_option *option,
              const struct options *options, struct bp_error *err)
{
  const struct listener_name name = name_option (option);
  enum listener_reach reach = option->path ? REACH_UNIX : REACH_LOOPBACK;
  struct addrinfo *addresses = NULL;
  const struct addrinfo *ai;
  struct client_policy policy;
  int r;

  r = option->path ? 0 : find_addresses (&addresses, option, err);
  if (r < 0)
    return r;
  for (ai = addresses; ai; ai = ai->ai_next)
    if (!is_loopback (ai->ai_addr))
      reach = REACH_NETWORK;
  if (addresses)
    freeaddrinfo (addresses);
  return make_policy (&policy, name.text, &option->clients, reach, options,
                      err);
}

int
listeners_check (const struct options *options, struct bp_error *err)
{
  struct client_policy policy;
  size_t i;
  int r = 0;

  for (i = 0; i < options->nr_systemd_fds && r == 0; i++)
    r = make_systemd_policy (&policy, SYSTEMD_FIRST_FD + (int) i, options,
                             err);
  for (i = 0; i < options->nr_listens && r == 0; i++)
    r = check_option (&options->listens[i], options, err);
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
