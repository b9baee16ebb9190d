/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* lib/tag: names, and the JSON of a tag. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/tag.h"

#define ROOT_A \
  "15ec7bf0b50732b49f8228e07d24365338f9e3ab994b00af08e5a3bffe55fd8b"

static struct bp_tag
some_tag (void)
{
  struct bp_tag tag = {
    .name = "debian-12",
    .size = UINT64_C (1) << 40,
    .created = "2026-01-02T03:04:05Z",
    .source = "/var/lib/images/debian 12.img",
    .segments = 7,
    .bytes = 70000,
    .bytes_new = 6000,
    .stored_new = 5000,
  };

  cr_assert_eq (bp_root_parse (ROOT_A, &tag.root), 0);
  return tag;
}

static int
decode (const char *text, const char *name, struct bp_tag *ret_tag)
{
  struct bp_error err;

  return bp_tag_decode (text, strlen (text), name, ret_tag, &err);
}

Test (tag, names_are_what_the_manual_says)
{
  static const char *const good[] = { "a", "9", "A.b_c:d-e", "sessions",
                                      ROOT_A "0", "debian-12.5" };
  static const char *const bad[] = { "", ".a", "-a", "_", "../x", "a/b",
                                     "a b", "session", ROOT_A, "a\n", "é" };
  char longest[130];

  for (size_t i = 0; i < ARRAY_LEN (good); i++)
    cr_assert (bp_is_tag_name (good[i]), "'%s'", good[i]);
  for (size_t i = 0; i < ARRAY_LEN (bad); i++)
    cr_assert (!bp_is_tag_name (bad[i]), "'%s'", bad[i]);
  memset (longest, 'x', 129);
  longest[128] = '\0';
  cr_assert (bp_is_tag_name (longest));
  longest[128] = 'x';
  longest[129] = '\0';
  cr_assert (!bp_is_tag_name (longest));
}

Test (tag, profile_names_may_start_with_a_dot_and_be_roots)
{
  cr_assert (bp_is_profile_name (".boot"));
  cr_assert (bp_is_profile_name (ROOT_A));
  cr_assert (bp_is_profile_name ("session"));
  cr_assert (!bp_is_profile_name ("."));
  cr_assert (!bp_is_profile_name (".."));
  cr_assert (!bp_is_profile_name ("../x"));
  cr_assert (!bp_is_profile_name (""));
}

Test (tag, decodes_what_it_encodes)
{
  const struct bp_tag tag = some_tag ();
  CLEANUP_FREE char *text = NULL;
  struct bp_tag back;

  cr_assert_eq (bp_tag_encode (&tag, &text, NULL), 0);
  cr_assert_eq (decode (text, "debian-12", &back), 0);
  cr_assert_str_eq (back.name, tag.name);
  cr_assert (bp_root_equal (&back.root, &tag.root));
  cr_assert_eq (back.size, tag.size);
  cr_assert_str_eq (back.created, tag.created);
  cr_assert_str_eq (back.source, tag.source);
  cr_assert_eq (back.segments, 7);
  cr_assert_eq (back.bytes, 70000);
  cr_assert_eq (back.bytes_new, 6000);
  cr_assert_eq (back.stored_new, 5000);
}

Test (tag, a_source_that_is_no_text_can_be_read_back)
{
  struct bp_tag tag = some_tag (), back;
  CLEANUP_FREE char *text = NULL;

  strcpy (tag.source, "a\xff\xc0\x80\xed\xa0\x80 \xe2\x82\xac \xf0\x9f\"\n");
  cr_assert_eq (bp_tag_encode (&tag, &text, NULL), 0);
  cr_assert_eq (decode (text, NULL, &back), 0);
  cr_assert_str_eq (back.source, "a?????? \xe2\x82\xac ??\"\n");
}

Test (tag, refuses_what_is_no_tag)
{
  static const char *const bad[] = {
    "",
    "[]",
    "{}",
    "{\"name\":\"x\",\"size\":1}",
    "{\"name\":\"x\",\"root\":\"" ROOT_A "\"}",
    "{\"name\":\"../x\",\"root\":\"" ROOT_A "\",\"size\":1}",
    "{\"name\":\"x\",\"root\":\"" ROOT_A "\",\"size\":-1}",
    "{\"name\":\"x\",\"root\":\"" ROOT_A "\",\"size\":1.5}",
    "{\"name\":\"x\",\"root\":\"" ROOT_A "\",\"size\":4611686018427387905}",
    "{\"name\":\"x\",\"root\":\"" ROOT_A "0\",\"size\":1}",
    "{\"name\":\"x\",\"root\":7,\"size\":1}",
    "{\"name\":\"x\",\"root\":\"" ROOT_A "\",\"size\":1} trailing",
  };
  struct bp_tag tag = { .name = "untouched" };

  for (size_t i = 0; i < ARRAY_LEN (bad); i++)
    cr_assert_eq (decode (bad[i], NULL, &tag), -EPROTO, "'%s'", bad[i]);
  cr_assert_str_eq (tag.name, "untouched");
}

Test (tag, must_say_the_name_it_was_found_under)
{
  const struct bp_tag tag = some_tag ();
  CLEANUP_FREE char *text = NULL;
  struct bp_tag back;

  cr_assert_eq (bp_tag_encode (&tag, &text, NULL), 0);
  cr_assert_eq (decode (text, "debian-13", &back), -EPROTO);
}

Test (tag, every_truncation_is_refused)
{
  const struct bp_tag tag = some_tag ();
  CLEANUP_FREE char *text = NULL;
  struct bp_tag back;

  cr_assert_eq (bp_tag_encode (&tag, &text, NULL), 0);
  for (size_t len = 0; len < strlen (text) - 1; len++)
    cr_assert_eq (bp_tag_decode (text, len, NULL, &back, NULL), -EPROTO,
                  "%zu bytes", len);
}
