/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Profiles read from a store (--store=DIR) rather than from the daemon.
 * Nothing here prints; a path that is NULL or empty is the caller's usage
 * error.
 */
#ifndef BP_STORE_PROFILES_H
#define BP_STORE_PROFILES_H

#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"

/* {"profiles":[…]}, as bp_store_list_profiles says.  The caller owns
 * *ret_obj.
 */
int store_profiles_list (const char *path, struct json_object **ret_obj,
                         struct bp_error *err);

/* The metadata and the bytes of NAME, of any kind; the caller owns both.
 */
int store_profiles_get (const char *path, const char *name,
                        struct json_object **ret_meta, uint8_t **ret_data,
                        size_t *ret_len, struct bp_error *err);

int store_profiles_delete (const char *path, const char *name,
                           struct bp_error *err);

#endif /* BP_STORE_PROFILES_H */
