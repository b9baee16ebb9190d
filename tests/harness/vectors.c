/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Reading vectors, and making the bytes they speak of. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/vectors.h"
#include "lib/base/bytes.h"
#include "lib/base/hex.h"
#include "lib/base/range.h"

static void
die (const char *what, const char *which)
{
  fprintf (stderr, "vectors: %s: '%s'\n", what, which);
  abort ();
}

void
vectors_open (struct vectors *vectors, const char *name)
{
  char path[4096];

  memset (vectors, 0, sizeof *vectors);
  snprintf (path, sizeof path, "%s/data/%s", SRCDIR, name);
  vectors->fp = fopen (path, "re");
  if (vectors->fp == NULL)
    die (strerror (errno), path);
}

static void
split_line (struct vectors *vectors)
{
  char *rest = vectors->line;

  rest[strcspn (rest, "\n")] = '\0';
  memset (vectors->columns, 0, sizeof vectors->columns);
  vectors->nr = 0;
  while (rest) {
    if (vectors->nr == VECTOR_COLUMNS)
      die ("too many columns", vectors->line);
    vectors->columns[vectors->nr++] = strsep (&rest, "\t");
  }
}

bool
vectors_next (struct vectors *vectors)
{
  do {
    if (fgets (vectors->line, sizeof vectors->line, vectors->fp) == NULL) {
      fclose (vectors->fp);
      return false;
    }
  } while (vectors->line[0] == '#' || vectors->line[0] == '\n');
  split_line (vectors);
  return true;
}

struct bp_root
vector_root (const char *column)
{
  struct bp_root root = { { 0 } };

  if (column == NULL || bp_root_parse (column, &root) < 0)
    die ("not a root", column ? column : "");
  return root;
}

uint64_t
vector_number (const char *column)
{
  char *end;
  uint64_t number;

  if (column == NULL || column[0] == '\0')
    die ("not a number", "");
  number = strtoull (column, &end, 10);
  if (*end != '\0')
    die ("not a number", column);
  return number;
}

struct vector_content
vector_content (const struct vectors *row)
{
  const char *kind = row->columns[0], *text = row->columns[1];
  const size_t len = strlen (text);
  struct vector_content content = { .len = vector_number (row->columns[2]) };

  if (strcmp (kind, "ascii") == 0 && len <= sizeof content.pattern) {
    memcpy (content.pattern, text, len);
    content.pattern_len = len;
    return content;
  }
  content.pattern_len = len / 2;
  if (strcmp (kind, "repeat") != 0 ||
      content.pattern_len > sizeof content.pattern ||
      !bp_hex_decode (text, content.pattern, content.pattern_len))
    die ("not a content", text);
  return content;
}

uint8_t *
vector_bytes (const struct vector_content *content)
{
  uint8_t *bytes = malloc (content->len + 1);

  if (bytes == NULL)
    die (strerror (errno), "vector");
  fill_repeated (bytes, content->len, content->pattern,
                 content->pattern_len, 0);
  return bytes;
}

void
fill_repeated (uint8_t *buf, size_t len, const uint8_t *pattern,
               size_t pattern_len, uint64_t position)
{
  for (size_t i = 0; i < len; i++)
    buf[i] = pattern[(position + i) % pattern_len];
}

uint64_t
splitmix64 (uint64_t *state)
{
  uint64_t z = *state += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
  return z ^ z >> 31;
}

void
fill_splitmix (uint8_t *buf, size_t len, uint64_t state)
{
  for (size_t i = 0; i < len; i += 8) {
    uint8_t word[8];

    put_le64 (word, splitmix64 (&state));
    memcpy (buf + i, word, MIN (len - i, sizeof word));
  }
}
