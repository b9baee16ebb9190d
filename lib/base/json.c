/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Bounded JSON. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/json.h"

static bool
only_space_follows (const char *text, size_t from, size_t len)
{
  for (size_t i = from; i < len; i++)
    if (strchr (" \t\r\n", text[i]) == NULL || text[i] == '\0')
      return false;
  return true;
}

int
bp_json_parse (const char *text, size_t len, struct json_object **ret_obj)
{
  CLEANUP_JSON struct json_object *obj = NULL;
  struct json_tokener *tok;
  bool complete;

  if (len > INT_MAX)
    return -EPROTO;
  tok = json_tokener_new_ex (BP_JSON_MAX_DEPTH);
  if (tok == NULL)
    return -ENOMEM;
  json_tokener_set_flags (tok, JSON_TOKENER_STRICT |
                                 JSON_TOKENER_VALIDATE_UTF8 |
                                 JSON_TOKENER_ALLOW_TRAILING_CHARS);
  obj = json_tokener_parse_ex (tok, text, (int) len);
  complete = json_tokener_get_error (tok) == json_tokener_success &&
             only_space_follows (text, json_tokener_get_parse_end (tok),
                                 len);
  json_tokener_free (tok);

  if (!complete || !json_object_is_type (obj, json_type_object))
    return -EPROTO;
  *ret_obj = steal_ptr (&obj);
  return 0;
}

const char *
bp_json_get_string (struct json_object *obj, const char *key)
{
  struct json_object *value;
  const char *s;

  if (!json_object_object_get_ex (obj, key, &value) ||
      !json_object_is_type (value, json_type_string))
    return NULL;
  s = json_object_get_string (value);
  if (strlen (s) != (size_t) json_object_get_string_len (value))
    return NULL;
  return s;
}

bool
bp_json_get_u64 (struct json_object *obj, const char *key,
                 uint64_t *ret_value)
{
  struct json_object *value;

  if (!json_object_object_get_ex (obj, key, &value) ||
      !json_object_is_type (value, json_type_int) ||
      json_object_get_int64 (value) < 0)
    return false;
  *ret_value = json_object_get_uint64 (value);
  return true;
}

bool
bp_json_get_bool (struct json_object *obj, const char *key, bool fallback)
{
  struct json_object *value;

  if (!json_object_object_get_ex (obj, key, &value) ||
      !json_object_is_type (value, json_type_boolean))
    return fallback;
  return json_object_get_boolean (value);
}

/* json-c returns an error only for a NULL key or lack of memory. */
static void
add (struct json_object *obj, const char *key, struct json_object *value)
{
  if (value == NULL || json_object_object_add (obj, key, value) != 0)
    abort ();
}

void
bp_json_add_string (struct json_object *obj, const char *key,
                    const char *value)
{
  add (obj, key, json_object_new_string (value));
}

void
bp_json_add_u64 (struct json_object *obj, const char *key, uint64_t value)
{
  add (obj, key, json_object_new_uint64 (value));
}

void
bp_json_add_double (struct json_object *obj, const char *key, double value)
{
  char text[32];

  snprintf (text, sizeof text, "%.6f", value);
  add (obj, key, json_object_new_double_s (value, text));
}

void
bp_json_add_bool (struct json_object *obj, const char *key, bool value)
{
  add (obj, key, json_object_new_boolean (value));
}
