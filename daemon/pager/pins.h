/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Pins: windows that a replay keeps in the cache (pager.h has the rest).
 *
 * A pin links a window and a set, and holds a reference to the window.
 * All of it is under cache->lock.
 */
#ifndef BP_PINS_H
#define BP_PINS_H

#include <stdbool.h>
#include <stdint.h>

struct cache;
struct window;

/* WINDOW's pins let go of it, because its fetch failed, or it was VERIFIED
 * and is taken away as the last resort.  Returns how many references the
 * caller has to drop.  Called with cache->lock held.
 */
uint32_t pins_detach (struct cache *cache, struct window *window,
                      bool was_verified);

#endif /* BP_PINS_H */
