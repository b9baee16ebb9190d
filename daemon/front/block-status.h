/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* BLOCK_STATUS: maps of the export, as chunks of a reply. */
#ifndef BP_BLOCK_STATUS_H
#define BP_BLOCK_STATUS_H

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct request;

/* Have the pager make the map for REQUEST, which is new; WANTS_ONE extent
 * of each context.  Returns false if there is no memory.
 */
bool block_status_start (struct request *request, uint64_t offset,
                         uint32_t len, bool wants_one);

/* The map of REQUEST is made: put it in chunks, and let the pager's go.
 * Returns false if there is no memory.
 */
bool block_status_answer (struct request *request);

#endif /* BP_BLOCK_STATUS_H */
