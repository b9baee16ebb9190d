/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Numbers and sizes as people write them. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/size.h"

/* Digits at TEXT; *RET_END points behind the last. */
static int
parse_digits (const char *text, uint64_t *ret_number, const char **ret_end)
{
  uint64_t number = 0;
  const char *p = text;

  for (; *p >= '0' && *p <= '9'; p++)
    if (__builtin_mul_overflow (number, (uint64_t) 10, &number) ||
        __builtin_add_overflow (number, (uint64_t) (*p - '0'), &number))
      return -EINVAL;
  if (p == text)
    return -EINVAL;
  *ret_number = number;
  *ret_end = p;
  return 0;
}

int
bp_number_parse (const char *text, uint64_t min, uint64_t max,
                 uint64_t *ret_number)
{
  uint64_t number;
  const char *end;
  const int r = parse_digits (text, &number, &end);

  if (r < 0 || *end != '\0' || number < min || number > max)
    return -EINVAL;
  *ret_number = number;
  return 0;
}

int
bp_size_parse (const char *text, uint64_t *ret_bytes)
{
  static const char units[] = "KMGT";
  uint64_t number;
  const char *end, *unit;
  const int r = parse_digits (text, &number, &end);

  if (r < 0)
    return r;
  if (*end != '\0') {
    unit = strchr (units, *end);
    if (unit == NULL || end[1] != '\0')
      return -EINVAL;
    for (long i = 0; i <= unit - units; i++)
      if (__builtin_mul_overflow (number, (uint64_t) 1024, &number))
        return -EINVAL;
  }
  if (number > INT64_MAX)
    return -EINVAL;
  *ret_bytes = number;
  return 0;
}

char *
bp_size_format (uint64_t bytes, char *out, size_t len)
{
  static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB",
                                       "EiB" };
  double value = (double) bytes / 1024;
  size_t i = 0;

  if (bytes < 1024) {
    snprintf (out, len, "%" PRIu64 " B", bytes);
    return out;
  }
  for (; value >= 1024 && i < 5; i++)
    value /= 1024;
  snprintf (out, len, "%.1f %s", value, units[i]);
  return out;
}
