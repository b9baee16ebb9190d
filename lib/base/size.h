/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* SIZE on command lines: a decimal number and K, M, G or T (powers of
 * 1024), for people.
 */
#ifndef BP_SIZE_H
#define BP_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* Parse TEXT ("256M", "4096").  Returns 0, or -EINVAL for anything that
 * is not a size or does not fit 63 bits.
 */
int bp_size_parse (const char *text, uint64_t *ret_bytes);

/* Write BYTES for a person, "1.5 GiB", into OUT.  Returns OUT. */
char *bp_size_format (uint64_t bytes, char *out, size_t len);

/* Parse a whole decimal number in [MIN, MAX]; the same errors. */
int bp_number_parse (const char *text, uint64_t min, uint64_t max,
                     uint64_t *ret_number);

#endif /* BP_SIZE_H */
