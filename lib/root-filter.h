/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A set of roots that may err on the side of yes: two bytes a root, so
 * that a store of many packs need not read all their tables to learn that
 * it lacks a blob.
 *
 * Threads: any number may ask once nobody adds.
 */
#ifndef BP_ROOT_FILTER_H
#define BP_ROOT_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/merkle.h"

struct bp_root_filter;

/* Room for COUNT roots.  Returns 0 or -ENOMEM. */
int bp_root_filter_new (struct bp_root_filter **ret_filter, uint64_t count);
void bp_root_filter_free (struct bp_root_filter *filter);

void bp_root_filter_add (struct bp_root_filter *filter,
                         const struct bp_root *root);

/* False: ROOT was never added.  True: it was, or (1 of 400) it was not. */
bool bp_root_filter_may_have (const struct bp_root_filter *filter,
                              const struct bp_root *root);

#endif /* BP_ROOT_FILTER_H */
