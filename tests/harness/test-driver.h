/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* For C tests of the block driver: a private directory with a store, and
 * nbdkit serving it.  Everything is gone when the test exits.
 *
 * A failure prints what was wrong and exits 1; nothing here returns an
 * error.
 */
#ifndef BP_TEST_DRIVER_H
#define BP_TEST_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/merkle.h"
#include "lib/pack.h"

void test_fail (const char *file, int line, const char *fmt, ...)
  __attribute__ ((format (printf, 3, 4), noreturn));

#define FAIL(...) test_fail (__FILE__, __LINE__, __VA_ARGS__)
#define EXPECT(cond)                \
  do {                              \
    if (!(cond))                    \
      FAIL ("expected: %s", #cond); \
  } while (0)
/* Two numbers; both are printed. */
#define EXPECT_EQ(a, b)                                              \
  do {                                                               \
    const long long a_ = (long long) (a), b_ = (long long) (b);      \
    if (a_ != b_)                                                    \
      FAIL ("expected %s == %s, got %lld and %lld", #a, #b, a_, b_); \
  } while (0)

/* Make the directory and an empty store; the process moves into it. */
void test_begin (void);

/* Fill LEN bytes: random-looking, or compressible. */
void test_fill_noise (uint8_t *buf, size_t len, uint64_t seed);
void test_fill_text (uint8_t *buf, size_t len, uint64_t seed);

/* Add a blob to the store, whole. */
struct bp_root test_add_blob (enum bp_codec codec, const uint8_t *data,
                              size_t len);

/* Start nbdkit with OPTIONS (before the plugin's name) and PARAMETERS
 * (behind store=); both NULL-terminated lists, or NULL.  Returns when it
 * is ready, with the path of its socket.
 */
const char *test_start_driver (const char *const *options,
                               const char *const *parameters);

/* Stop what was started last. */
void test_stop (void);

/* Start lagsim before TARGET; returns the path of its socket. */
const char *test_start_lagsim (const char *target, unsigned rtt_ms);

#endif /* BP_TEST_DRIVER_H */
