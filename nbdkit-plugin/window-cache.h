/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Verified windows that direct exports have used lately.
 *
 * A read of 4 KiB needs the digest of the whole window, and finding it
 * needs a window or two of the image index; without a memory of both,
 * small reads would hash the same bytes again and again.  One cache serves
 * all connections, so that its size does not depend on their number.
 *
 * Threads: any; the cache's lock is a leaf and is not held during I/O or
 * hashing.  Two threads that miss the same window both read it.
 */
#ifndef BP_WINDOW_CACHE_H
#define BP_WINDOW_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/store.h"

/* 24 MiB at most, and those that are in use beyond it. */
enum {
  WINDOW_CACHE_WINDOWS = 192
};

struct window_cache;

/* A window whose bytes have been verified.  Constant, but for the cache's
 * own fields.
 */
struct window {
  struct bp_root root;
  uint64_t blob_size; /* Bytes of the whole blob. */
  uint64_t offset;    /* In the blob; a multiple of BP_WINDOW_SIZE. */
  size_t len;         /* Bytes. */

  unsigned refs;   /* The cache's lock. */
  uint64_t used;   /* The cache's lock: tick of the last use. */
  bool is_kept;    /* The cache's lock: has a place in the cache. */
  bool is_checked; /* The cache's lock: window_is_checked. */
  uint8_t data[];
};

int window_cache_new (struct window_cache **ret_cache);
/* Accepts NULL.  No window may be in use. */
void window_cache_free (struct window_cache *cache);

/* The window at OFFSET of the blob ROOT, if it is here; or NULL. */
struct window *window_cache_find (struct window_cache *cache,
                                  const struct bp_root *root,
                                  uint64_t offset);

/* The same, read from BLOB and verified if it is not here.  OFFSET is a
 * multiple of BP_WINDOW_SIZE inside BLOB (or 0).  Returns 0; -EBADMSG;
 * -ENOMEM; or an I/O error.
 */
int window_cache_get (struct window_cache *cache, struct bp_blob *blob,
                      uint64_t offset, struct window **ret_window,
                      struct bp_error *err);

/* Give a window back.  Accepts NULL. */
void window_cache_put (struct window_cache *cache, struct window *window);

/* A mark for whoever checks more than the digest: set once, by one user
 * for all.
 */
bool window_is_checked (struct window_cache *cache,
                        const struct window *window);
void window_set_checked (struct window_cache *cache, struct window *window);

#endif /* BP_WINDOW_CACHE_H */
