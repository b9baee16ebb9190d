/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* From struct bp_error to nbdkit_error and nbdkit_set_error. */
#include <config.h>

#include <errno.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "nbdkit-plugin/report.h"

/* The errno that a client is told for CODE (a negative errno).  Corrupt,
 * malformed and missing bytes are all EIO: only what a client can act on
 * is told apart.
 */
static int
report_errno (int code)
{
  switch (code) {
  case -EINVAL: return EINVAL;
  case -ENOMEM: return ENOMEM;
  case -EPERM: return EPERM;
  case -ESHUTDOWN: return ESHUTDOWN;
  default: return EIO;
  }
}

int
report_error (const struct bp_error *err)
{
  nbdkit_error ("%s", err->msg);
  nbdkit_set_error (report_errno (err->code));
  return -1;
}
