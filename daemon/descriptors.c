/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The limit of open files.  The soft one is low by custom, for programs
 * that use select; we do not.
 */
#include <config.h>

#include <sys/resource.h>

#include "daemon/descriptors.h"
#include "daemon/log.h"

enum {
  OWN_FILES = 64, /* Loops, lanes, the control socket and its commands. */
};

void
descriptors_allow (unsigned max_clients)
{
  struct rlimit limit;

  if (getrlimit (RLIMIT_NOFILE, &limit) == -1) {
    log_warn ("limit of open files: %m; leaving it as it is");
    return;
  }
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit (RLIMIT_NOFILE, &limit) == -1)
    log_warn ("limit of open files: %m; leaving it as it is");
  if (limit.rlim_max < (rlim_t) max_clients + OWN_FILES)
    log_warn ("only %llu files may be open: %u clients do not fit, some "
              "will wait",
              (unsigned long long) limit.rlim_max, max_clients);
}
