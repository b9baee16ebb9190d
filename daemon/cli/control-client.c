/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The commands' end of the control socket: a line out, a line in. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/cli/control-client.h"
#include "daemon/control/control-path.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"

enum {
  FIRST_REPLY_BYTES = 64 << 10
}; /* Room at first; doubled. */

static int
connect_to (const char *path, struct bp_error *err)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  CLEANUP_CLOSE int fd = -1;

  if (strlen (path) >= sizeof addr.sun_path)
    return bp_error_set (err, -ENAMETOOLONG, "control socket '%.80s…': %m",
                         path);
  strcpy (addr.sun_path, path);
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd == -1)
    return bp_error_set (err, -errno, "control socket: %m");
  if (connect (fd, (struct sockaddr *) &addr, sizeof addr) == -1)
    return bp_error_set (err, -errno,
                         "control socket '%s': connect: %m%s", path,
                         errno == ENOENT || errno == ECONNREFUSED
                           ? " (is blobpagerd running?)"
                           : "");
  return steal_fd (&fd);
}

int
control_client_open (struct control_client *client, const char *path,
                     struct bp_error *err)
{
  CLEANUP_FREE char *where =
    path != NULL ? strdup (path) : control_find_path ();
  int fd;

  if (where == NULL && path == NULL)
    return bp_error_set (err, -ENOENT,
                         "control socket: --control is needed: neither "
                         "RUNTIME_DIRECTORY nor XDG_RUNTIME_DIR is set");
  if (where == NULL)
    return bp_error_set (err, -ENOMEM, "control socket: %m");
  fd = connect_to (where, err);
  if (fd < 0)
    return fd;
  client->fd = fd;
  client->path = steal_ptr (&where);
  return 0;
}

static int
send_all (int fd, const char *data, size_t len)
{
  while (len > 0) {
    const ssize_t n = send (fd, data, len, MSG_NOSIGNAL);

    if (n == -1 && errno != EINTR)
      return -errno;
    if (n > 0) {
      data += n;
      len -= (size_t) n;
    }
  }
  return 0;
}

/* A line of at most INT_MAX bytes.  The caller frees *ret_line.  -EPIPE if
 * the daemon has gone.
 */
static int
read_line (int fd, char **ret_line, size_t *ret_len)
{
  size_t size = FIRST_REPLY_BYTES, len = 0;
  CLEANUP_FREE char *line = malloc (size);

  if (line == NULL)
    return -ENOMEM;
  for (;;) {
    const ssize_t n = recv (fd, line + len, size - len, 0);

    if (n == 0)
      return -EPIPE;
    if (n == -1 && errno != EINTR)
      return -errno;
    len += n > 0 ? (size_t) n : 0;
    if (len > 0 && line[len - 1] == '\n')
      break;
    if (len == size) {
      char *grown = size < INT_MAX / 2 ? realloc (line, 2 * size) : NULL;

      if (grown == NULL)
        return -ENOMEM;
      line = grown;
      size *= 2;
    }
  }
  *ret_line = steal_ptr (&line);
  *ret_len = len;
  return 0;
}

/* The number of the errno NAME, negative; -EIO for one that we lack. */
static int
code_of_name (const char *name)
{
  for (int i = 1; name != NULL && i < 134; i++) {
    const char *known = strerrorname_np (i);

    if (known != NULL && strcmp (known, name) == 0)
      return -i;
  }
  return -EIO;
}

int
control_client_call (struct control_client *client,
                     struct json_object *request,
                     struct json_object **ret_reply, struct bp_error *err)
{
  const char *text =
    json_object_to_json_string_ext (request, JSON_C_TO_STRING_PLAIN);
  CLEANUP_JSON struct json_object *reply = NULL;
  CLEANUP_FREE char *line = NULL;
  const char *message;
  size_t len = 0;
  int r;

  r = send_all (client->fd, text, strlen (text));
  if (r == 0)
    r = send_all (client->fd, "\n", 1);
  if (r == 0)
    r = read_line (client->fd, &line, &len);
  if (r < 0)
    return bp_error_set (err, r, "control socket '%s': %s", client->path,
                         r == -EPIPE ? "the daemon has gone"
                                     : strerror (-r));
  r = bp_json_parse (line, len, &reply);
  if (r < 0)
    return bp_error_set (err, r, "control socket '%s': reply: malformed",
                         client->path);
  if (!bp_json_get_bool (reply, "ok", false)) {
    message = bp_json_get_string (reply, "error");
    return bp_error_set (err, code_of_name (bp_json_get_string (reply, "code")),
                         "%s", message != NULL ? message : "no reason given");
  }
  *ret_reply = steal_ptr (&reply);
  return 0;
}

void
control_client_close (struct control_client *client)
{
  if (client->fd != -1)
    close (client->fd);
  free (client->path);
  *client = (struct control_client) CONTROL_CLIENT_NONE;
}
