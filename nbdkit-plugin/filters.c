/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A session gives every read and write a meaning of its own, so a filter
 * that changes, splits, repeats or reorders them breaks it.  nbdkit does
 * not tell a plugin about the filters before it, but they are shared
 * objects of the same process, nbdkit-NAME-filter.so, and the dynamic
 * linker lists those.  Only filters that are known to pass requests
 * through unchanged are accepted.
 */
#include <config.h>

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/range.h"
#include "nbdkit-plugin/filters.h"

static const char *const suitable_filters[] = {
  "delay",
  "error",
  "exitlast",
  "exitwhen",
  "exportname",
  "ip",
  "limit",
  "log",
  "multi-conn",
  "nocache",
  "noextents",
  "nofilter",
  "nozero",
  "pause",
  "rate",
  "stats",
  "time-limit",
  "tls-fallback",
};

static bool
is_suitable (const char *name)
{
  for (size_t i = 0; i < ARRAY_LEN (suitable_filters); i++)
    if (strcmp (suitable_filters[i], name) == 0)
      return true;
  return false;
}

bool
filter_is_unsuitable (const char *path, char *name, size_t len)
{
  static const char prefix[] = "nbdkit-", suffix[] = "-filter.so";
  const char *slash = strrchr (path, '/');
  const char *base = slash ? slash + 1 : path;
  const size_t fixed = sizeof prefix - 1 + sizeof suffix - 1;
  const size_t base_len = strlen (base);

  if (base_len <= fixed || strncmp (base, prefix, sizeof prefix - 1) != 0 ||
      strcmp (base + base_len - (sizeof suffix - 1), suffix) != 0)
    return false;
  snprintf (name, len, "%.*s", (int) (base_len - fixed),
            base + sizeof prefix - 1);
  return !is_suitable (name);
}

struct search {
  char *name;
  size_t len;
};

static int
look_at_object (struct dl_phdr_info *info, size_t size, void *opaque)
{
  const struct search *search = opaque;

  (void) size;
  return filter_is_unsuitable (info->dlpi_name, search->name, search->len);
}

bool
filters_find_unsuitable (char *name, size_t len)
{
  struct search search = { .name = name, .len = len };

  return dl_iterate_phdr (look_at_object, &search) != 0;
}
