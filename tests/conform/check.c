/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The inside of a check's process: its deadline, its remarks, its end.
 *
 * Standard output is the pipe to the runner; a line of it is a line of
 * diagnostics.
 */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conform/check.h"
#include "lib/base/clock.h"

enum {
  TRACE_LINES = 16,
  TRACE_LINE = 160, /* Bytes. */
};

static struct {
  uint64_t deadline_ns;
  bool has_remarks; /* A SHOULD was not kept. */
  char trace[TRACE_LINES][TRACE_LINE];
  unsigned nr_traced; /* Ever; the last TRACE_LINES are kept. */
} state;

void
check_begin (unsigned timeout_s)
{
  state.deadline_ns = now_ns () + timeout_s * NS_PER_SEC;
}

uint64_t
check_deadline_ns (void)
{
  return state.deadline_ns;
}

static void __attribute__ ((noreturn))
leave (enum check_result result)
{
  fflush (stdout);
  _exit (result);
}

void
check_end (void)
{
  leave (state.has_remarks ? CHECK_PASSED_REMARKS : CHECK_PASSED);
}

static void
print_trace (void)
{
  unsigned i =
    state.nr_traced > TRACE_LINES ? state.nr_traced - TRACE_LINES : 0;

  if (state.nr_traced > 0)
    puts ("the last messages (-> to the server, <- from it):");
  for (; i < state.nr_traced; i++)
    printf ("  %s\n", state.trace[i % TRACE_LINES]);
}

/* Print a line, of the arguments of the calling function. */
#define PRINT_LINE(fmt)    \
  do {                     \
    va_list args_;         \
                           \
    va_start (args_, fmt); \
    vprintf (fmt, args_);  \
    va_end (args_);        \
    putchar ('\n');        \
  } while (0)

void
fail (const char *fmt, ...)
{
  PRINT_LINE (fmt);
  print_trace ();
  leave (CHECK_FAILED);
}

void
skip (const char *fmt, ...)
{
  PRINT_LINE (fmt);
  leave (CHECK_SKIPPED);
}

void
unreachable (const char *fmt, ...)
{
  PRINT_LINE (fmt);
  leave (CHECK_UNREACHABLE);
}

void
remark (const char *fmt, ...)
{
  PRINT_LINE (fmt);
}

void
should (bool kept, const char *fmt, ...)
{
  if (kept)
    return;
  state.has_remarks = true;
  fputs ("SHOULD: ", stdout);
  PRINT_LINE (fmt);
}

void
expect_u64 (const char *what, uint64_t wanted, uint64_t got)
{
  if (wanted != got)
    fail ("%s: expected %ju (0x%jx), got %ju (0x%jx)", what,
          (uintmax_t) wanted, (uintmax_t) wanted, (uintmax_t) got,
          (uintmax_t) got);
}

void
trace (const char *fmt, ...)
{
  va_list args;

  va_start (args, fmt);
  vsnprintf (state.trace[state.nr_traced++ % TRACE_LINES], TRACE_LINE, fmt,
             args);
  va_end (args);
}

void *
take_memory (size_t len)
{
  void *p = calloc (1, len ? len : 1);

  if (p == NULL)
    fail ("out of memory: %zu bytes", len);
  return p;
}
