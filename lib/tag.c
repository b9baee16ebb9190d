/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Names and tags.
 *
 * A tag is read from a directory that anybody may have written to, so it
 * is decoded into a struct of fixed size, with every member checked; what
 * is only there for people (created, source, counts) may be absent.
 *
 * Strings are written as valid UTF-8 whatever the name of the source was:
 * a byte that is none becomes '?', since the decoder refuses the rest.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/image-index.h"
#include "lib/tag.h"

enum {
  NAME_MAX_CHARS = 128
};

static bool
is_alphanumeric (char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9');
}

/* [A-Za-z0-9][A-Za-z0-9._:-]{0,127} */
static bool
is_plain_name (const char *name)
{
  size_t len = 0;

  if (!is_alphanumeric (name[0]))
    return false;
  for (; name[len] != '\0'; len++)
    if (len == NAME_MAX_CHARS ||
        (!is_alphanumeric (name[len]) && !strchr ("._:-", name[len])))
      return false;
  return true;
}

bool
bp_is_tag_name (const char *name)
{
  struct bp_root root;

  return is_plain_name (name) && strcmp (name, "session") != 0 &&
         bp_root_parse (name, &root) < 0;
}

bool
bp_is_profile_name (const char *name)
{
  return is_plain_name (name[0] == '.' ? name + 1 : name);
}

/* Bytes of the UTF-8 character at S (LEN bytes follow), or 0 if there is
 * none.  Overlong forms and surrogates are none.
 */
static size_t
utf8_length (const uint8_t *s, size_t len)
{
  static const struct {
    uint8_t first, last, min2, max2, len;
  } forms[] = {
    { 0x01, 0x7f, 0x00, 0x00, 1 },
    { 0xc2, 0xdf, 0x80, 0xbf, 2 },
    { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
    { 0xe1, 0xec, 0x80, 0xbf, 3 },
    { 0xed, 0xed, 0x80, 0x9f, 3 },
    { 0xee, 0xef, 0x80, 0xbf, 3 },
    { 0xf0, 0xf0, 0x90, 0xbf, 4 },
    { 0xf1, 0xf3, 0x80, 0xbf, 4 },
    { 0xf4, 0xf4, 0x80, 0x8f, 4 },
  };

  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    if (s[0] < forms[i].first || s[0] > forms[i].last)
      continue;
    if (forms[i].len > len)
      return 0;
    if (forms[i].len > 1 && (s[1] < forms[i].min2 || s[1] > forms[i].max2))
      return 0;
    for (size_t j = 2; j < forms[i].len; j++)
      if ((s[j] & 0xc0) != 0x80)
        return 0;
    return forms[i].len;
  }
  return 0;
}

/* TEXT into OUT (at least its size), with '?' for what is not UTF-8. */
static void
make_utf8 (const char *text, char *out)
{
  const size_t len = strlen (text);
  size_t i = 0;

  while (i < len) {
    const size_t n = utf8_length ((const uint8_t *) text + i, len - i);

    if (n == 0) {
      out[i++] = '?';
      continue;
    }
    memcpy (out + i, text + i, n);
    i += n;
  }
  out[len] = '\0';
}

/* Add TEXT, at most as long as a source, whatever bytes it has. */
static void
add_text (struct json_object *obj, const char *key, const char *text)
{
  char utf8[sizeof ((struct bp_tag *) NULL)->source];

  make_utf8 (text, utf8);
  bp_json_add_string (obj, key, utf8);
}

int
bp_tag_encode (const struct bp_tag *tag, char **ret_text,
               struct bp_error *err)
{
  CLEANUP_JSON struct json_object *obj = json_object_new_object ();
  char hex[BP_ROOT_HEX_SIZE];
  const char *text;
  int n;

  if (obj == NULL)
    return bp_error_set (err, -ENOMEM, "tag '%s': %m", tag->name);
  bp_json_add_string (obj, "name", tag->name);
  bp_json_add_string (obj, "root", bp_root_format (&tag->root, hex));
  bp_json_add_u64 (obj, "size", tag->size);
  add_text (obj, "created", tag->created);
  add_text (obj, "source", tag->source);
  bp_json_add_u64 (obj, "segments", tag->segments);
  bp_json_add_u64 (obj, "bytes", tag->bytes);
  bp_json_add_u64 (obj, "bytes_new", tag->bytes_new);
  bp_json_add_u64 (obj, "stored_new", tag->stored_new);

  text = json_object_to_json_string_ext (obj,
                                         JSON_C_TO_STRING_NOSLASHESCAPE);
  n = text ? asprintf (ret_text, "%s\n", text) : -1;
  return n < 0 ? bp_error_set (err, -ENOMEM, "tag '%s': %m", tag->name) : 0;
}

/* Copy the string KEY into OUT, cut to fit; empty if absent. */
static void
copy_string (struct json_object *obj, const char *key, char *out, size_t len)
{
  const char *value = bp_json_get_string (obj, key);

  snprintf (out, len, "%s", value ? value : "");
}

static void
copy_count (struct json_object *obj, const char *key, uint64_t *ret_value)
{
  if (!bp_json_get_u64 (obj, key, ret_value))
    *ret_value = 0;
}

/* Name, root and size: what the tag is for. */
static int
decode_required (struct json_object *obj, const char *name,
                 struct bp_tag *tag, struct bp_error *err)
{
  const char *said = bp_json_get_string (obj, "name");
  const char *root = bp_json_get_string (obj, "root");

  if (said == NULL || !bp_is_tag_name (said))
    return bp_error_set (err, -EPROTO, "tag: 'name': not a tag's name");
  if (name && strcmp (said, name) != 0)
    return bp_error_set (err, -EPROTO, "tag '%s': 'name': says '%s'", name,
                         said);
  if (root == NULL || bp_root_parse (root, &tag->root) < 0)
    return bp_error_set (err, -EPROTO, "tag '%s': 'root': not 64 digits",
                         said);
  if (!bp_json_get_u64 (obj, "size", &tag->size) ||
      tag->size > BP_IMAGE_MAX_SIZE)
    return bp_error_set (err, -EPROTO, "tag '%s': 'size': not a disk's",
                         said);
  snprintf (tag->name, sizeof tag->name, "%s", said);
  return 0;
}

int
bp_tag_decode (const char *text, size_t len, const char *name,
               struct bp_tag *ret_tag, struct bp_error *err)
{
  CLEANUP_JSON struct json_object *obj = NULL;
  struct bp_tag tag = { 0 };
  int r;

  r = len > BP_TAG_MAX_SIZE ? -EPROTO : bp_json_parse (text, len, &obj);
  if (r < 0)
    return bp_error_set (err, r, "tag '%s': not a JSON object of a tag",
                         name ? name : "");
  r = decode_required (obj, name, &tag, err);
  if (r < 0)
    return r;
  copy_string (obj, "created", tag.created, sizeof tag.created);
  copy_string (obj, "source", tag.source, sizeof tag.source);
  copy_count (obj, "segments", &tag.segments);
  copy_count (obj, "bytes", &tag.bytes);
  copy_count (obj, "bytes_new", &tag.bytes_new);
  copy_count (obj, "stored_new", &tag.stored_new);
  *ret_tag = tag;
  return 0;
}
