/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a fuzz target is: these definitions, in a file fuzz-NAME.c.  It is
 * linked with libFuzzer, or with regression-driver.c for make check.
 */
#ifndef BP_FUZZ_H
#define BP_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* NAME: the corpus is tests/fuzz/corpus/NAME/. */
extern const char fuzz_target[];

/* Set by the target when an input decodes. */
extern bool fuzz_decoded;

/* Decode SIZE bytes and check the target's property.  Ends the process if
 * it does not hold.  Returns 0.
 */
int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/* A property: unlike assert, never compiled out. */
#define MUST(condition)                                       \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf (stderr, "%s:%d: property does not hold: %s\n", \
               __FILE__, __LINE__, #condition);               \
      abort ();                                               \
    }                                                         \
  } while (0)

#endif /* BP_FUZZ_H */
