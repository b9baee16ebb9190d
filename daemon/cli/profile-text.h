/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Stored profiles, for people and as JSON. */
#ifndef BP_PROFILE_TEXT_H
#define BP_PROFILE_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

#include "lib/error.h"

/* A line for each profile of the array PROFILES. */
void profile_print_list (struct json_object *profiles, FILE *fp);

/* The metadata META of the profile NAME and its records, decoded from LEN
 * bytes.  -EBADMSG, -ERANGE or -ENOMEM if they cannot be.
 */
int profile_print (const char *name, struct json_object *meta,
                   const uint8_t *data, size_t len, FILE *fp,
                   struct bp_error *err);

/* The same as one JSON object; the caller owns it. */
int profile_to_json (const char *name, struct json_object *meta,
                     const uint8_t *data, size_t len,
                     struct json_object **ret_obj, struct bp_error *err);

#endif /* BP_PROFILE_TEXT_H */
