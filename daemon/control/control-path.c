/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The default path of the control socket. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/control/control-path.h"
#include "lib/base/cleanup.h"

/* LEN bytes at DIR, then TAIL; NULL for an empty or absent DIR. */
static char *
path_in (const char *dir, size_t len, const char *tail)
{
  char *path;

  if (dir == NULL || len == 0)
    return NULL;
  if (asprintf (&path, "%.*s%s", (int) len, dir, tail) == -1)
    return NULL;
  return path;
}

static char *
path_in_runtime_directory (void)
{
  const char *dirs = getenv ("RUNTIME_DIRECTORY"); /* DIR:DIR:… */

  return path_in (dirs, dirs != NULL ? strcspn (dirs, ":") : 0,
                  "/control.sock");
}

static char *
path_in_run (void)
{
  return path_in ("/run", 4, "/blobpager/control.sock");
}

static char *
path_in_xdg_runtime_dir (void)
{
  const char *dir = getenv ("XDG_RUNTIME_DIR");

  return path_in (dir, dir != NULL ? strlen (dir) : 0,
                  "/blobpager/control.sock");
}

char *
control_default_path (void)
{
  char *path = path_in_runtime_directory ();

  if (path != NULL)
    return path;
  return geteuid () == 0 ? path_in_run () : path_in_xdg_runtime_dir ();
}

char *
control_find_path (void)
{
  static char *(*const places[]) (void) = {
    path_in_runtime_directory,
    path_in_run,
    path_in_xdg_runtime_dir,
  };

  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    CLEANUP_FREE char *path = places[i]();

    if (path != NULL && access (path, F_OK) == 0)
      return steal_ptr (&path);
  }
  return control_default_path ();
}
