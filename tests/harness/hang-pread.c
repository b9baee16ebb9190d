/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Preloaded into nbdkit: reads of the file offsets from HANG_FROM to HANG_TO
 * (bytes) hang as long as the file HANG_WHILE exists, as reads of a store
 * on a file server that has gone do.
 */
#include <config.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

typedef ssize_t (*pread_fn) (int fd, void *buf, size_t len, off_t offset);

static uint64_t from, to;
static const char *file;
static pread_fn real_pread;

static void __attribute__ ((constructor))
prepare (void)
{
  const char *a = getenv ("HANG_FROM"), *b = getenv ("HANG_TO");

  real_pread = (pread_fn) dlsym (RTLD_NEXT, "pread64");
  file = getenv ("HANG_WHILE");
  if (a && b) {
    from = strtoull (a, NULL, 10);
    to = strtoull (b, NULL, 10);
  }
}

static void
wait_if_it_hangs (off_t offset)
{
  const struct timespec slice = { .tv_nsec = 5000000 };

  if ((uint64_t) offset < from || (uint64_t) offset >= to)
    return;
  while (file && access (file, F_OK) == 0)
    nanosleep (&slice, NULL);
}

__attribute__ ((visibility ("default"))) ssize_t
pread64 (int fd, void *buf, size_t len, off_t offset)
{
  wait_if_it_hangs (offset);
  return real_pread (fd, buf, len, offset);
}

__attribute__ ((visibility ("default"))) ssize_t
pread (int fd, void *buf, size_t len, off_t offset)
{
  wait_if_it_hangs (offset);
  return real_pread (fd, buf, len, offset);
}
