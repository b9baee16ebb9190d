/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Which of nbdkit's filters stand before the plugin. */
#ifndef BP_FILTERS_H
#define BP_FILTERS_H

#include <stdbool.h>
#include <stddef.h>

/* True if the shared object at PATH is an nbdkit filter that may change,
 * split, repeat or reorder requests; then its name is in NAME.
 */
bool filter_is_unsuitable (const char *path, char *name, size_t len);

/* True if such a filter is loaded into this process. */
bool filters_find_unsuitable (char *name, size_t len);

#endif /* BP_FILTERS_H */
