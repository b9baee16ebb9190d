/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Filling in struct bp_error. */
#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/error.h"

int
bp_error_set (struct bp_error *err, int code, const char *fmt, ...)
{
  va_list args;

  if (err == NULL)
    return code;
  err->code = code;
  errno = -code;
  va_start (args, fmt);
  vsnprintf (err->msg, sizeof err->msg, fmt, args);
  va_end (args);
  return code;
}

int
bp_error_wrap (struct bp_error *err, int code, const char *fmt, ...)
{
  char old[sizeof err->msg];
  va_list args;
  int n;

  if (err == NULL)
    return code;
  memcpy (old, err->msg, sizeof old);
  va_start (args, fmt);
  n = vsnprintf (err->msg, sizeof err->msg, fmt, args);
  va_end (args);
  if (n >= 0 && (size_t) n < sizeof err->msg)
    snprintf (err->msg + n, sizeof err->msg - (size_t) n, ": %.*s",
              (int) (sizeof err->msg - (size_t) n), old);
  return err->code;
}
