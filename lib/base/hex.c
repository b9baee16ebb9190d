/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Hexadecimal.  Upper case is refused on purpose: a root has one
 * spelling, so that names can be compared as strings.
 */
#include <config.h>

#include "lib/base/hex.h"

void
bp_hex_encode (const uint8_t *data, size_t len, char *out)
{
  static const char digits[] = "0123456789abcdef";

  for (size_t i = 0; i < len; i++) {
    out[2 * i] = digits[data[i] >> 4];
    out[2 * i + 1] = digits[data[i] & 15];
  }
  out[2 * len] = '\0';
}

static int
digit_value (char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return -1;
}

bool
bp_hex_decode (const char *hex, uint8_t *out, size_t len)
{
  for (size_t i = 0; i < len; i++) {
    const int high = digit_value (hex[2 * i]);
    const int low = high < 0 ? -1 : digit_value (hex[2 * i + 1]);

    if (low < 0)
      return false;
    out[i] = (uint8_t) (high << 4 | low);
  }
  return hex[2 * len] == '\0';
}
