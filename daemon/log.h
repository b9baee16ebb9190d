/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The daemon's log: lines on standard error, "blobpagerd: object: what".
 *
 * A failure is logged once, by whoever decides what to do about it.  A
 * warning says what happens next.  %m is allowed and errno is kept.
 * Whatever a client or the driver sent goes through log_quote.
 *
 * Threads: any; a line is written with one system call.
 */
#ifndef BP_LOG_H
#define BP_LOG_H

#include <stdbool.h>
#include <stddef.h>

void log_init (const char *program, bool verbose);

void log_error (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
void log_warn (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
void log_info (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

extern bool log_is_verbose; /* Set once by log_init. */
void log_debug_line (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));
#define log_debug(...)                            \
  do {                                            \
    if (__builtin_expect (log_is_verbose, false)) \
      log_debug_line (__VA_ARGS__);               \
  } while (0)

/* Log and exit (1); for main.c and options.c only. */
void fatal (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2), noreturn));

/* LEN bytes from outside, cut to what fits OUT, with everything but
 * printable ASCII replaced.  Returns OUT.
 */
char *log_quote (const void *bytes, size_t len, char *out, size_t out_len);

#endif /* BP_LOG_H */
