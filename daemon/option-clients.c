/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Options about who connects to a listener.  Their place counts: before
 * the first --listen one is the default for all listeners, and for sockets
 * from systemd; behind a --listen it is about that one.
 *
 * Threads: main only, before any other starts.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "daemon/options.h"

enum {
  MAX_GLOBS = 4096, /* Of one listener. */
};

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
