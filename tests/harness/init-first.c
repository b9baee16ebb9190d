/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Preloaded into nbdkit behind a sanitizer's runtime, and linked so that it
 * is initialised before every other library.
 *
 * AddressSanitizer starts at the first malloc, and its start takes and
 * gives back libc's locale lock.  A library of nbdkit's calls newlocale
 * when it is initialised, which allocates with that lock held; the lock is
 * broken from then on, and the next newlocale waits for ever.  So the first
 * malloc is here.
 */
#include <config.h>

#include <stdlib.h>

static void __attribute__ ((constructor))
start_the_sanitizer (void)
{
  void *volatile p = malloc (1);

  free (p);
}
