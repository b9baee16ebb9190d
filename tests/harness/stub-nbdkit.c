/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the plugin calls of nbdkit, for tests of its parts without it.
 * A test that sets client_has_gone makes every sleep fail, as nbdkit does
 * once the client is no more.
 */
#include <config.h>

#include <errno.h>
#include <time.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "harness/stub-nbdkit.h"

atomic_bool client_has_gone;

#pragma GCC visibility push(default)

int
nbdkit_nanosleep (unsigned sec, unsigned nsec)
{
  const struct timespec t = { .tv_sec = sec, .tv_nsec = nsec };

  if (atomic_load (&client_has_gone)) {
    errno = ESHUTDOWN;
    return -1;
  }
  nanosleep (&t, NULL);
  return 0;
}

void
nbdkit_error (const char *fs, ...)
{
  (void) fs;
}

void
nbdkit_debug (const char *fs, ...)
{
  (void) fs;
}

void
nbdkit_set_error (int err)
{
  (void) err;
}

#pragma GCC visibility pop
