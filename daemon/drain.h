/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Waiting while the daemon stops.  Threads: main only. */
#ifndef BP_DRAIN_H
#define BP_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

/* Wait until FD is readable.  Returns false if it is not when the clock
 * says END_NS, or when HURRY_FD (-1: none) is readable.
 */
bool drain_wait (int fd, uint64_t end_ns, int hurry_fd);

#endif /* BP_DRAIN_H */
