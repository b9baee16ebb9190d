/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* For tests of the pager: a pager over a driver in memory, bytes of an
 * image, and reads that wait.
 */
#ifndef BP_TEST_PAGER_FIXTURE_H
#define BP_TEST_PAGER_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/options.h"
#include "daemon/pager/pager.h"
#include "tests/harness/fake-fetcher.h"

struct fixture {
  struct options options;
  struct driver *driver;
  struct pager *pager;
};

void fixture_init (struct fixture *fixture, uint64_t budget);
void fixture_done (struct fixture *fixture);

/* LEN reproducible bytes: incompressible, and every fourth 64 KiB zeros
 * if SPARSE.  The caller frees them.
 */
uint8_t *image_bytes (size_t len, uint64_t seed, bool sparse);

/* Open NAME and enter it as a client; or what failed. */
int fixture_open (struct fixture *fixture, const char *name,
                  struct export **ret_export);
void fixture_close (struct export *export);

/* A read and the means to wait for it. */
struct test_read {
  struct read_op op; /* First. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  unsigned completions;
};

/* Start a read.  Returns true if it completed at once. */
bool test_read_start (struct test_read *read, struct export *export,
                      uint64_t offset, uint32_t len);
/* The same for a map. */
bool test_map_start (struct test_read *read, struct export_map *map,
                     struct export *export, uint64_t offset, uint32_t len);
bool test_read_is_complete (struct test_read *read);
/* Wait for it.  Returns its status. */
int test_read_wait (struct test_read *read);
/* Its bytes must be WANTED: all, or those before the failure. */
void test_read_compare (const struct test_read *read,
                        const uint8_t *wanted);
void test_read_release (struct test_read *read);

/* All of it: the bytes at OFFSET must be those of IMAGE.  Returns the
 * status.
 */
int read_and_compare (struct export *export, const uint8_t *image,
                      uint64_t offset, uint32_t len);

#endif /* BP_TEST_PAGER_FIXTURE_H */
