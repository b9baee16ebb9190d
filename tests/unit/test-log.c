/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Lines of the log. */
#include <config.h>

#include <string.h>

#include <criterion/criterion.h>
#include <criterion/redirect.h>

#include "daemon/log.h"

Test (log, is_one_line_whatever_is_quoted_in_it, .init = cr_redirect_stderr)
{
  log_init ("p", false);
  log_warn ("driver: it says '%s'", "a\nb\r\x1b[31m\x7f\xc3\xa9");
  cr_assert_stderr_eq_str (
    "p: warning: driver: it says 'a?b??[31m?\xc3\xa9'\n");
}

Test (log, cuts_a_line_that_is_too_long, .init = cr_redirect_stderr)
{
  static const char start[] = "p: ";
  char text[3000], wanted[1024 + 1];

  memset (text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  strcpy (wanted, start);
  memset (wanted + strlen (start), 'x', 1023 - 1 - strlen (start));
  strcpy (wanted + 1023 - 1, "\n");

  log_init ("p", false);
  log_info ("%s", text);
  cr_assert_stderr_eq_str (wanted);
}
