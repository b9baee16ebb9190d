/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Maps of the fake pager's exports: as if each had pieces of
 * FAKE_PIECE_BYTES, every fifth of them a hole, the others absent, on
 * their way and verified in turn.
 */
#ifndef BP_TEST_FAKE_MAP_H
#define BP_TEST_FAKE_MAP_H

#include <stdint.h>

#include "daemon/pager/pager.h"

/* The state of the byte at OFFSET, and where the next piece starts. */
uint32_t fake_map_state (enum map_kind kind, uint64_t offset);
uint64_t fake_map_next (uint64_t offset);

/* The result of export_map; op->touches is to be freed. */
void fake_fill_map (struct read_op *op, struct export_map *map);

#endif /* BP_TEST_FAKE_MAP_H */
