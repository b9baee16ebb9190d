/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Which kind of source a name means, and what to call its image. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/cli/import-source.h"
#include "lib/base/range.h"

bool
is_nbd_uri (const char *what)
{
  static const char *const schemes[] = {
    "nbd://",
    "nbds://",
    "nbd+unix://",
    "nbds+unix://",
    "nbd+vsock://",
    "nbds+vsock://",
  };

  for (size_t i = 0; i < ARRAY_LEN (schemes); i++)
    if (strncmp (what, schemes[i], strlen (schemes[i])) == 0)
      return true;
  return false;
}

int
import_source_open (struct import_source **ret_source, const char *what,
                    bool is_raw, const char **ret_format,
                    struct bp_error *err)
{
  return is_nbd_uri (what) ? import_nbd_open (ret_source, what, err)
                           : import_file_open (ret_source, what, is_raw,
                                               ret_format, err);
}

int
import_source_read (struct import_source *source,
                    const struct import_sink *sink, struct bp_error *err)
{
  return source->ops->read (source, sink, err);
}

void
import_source_close (struct import_source *source)
{
  if (source)
    source->ops->close (source);
}

char *
import_source_default_name (const char *what)
{
  const char *slash = strrchr (what, '/');
  const char *base = slash ? slash + 1 : what;
  const char *dot = strrchr (base, '.');

  if (is_nbd_uri (what))
    return import_nbd_export_name (what);
  return strndup (base, dot && dot > base ? (size_t) (dot - base)
                                          : strlen (base));
}
