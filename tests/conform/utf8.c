/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A code point's first byte says how many follow, of 0x80 to 0xbf each;
 * the first of these has a narrower range after some, so that nothing is
 * written longer than it needs, nor is a surrogate, nor beyond U+10FFFF.
 */
#include <config.h>

#include "conform/utf8.h"
#include "lib/base/range.h"

struct lead {
  uint8_t first, last;   /* Of the lead byte. */
  unsigned nr_following; /* Bytes after it. */
  uint8_t low, high;     /* Of the first of these. */
};

static const struct lead leads[] = {
  { 0x00, 0x7f, 0, 0, 0 },
  { 0xc2, 0xdf, 1, 0x80, 0xbf },
  { 0xe0, 0xe0, 2, 0xa0, 0xbf },
  { 0xe1, 0xec, 2, 0x80, 0xbf },
  { 0xed, 0xed, 2, 0x80, 0x9f },
  { 0xee, 0xef, 2, 0x80, 0xbf },
  { 0xf0, 0xf0, 3, 0x90, 0xbf },
  { 0xf1, 0xf3, 3, 0x80, 0xbf },
  { 0xf4, 0xf4, 3, 0x80, 0x8f },
};

/* Bytes of the code point at TEXT, 0 if there is none in LEN bytes. */
static size_t
measure (const uint8_t *text, size_t len)
{
  const struct lead *lead = NULL;

  for (size_t i = 0; i < ARRAY_LEN (leads); i++)
    if (text[0] >= leads[i].first && text[0] <= leads[i].last)
      lead = &leads[i];
  if (lead == NULL || len <= lead->nr_following)
    return 0;
  for (unsigned i = 1; i <= lead->nr_following; i++)
    if (text[i] < (i == 1 ? lead->low : 0x80) ||
        text[i] > (i == 1 ? lead->high : 0xbf))
      return 0;
  return lead->nr_following + 1;
}

bool
utf8_is_valid (const uint8_t *text, size_t len)
{
  while (len > 0) {
    const size_t n = measure (text, len);

    if (n == 0)
      return false;
    text += n;
    len -= n;
  }
  return true;
}
