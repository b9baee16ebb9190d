/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Lower-case hexadecimal, as roots and session ids are written. */
#ifndef BP_HEX_H
#define BP_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write 2 * LEN lower-case digits and a NUL to OUT. */
void bp_hex_encode (const uint8_t *data, size_t len, char *out);

/* Decode exactly 2 * LEN lower-case digits at HEX, which must end
 * there (NUL).  Returns false, with OUT undefined, for anything else.
 */
bool bp_hex_decode (const char *hex, uint8_t *out, size_t len);

#endif /* BP_HEX_H */
