/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The key table of a session: which blob each slot stands for.
 *
 *              OPEN               opened
 *      free ─────────▶ opening ───────────▶ open
 *       ▲                 │ failed            │
 *       │                 ▼                   │
 *       └───────────── failed                 │
 *       ▲     CLOSE                  CLOSE    │
 *       └─────────────────────────────────────┘
 *
 * The slot of a key is its value mod 2^21; slot 0 is never used.
 *
 * Threads: any; the table's lock is a leaf, and is not held while a blob
 * is opened or read.
 */
#ifndef BP_MAPPER_H
#define BP_MAPPER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/session-proto.h"
#include "lib/store.h"
#include "nbdkit-plugin/mapped-blob.h"

struct mapper;

/* STORE is borrowed until the mapper is freed. */
int mapper_new (struct mapper **ret_mapper, struct bp_store *store);
/* Closes every key. */
void mapper_free (struct mapper *mapper);

/* Open the batch of REQUEST, an OPEN; one result an element.  The status
 * of each: 0; -EEXIST (the slot is taken); -EINVAL (its slot is 0); or
 * why the blob could not be opened, and then its slot has failed.
 * *RET_DAMAGE is what to log: the last of these reasons, if it is other
 * than absence and was not the last to be told of; otherwise its code is
 * 0.
 */
void mapper_open_batch (struct mapper *mapper,
                        const struct bp_request *request,
                        struct bp_open_result *results,
                        struct bp_error *ret_damage);

/* Free the slot of KEY, if it is KEY's. */
void mapper_close_key (struct mapper *mapper, uint64_t key);

/* The blob in SLOT, with a reference for the caller.  Returns 0; -EINVAL
 * for slot 0 and for a slot that has failed; -EBUSY while it is being
 * opened; -EAGAIN if it is free.
 */
int mapper_get_slot (struct mapper *mapper, uint32_t slot,
                     struct mapped_blob **ret_mapped, struct bp_error *err);

/* The blob open as KEY, with a reference for the caller, or -EINVAL. */
int mapper_get_key (struct mapper *mapper, uint64_t key,
                    struct mapped_blob **ret_mapped, struct bp_error *err);

/* Keys that are open or have failed. */
size_t mapper_nr_keys (struct mapper *mapper);

#endif /* BP_MAPPER_H */
