/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* json-c, bounded.  Everything JSON that comes from outside is parsed
 * here, with a length and a nesting limit, and read through getters that
 * say which member is wrong.
 */
#ifndef BP_JSON_H
#define BP_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

static inline void
cleanup_json (struct json_object **obj)
{
  json_object_put (*obj);
}
#define CLEANUP_JSON __attribute__ ((cleanup (cleanup_json)))

enum {
  BP_JSON_MAX_DEPTH = 8
};

/* Parse exactly one object in LEN bytes (white space may follow), nested
 * at most BP_JSON_MAX_DEPTH deep.  Returns 0, -EPROTO (not such an
 * object) or -ENOMEM.  The caller owns *ret_obj (CLEANUP_JSON).
 */
int bp_json_parse (const char *text, size_t len,
                   struct json_object **ret_obj);

/* A string member, borrowed from OBJ; NULL if absent, not a string, or
 * holding a NUL byte.
 */
const char *bp_json_get_string (struct json_object *obj, const char *key);

/* A non-negative integer member.  Returns false if absent or not one. */
bool bp_json_get_u64 (struct json_object *obj, const char *key,
                      uint64_t *ret_value);

/* A boolean member; FALLBACK if absent or not one. */
bool bp_json_get_bool (struct json_object *obj, const char *key,
                       bool fallback);

/* Adders; they abort only when memory has run out in json-c itself.  A
 * double is written with six decimals and must be finite.
 */
void bp_json_add_string (struct json_object *obj, const char *key,
                         const char *value);
void bp_json_add_u64 (struct json_object *obj, const char *key,
                      uint64_t value);
void bp_json_add_double (struct json_object *obj, const char *key,
                         double value);
void bp_json_add_bool (struct json_object *obj, const char *key, bool value);

#endif /* BP_JSON_H */
