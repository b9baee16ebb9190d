/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* --listen, and the options about who connects.
 *
 * The place of the latter counts: before the first --listen one is the
 * default for all listeners, and for sockets from systemd; behind a
 * --listen it is about that one.
 *
 * Threads: main only, before any other starts.
 */
#include <config.h>

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "daemon/options.h"
#include "lib/base/size.h"

enum {
  MAX_LISTENS = 64,
  MAX_GLOBS = 4096, /* Of one listener. */
  MAX_SOCKET_PATH = sizeof ((struct sockaddr_un *) 0)->sun_path - 1,
};

/* ---- Listeners ---- */

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
  char *words = options_copy (text, strlen (text));
  char *rest = words;
  const char *word;
  int r = 0;

  listen->path = options_copy (text, strcspn (text, ","));
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
  listen->host = options_copy (host, (size_t) (end - host));
  listen->port = options_copy (end + brackets + 1,
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

/* ---- Their clients ---- */

/* What an option here is about. */
static struct client_settings *
current_settings (struct options *options)
{
  return options->nr_listens == 0
           ? &options->clients
           : &options->listens[options->nr_listens - 1].clients;
}

int
set_allow_export (struct options *options, const char *value,
                  struct bp_error *err)
{
  struct client_settings *clients = current_settings (options);

  if (*value == '\0')
    return -EINVAL;
  if (clients->nr_export_globs == MAX_GLOBS)
    return bp_error_set (err, -EINVAL, "given more than %d times",
                         (int) MAX_GLOBS);
  clients->export_globs =
    options_grow (clients->export_globs, clients->nr_export_globs,
                  sizeof *clients->export_globs);
  clients->export_globs[clients->nr_export_globs++] = value;
  return 0;
}

int
set_tls (struct options *options, const char *value, struct bp_error *err)
{
  enum tls_mode *mode = &current_settings (options)->tls;

  if (strcmp (value, "require") == 0)
    *mode = TLS_REQUIRE;
  else if (strcmp (value, "on") == 0)
    *mode = TLS_ON;
  else if (strcmp (value, "off") == 0)
    *mode = TLS_OFF;
  else
    return bp_error_set (err, -EINVAL,
                         "'%.80s' is none of require, on, off", value);
  return 0;
}

static bool
is_word (const char *text, size_t len, const char *word)
{
  return strlen (word) == len && memcmp (text, word, len) == 0;
}

/* A list of words; said again, it adds. */
int
set_allow (struct options *options, const char *value, struct bp_error *err)
{
  struct client_settings *clients = current_settings (options);
  size_t len;

  clients->has_allow = true;
  if (strcmp (value, "none") == 0)
    return 0;
  for (;; value += len + 1) {
    len = strcspn (value, ",");
    if (is_word (value, len, "list"))
      clients->may_list = true;
    else if (is_word (value, len, "blob"))
      clients->may_open_blobs = true;
    else if (is_word (value, len, "residency"))
      clients->may_see_residency = true;
    else
      return bp_error_set (err, -EINVAL,
                           "'%.*s' is none of list, blob, residency",
                           (int) (len < 80 ? len : 80), value);
    if (value[len] == '\0')
      return 0;
  }
}
