/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The values of options that have a grammar of their own: --listen,
 * --driver and --pin.
 *
 * Threads: main only, before any other starts.
 */
#include <config.h>

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "daemon/log.h"
#include "daemon/options.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/base/size.h"
#include "lib/tag.h"

enum {
  MAX_LISTENS = 64,
  MAX_PINS = 4096,
  MAX_SOCKET_PATH = sizeof ((struct sockaddr_un *) 0)->sun_path - 1,
};

static char *
copy_bytes (const char *text, size_t len)
{
  char *copy = strndup (text, len);

  if (copy == NULL)
    fatal ("out of memory");
  return copy;
}

void *
options_grow (void *array, size_t count, size_t size)
{
  void *grown = reallocarray (array, count + 1, size);

  if (grown == NULL)
    fatal ("out of memory");
  return grown;
}

/* Octal, as chmod takes it: 0660 or 660. */
static int
parse_mode (const char *text, mode_t *ret_mode)
{
  char *end;
  unsigned long mode;

  if (*text < '0' || *text > '7')
    return -EINVAL;
  mode = strtoul (text, &end, 8);
  if (*end != '\0' || mode > 0777)
    return -EINVAL;
  *ret_mode = (mode_t) mode;
  return 0;
}

/* The name of a group, or its number. */
static int
parse_group (const char *text, gid_t *ret_gid)
{
  const struct group *group = getgrnam (text);
  uint64_t number;

  if (group != NULL)
    *ret_gid = group->gr_gid;
  else if (bp_number_parse (text, 0, UINT32_MAX - 1, &number) == 0)
    *ret_gid = (gid_t) number;
  else
    return -EINVAL;
  return 0;
}

/* mode=OCTAL or group=NAME, behind a comma of --listen=unix:PATH. */
static int
parse_unix_word (struct listen_option *listen, const char *word,
                 struct bp_error *err)
{
  if (strncmp (word, "mode=", 5) == 0) {
    if (parse_mode (word + 5, &listen->mode) == 0)
      return 0;
    return bp_error_set (err, -EINVAL, "'%s' is no mode", word + 5);
  }
  if (strncmp (word, "group=", 6) == 0) {
    if (parse_group (word + 6, &listen->gid) == 0)
      return 0;
    return bp_error_set (err, -EINVAL, "no group '%s'", word + 6);
  }
  return bp_error_set (err, -EINVAL, "unknown word '%s'", word);
}

/* PATH[,mode=OCTAL][,group=NAME] */
static int
parse_unix (struct listen_option *listen, const char *text,
            struct bp_error *err)
{
  char *words = copy_bytes (text, strlen (text));
  char *rest = words;
  const char *word;
  int r = 0;

  listen->path = copy_bytes (text, strcspn (text, ","));
  strsep (&rest, ",");
  if (*listen->path == '\0')
    r = -EINVAL;
  else if (strlen (listen->path) > MAX_SOCKET_PATH)
    r = bp_error_set (err, -EINVAL, "path longer than %d bytes",
                      (int) MAX_SOCKET_PATH);
  while (r == 0 && (word = strsep (&rest, ",")) != NULL)
    r = parse_unix_word (listen, word, err);
  free (words);
  return r;
}

/* A service, or a number that TCP has: getaddrinfo takes any, modulo 2^16. */
static bool
is_port (const char *text)
{
  uint64_t number;

  return text[strspn (text, "0123456789")] != '\0' ||
         bp_number_parse (text, 0, UINT16_MAX, &number) == 0;
}

/* HOST:PORT or [ADDRESS]:PORT; the port is a number or a service. */
static int
parse_tcp (struct listen_option *listen, const char *text,
           struct bp_error *err)
{
  const bool brackets = text[0] == '[';
  const char *host = text + brackets;
  const char *end = brackets ? strchr (host, ']') : strchr (host, ':');

  if (end == NULL || end == host || end[brackets] != ':')
    return -EINVAL;
  listen->host = copy_bytes (host, (size_t) (end - host));
  listen->port = copy_bytes (end + brackets + 1,
                             strlen (end + brackets + 1));
  if (*listen->port == '\0' || strchr (listen->port, ':') != NULL)
    return -EINVAL;
  if (!is_port (listen->port))
    return bp_error_set (err, -EINVAL, "'%s' is no port", listen->port);
  return 0;
}

void
listen_option_free (struct listen_option *listen)
{
  free (listen->path);
  free (listen->host);
  free (listen->port);
  free (listen->clients.export_globs);
}

int
set_listen (struct options *options, const char *value, struct bp_error *err)
{
  struct listen_option listen = { .mode = 0600, .gid = (gid_t) -1 };
  int r;

  if (options->nr_listens == MAX_LISTENS)
    return bp_error_set (err, -EINVAL, "given more than %d times",
                         (int) MAX_LISTENS);
  if (strncmp (value, "unix:", 5) == 0)
    r = parse_unix (&listen, value + 5, err);
  else if (strncmp (value, "tcp:", 4) == 0)
    r = parse_tcp (&listen, value + 4, err);
  else
    r = bp_error_set (err, -EINVAL, "'%s' is neither unix:PATH nor "
                                    "tcp:HOST:PORT",
                      value);
  if (r < 0) {
    listen_option_free (&listen);
    return r;
  }

  options->listens = options_grow (options->listens, options->nr_listens,
                                   sizeof *options->listens);
  options->listens[options->nr_listens++] = listen;
  return 0;
}

/* SCHEME://AUTHORITY/EXPORT?QUERY of an NBD URI, where EXPORT may be
 * absent.  The daemon asks for the export itself, so one that the user
 * wrote can only be a mistake, such as the name of an image.
 */
int
set_driver (struct options *options, const char *value, struct bp_error *err)
{
  static const char *const schemes[] = { "nbd", "nbds", "nbd+unix",
                                         "nbds+unix", "nbd+vsock",
                                         "nbds+vsock" };
  const char *authority = strstr (value, "://");
  const char *export;
  size_t i, len;

  if (authority == NULL)
    return -EINVAL;
  len = (size_t) (authority - value);
  for (i = 0; i < ARRAY_LEN (schemes); i++)
    if (strlen (schemes[i]) == len && memcmp (schemes[i], value, len) == 0)
      break;
  if (i == ARRAY_LEN (schemes))
    return bp_error_set (err, -EINVAL, "'%s' is no NBD URI", value);

  export = authority + 3 + strcspn (authority + 3, "/?#");
  if (*export == '/')
    export ++;
  len = strcspn (export, "?#");
  if (len != 0 && (len != 7 || memcmp (export, "session", 7) != 0))
    return bp_error_set (err, -EINVAL,
                         "export '%.*s': the name must be empty or 'session'",
                         (int) MIN (len, 80), export);
  options->driver_uri = value;
  return 0;
}

/* TAG=ROOT */
int
set_pin (struct options *options, const char *value, struct bp_error *err)
{
  const char *equals = strchr (value, '=');
  CLEANUP_FREE char *tag = NULL;
  struct pin_option pin;

  if (equals == NULL || bp_root_parse (equals + 1, &pin.root) < 0)
    return -EINVAL;
  tag = copy_bytes (value, (size_t) (equals - value));
  if (!bp_is_tag_name (tag))
    return bp_error_set (err, -EINVAL, "'%.140s' is no tag", tag);
  for (size_t i = 0; i < options->nr_pins; i++)
    if (strcmp (options->pins[i].tag, tag) == 0)
      return bp_error_set (err, -EINVAL, "'%s' is pinned twice", tag);
  if (options->nr_pins == MAX_PINS)
    return bp_error_set (err, -EINVAL, "given more than %d times",
                         (int) MAX_PINS);

  pin.tag = steal_ptr (&tag);
  options->pins = options_grow (options->pins, options->nr_pins,
                                sizeof *options->pins);
  options->pins[options->nr_pins++] = pin;
  return 0;
}
