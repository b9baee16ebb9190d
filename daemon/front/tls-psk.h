/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Pre-shared keys: a file as psktool writes it.
 *
 *   alice:6f3c…        user, colon, key in hexadecimal
 *   #616c:6f3c…        the same, for a user whose name is no text
 *
 * A table is const once it is loaded.  Threads: any.
 */
#ifndef BP_TLS_PSK_H
#define BP_TLS_PSK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

enum {
  PSK_MAX_KEY = 256, /* Bytes, at least PSK_MIN_KEY. */
  PSK_MIN_KEY = 16,
  PSK_MAX_USER = 128, /* Bytes. */
};

struct psk_table;

/* Read the file PATH. */
int psk_table_load (struct psk_table **ret_table, const char *path,
                    struct bp_error *err);

/* The key of USER, and its length; NULL: nobody of that name.  Borrowed
 * from the table.
 */
const uint8_t *psk_table_find (const struct psk_table *table,
                               const char *user, size_t *ret_len);

/* Leaves no key in memory.  NULL is fine. */
void psk_table_free (struct psk_table *table);

#endif /* BP_TLS_PSK_H */
