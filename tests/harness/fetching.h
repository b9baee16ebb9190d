/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* For the tests of the fetcher: a store of blobs with known bytes, a driver
 * on it, and fetches that are waited for.
 *
 * Everything here ends the process with a message if it fails.
 */
#ifndef BP_TEST_FETCHING_H
#define BP_TEST_FETCHING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/pager/driver.h"
#include "daemon/pager/fetcher.h"
#include "tests/harness/check.h"

/* A blob of the store. */
struct test_blob {
  struct bp_root root;
  uint64_t size; /* Bytes. */
  uint8_t *data; /* What it holds; NULL: zeros. */
};

/* A directory of its own, removed by test_store_done. */
struct test_store {
  char dir[64];
  char path[96]; /* Of the store. */
  struct test_blob *blobs;
  size_t nr_blobs;
};

/* COUNT blobs of SIZE bytes each (reproducible from SEED), more of them
 * with each call.
 */
void test_store_init (struct test_store *store);
void test_store_add (struct test_store *store, size_t count, uint64_t size,
                     uint64_t seed);
void test_store_done (struct test_store *store);

/* A blob of SIZE bytes, all zeros, of which only the windows under the same
 * node 0 as the one at OFFSET can be verified.  Its pack is a sparse file.
 * STORE must have other blobs.
 */
void test_store_add_vast (struct test_store *store, uint64_t size,
                          uint64_t offset);

/* A captive driver on STORE that has a session. */
struct driver *test_driver (const struct test_store *store,
                            unsigned timeout_s);

/* An nbdkit of our own on STORE, listening on its directory's "socket":
 * FILTER (or NULL) and its parameter PARAM are added.  Returns its pid once
 * it listens.
 */
pid_t test_nbdkit_start (const struct test_store *store, const char *filter,
                         const char *param);
/* Preload a library of tests/harness into every nbdkit started from now on,
 * captive or not.
 */
void test_nbdkit_preload (const char *library);
/* A link simulator in front of it, listening on "far". */
pid_t test_lagsim_start (const struct test_store *store, unsigned rtt_ms);
/* Stop PID, and wait until every thread of it has stopped. */
void test_freeze (pid_t pid);
/* End either. */
void test_kill (pid_t pid, int signal);

/* A driver on socket NAME in STORE's directory, without waiting for a
 * session.
 */
struct driver *test_driver_at (const struct test_store *store,
                               const char *name, unsigned timeout_s);

/* The captive nbdkit: the only child there is.  0: none. */
pid_t test_captive_pid (void);

/* A fetch of a window, and what became of it. */
struct test_fetch {
  struct fetch fetch; /* First. */
  const struct test_blob *blob;
  int status;
  bool is_done;
  bool is_retired;
};

/* Fetches of COUNT windows; the buffers are allocated and poisoned. */
struct test_fetch *test_fetches (size_t count);
void test_fetches_free (struct test_fetch *fetches, size_t count);
void test_fetch_set (struct test_fetch *fetch, const struct test_blob *blob,
                     uint64_t offset, enum fetch_class class,
                     struct fetch_user *user);
void test_submit (struct fetcher *fetcher, struct test_fetch *fetches,
                  size_t count);
void test_wait (struct test_fetch *fetches, size_t count);
void test_wait_retired (struct test_fetch *fetch);
/* It was done with STATUS; with 0, BUF holds what the blob holds. */
void test_expect (const struct test_fetch *fetch, int status);

/* One window, submitted and waited for.  Returns its status; bytes are
 * compared.
 */
int test_fetch_one (struct fetcher *fetcher, const struct test_blob *blob,
                    uint64_t offset, struct fetch_user *user);

/* Every window of the blobs FIRST … FIRST + COUNT - 1, submitted together,
 * waited for and compared.
 */
void test_fetch_all (struct fetcher *fetcher, const struct test_store *store,
                     size_t first, size_t count, enum fetch_class class,
                     struct fetch_user *user);

/* Wait until CONDITION (OPAQUE); fail after 20 seconds. */
void test_wait_until (bool (*condition) (void *opaque), void *opaque);

/* Skip the whole program unless the plugin is there. */
void test_requires_plugin (void);

/* Flip one bit of the stored bytes of BLOB, which is stored raw. */
void test_corrupt (const struct test_store *store,
                   const struct test_blob *blob, uint64_t offset);

#endif /* BP_TEST_FETCHING_H */
