/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* How many files may be open.  Threads: main only, at start. */
#ifndef BP_DESCRIPTORS_H
#define BP_DESCRIPTORS_H

/* Raise the limit as far as we may; warn if MAX_CLIENTS clients and our
 * own files do not fit.
 */
void descriptors_allow (unsigned max_clients);

#endif /* BP_DESCRIPTORS_H */
