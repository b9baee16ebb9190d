/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Is it UTF-8 (RFC 3629)? */
#ifndef BP_CONFORM_UTF8_H
#define BP_CONFORM_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool utf8_is_valid (const uint8_t *text, size_t len);

#endif /* BP_CONFORM_UTF8_H */
