/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The synopses that --help and the manual pages share, made from
 * man/synopsis-*.txt when the tree is built.
 */
#ifndef BP_SYNOPSIS_H
#define BP_SYNOPSIS_H

extern const char blobpager_synopsis[];
extern const char blobpagerd_synopsis[];

#endif /* BP_SYNOPSIS_H */
