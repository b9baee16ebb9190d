/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A driver and a fetcher in memory, in place of the daemon's: what the
 * pager is tested against.
 *
 * Blobs and images are borrowed from the test.  Two threads serve the
 * fetches, demand before replay, as lanes would; they can be held back,
 * and told to fail what a test names.
 */
#ifndef BP_TEST_FAKE_FETCHER_H
#define BP_TEST_FAKE_FETCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/merkle.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/fetcher.h"

/* Make a driver with nothing in it. */
struct driver *fake_driver_new (void);
/* Everything submitted has come back.  Waits for the threads. */
void fake_driver_free (struct driver *driver);

/* LEN bytes at DATA (borrowed) are a blob. */
struct bp_root fake_add_blob (struct driver *driver, const uint8_t *data,
                              size_t len);
/* They are an image called NAME, cut into blobs. */
struct bp_root fake_add_image (struct driver *driver, const char *name,
                               const uint8_t *data, size_t len);
/* NAME names the image ROOT of LEN bytes; one entry for each name. */
void fake_set_tag (struct driver *driver, const char *name,
                   const struct bp_root *root, uint64_t size,
                   uint64_t segments);

/* Fetches of ROOT end with STATUS from now on; 0: as usual. */
void fake_fail (struct driver *driver, const struct bp_root *root,
                int status);
/* Who opens ROOT is told that it has SIZE bytes. */
void fake_lie (struct driver *driver, const struct bp_root *root,
               uint64_t size);
/* The fetches that ended with -ETIMEDOUT are retired. */
void fake_retire (struct driver *driver);

/* Nothing is answered between hold and let_go; let_some answers COUNT. */
void fake_hold (struct driver *driver);
void fake_let_go (struct driver *driver);
void fake_let_some (struct driver *driver, unsigned count);
/* Wait until nothing is queued or under way; not while held. */
void fake_wait_idle (struct driver *driver);
/* Wait until COUNT fetches are queued. */
void fake_wait_queued (struct driver *driver, size_t count);

/* How often ROOT was fetched; NULL: all fetches. */
size_t fake_fetches (struct driver *driver, const struct bp_root *root);
size_t fake_promotions (struct driver *driver);
size_t fake_evicted (struct driver *driver, const struct bp_root *root);
/* The I'th fetch that was submitted. */
struct bp_root fake_submitted (struct driver *driver, size_t i);
/* What fetcher_table_bytes says; 0 at first. */
extern uint64_t fake_table_bytes;
/* Wait until COUNT users are made and not freed. */
void fake_wait_users (struct driver *driver, int count);

#endif /* BP_TEST_FAKE_FETCHER_H */
