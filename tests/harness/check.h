/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Checks for plain test programs: the first that fails says where, with
 * the values, and ends the program with status 1.
 *
 * Threads: any.
 */
#ifndef BP_TEST_CHECK_H
#define BP_TEST_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf (stderr, "%s:%d: %s: not so: %s\n", __FILE__, __LINE__, \
               __func__, #condition);                                 \
      exit (EXIT_FAILURE);                                            \
    }                                                                 \
  } while (0)

#define CHECK_EQ(got, wanted)                                           \
  do {                                                                  \
    const int64_t got_ = (int64_t) (got), wanted_ = (int64_t) (wanted); \
                                                                        \
    if (got_ != wanted_) {                                              \
      fprintf (stderr, "%s:%d: %s: %s is %jd, wanted %jd\n", __FILE__,  \
               __LINE__, __func__, #got, (intmax_t) got_,               \
               (intmax_t) wanted_);                                     \
      exit (EXIT_FAILURE);                                              \
    }                                                                   \
  } while (0)

/* One scenario: a function whose name is a sentence. */
#define RUN(test)                    \
  do {                               \
    fprintf (stderr, "%s\n", #test); \
    test ();                         \
  } while (0)

#endif /* BP_TEST_CHECK_H */
