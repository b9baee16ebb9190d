/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Log lines on standard error, each written by one write(2) so that
 * lines of different threads never mix.  A line is one line whatever is
 * quoted in it: some of that comes from the driver.
 */
#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/log.h"

bool log_is_verbose;

static const char *program_name = "blobpagerd";

void
log_init (const char *program, bool verbose)
{
  program_name = program;
  log_is_verbose = verbose;
}

static void
replace_controls (char *text, size_t len)
{
  for (size_t i = 0; i < len; i++)
    if ((unsigned char) text[i] < ' ' || text[i] == 127)
      text[i] = '?';
}

/* A line longer than the buffer is cut, never split. */
static void __attribute__ ((format (printf, 2, 0)))
write_line (const char *level, const char *fmt, va_list args)
{
  const int saved = errno;
  char line[1024];
  int n, m;

  n = snprintf (line, sizeof line, "%s: %s", program_name, level);
  errno = saved; /* For %m. */
  m = vsnprintf (line + n, sizeof line - (size_t) n - 1, fmt, args);
  if (m > 0)
    n += m < (int) sizeof line - n - 1 ? m : (int) sizeof line - n - 2;
  replace_controls (line, (size_t) n);
  line[n++] = '\n';
  if (write (STDERR_FILENO, line, (size_t) n) < 0) {
    /* There is nowhere left to say so. */
  }
  errno = saved;
}

#define DEFINE_LOG(function, level) \
  void                              \
  function (const char *fmt, ...)   \
  {                                 \
    va_list args;                   \
                                    \
    va_start (args, fmt);           \
    write_line (level, fmt, args);  \
    va_end (args);                  \
  }

DEFINE_LOG (log_error, "")
DEFINE_LOG (log_warn, "warning: ")
DEFINE_LOG (log_info, "")
DEFINE_LOG (log_debug_line, "debug: ")

void
fatal (const char *fmt, ...)
{
  va_list args;

  va_start (args, fmt);
  write_line ("", fmt, args);
  va_end (args);
  exit (EXIT_FAILURE);
}

char *
log_quote (const void *bytes, size_t len, char *out, size_t out_len)
{
  const unsigned char *b = bytes;
  size_t i;

  for (i = 0; i < len && i + 1 < out_len; i++)
    out[i] = b[i] >= ' ' && b[i] < 127 && b[i] != '\'' ? (char) b[i] : '?';
  out[i] = '\0';
  return out;
}
