/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* For tests: rows of tests/data/NAME.tsv, and reproducible bytes.  All
 * functions end the process if something is wrong with the files.
 */
#ifndef BP_TEST_VECTORS_H
#define BP_TEST_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/merkle.h"

enum {
  VECTOR_COLUMNS = 8,
  VECTOR_LINE_BYTES = 1024
};

/* A file of vectors, and its current row: columns[0 … nr - 1]. */
struct vectors {
  FILE *fp;
  size_t nr;
  char *columns[VECTOR_COLUMNS]; /* Into line; NULL past nr. */
  char line[VECTOR_LINE_BYTES];
};

void vectors_open (struct vectors *vectors, const char *name);

/* Step to the next row, leaving out comments.  False at the end, when
 * the file is closed.
 */
bool vectors_next (struct vectors *vectors);

/* The root or number that a column must be. */
struct bp_root vector_root (const char *column);
uint64_t vector_number (const char *column);

/* The bytes of a row whose first columns are a kind, data and a length:
 * the data over and over, cut to the length.
 */
struct vector_content {
  uint8_t pattern[64];
  size_t pattern_len;
  uint64_t len;
};
struct vector_content vector_content (const struct vectors *row);

/* CONTENT in memory; the caller frees it. */
uint8_t *vector_bytes (const struct vector_content *content);

/* The bytes of PATTERN over and over, from a running position: fills LEN
 * bytes at BUF as bytes POSITION and up of the endless repetition.
 */
void fill_repeated (uint8_t *buf, size_t len, const uint8_t *pattern,
                    size_t pattern_len, uint64_t position);

/* The SplitMix64 generator. */
uint64_t splitmix64 (uint64_t *state);

/* LEN bytes of it from STATE on, as little-endian words. */
void fill_splitmix (uint8_t *buf, size_t len, uint64_t state);

#endif /* BP_TEST_VECTORS_H */
