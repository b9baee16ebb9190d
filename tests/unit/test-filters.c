/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Which shared objects are filters that a session does not survive. */
#include <config.h>

#include <criterion/criterion.h>

#include "lib/base/range.h"
#include "nbdkit-plugin/filters.h"

Test (filters, that_may_change_requests_are_unsuitable)
{
  static const char *const paths[] = {
    "/usr/lib/nbdkit/filters/nbdkit-cache-filter.so",
    "nbdkit-cow-filter.so",
    "./nbdkit-blocksize-filter.so",
    "/a/nbdkit-retry-request-filter.so",
    "/a/nbdkit-of-tomorrow-filter.so",
  };
  char name[64];

  for (size_t i = 0; i < ARRAY_LEN (paths); i++)
    cr_assert (filter_is_unsuitable (paths[i], name, sizeof name), "%s",
               paths[i]);
  cr_assert_str_eq (name, "of-tomorrow");
}

Test (filters, that_pass_requests_on_and_other_objects_are_suitable)
{
  static const char *const paths[] = {
    "",
    "/usr/lib/libc.so.6",
    "/usr/lib/nbdkit/plugins/nbdkit-blobpager-plugin.so",
    "/usr/lib/nbdkit/filters/nbdkit-log-filter.so",
    "/usr/lib/nbdkit/filters/nbdkit-limit-filter.so",
    "nbdkit-filter.so",
    "nbdkit--filter.so",
    "-filter.so",
    "nbdkit-cache-filter.so.1",
  };
  char name[64];

  for (size_t i = 0; i < ARRAY_LEN (paths); i++)
    cr_assert_not (filter_is_unsuitable (paths[i], name, sizeof name), "%s",
                   paths[i]);
  cr_assert_not (filters_find_unsuitable (name, sizeof name));
}
