/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* lib/base: numbers, hexadecimal, ranges, bounded JSON. */
#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <criterion/criterion.h>

#include "lib/base/hex.h"
#include "lib/base/json.h"
#include "lib/base/range.h"
#include "lib/base/size.h"
#include "lib/error.h"

Test (base, size_takes_units_of_1024)
{
  uint64_t bytes;

  cr_assert_eq (bp_size_parse ("256M", &bytes), 0);
  cr_assert_eq (bytes, UINT64_C (256) << 20);
  cr_assert_eq (bp_size_parse ("4096", &bytes), 0);
  cr_assert_eq (bytes, 4096);
  cr_assert_eq (bp_size_parse ("1T", &bytes), 0);
  cr_assert_eq (bytes, UINT64_C (1) << 40);
}

Test (base, size_refuses_what_is_no_size)
{
  static const char *const bad[] = { "", "M", "12Q", "1MM", "-1", " 1",
                                     "9223372036854775808",
                                     "99999999999T", "1.5M" };
  uint64_t bytes;

  for (size_t i = 0; i < ARRAY_LEN (bad); i++)
    cr_assert_eq (bp_size_parse (bad[i], &bytes), -EINVAL, "'%s'", bad[i]);
}

Test (base, hex_round_trips_and_refuses_upper_case_and_wrong_lengths)
{
  static const uint8_t bytes[] = { 0x00, 0xab, 0xff };
  uint8_t back[3];
  char hex[7];

  bp_hex_encode (bytes, sizeof bytes, hex);
  cr_assert_str_eq (hex, "00abff");
  cr_assert (bp_hex_decode (hex, back, sizeof back));
  cr_assert_eq (memcmp (back, bytes, sizeof bytes), 0);
  cr_assert (!bp_hex_decode ("00ABFF", back, sizeof back));
  cr_assert (!bp_hex_decode ("00abf", back, sizeof back));
  cr_assert (!bp_hex_decode ("00abff0", back, sizeof back));
}

Test (base, range_check_cannot_wrap)
{
  cr_assert (range_is_within (10, 10, 0));
  cr_assert (range_is_within (10, 0, 10));
  cr_assert (!range_is_within (10, 1, 10));
  cr_assert (!range_is_within (10, UINT64_MAX, 2));
  cr_assert (!range_is_within (10, 2, UINT64_MAX));
}

Test (base, json_takes_one_object_and_nothing_else)
{
  static const char *const bad[] = { "", "1", "[]", "{", "{} x", "{}{}",
                                     "nul" };
  struct json_object *obj = NULL;

  for (size_t i = 0; i < ARRAY_LEN (bad); i++)
    cr_assert_eq (bp_json_parse (bad[i], strlen (bad[i]), &obj), -EPROTO,
                  "'%s'", bad[i]);
  cr_assert_eq (bp_json_parse ("{\"a\":1}\n", 8, &obj), 0);
  json_object_put (obj);
}

Test (base, json_is_bounded_in_depth)
{
  static const char deep[] = "{\"a\":[[[[[[[[[[[[1]]]]]]]]]]]]}";
  struct json_object *obj = NULL;

  cr_assert_eq (bp_json_parse (deep, strlen (deep), &obj), -EPROTO);
}

Test (base, error_wrap_puts_the_object_first)
{
  struct bp_error err;

  cr_assert_eq (bp_error_set (&err, -ENOENT, "open: %m"), -ENOENT);
  cr_assert_eq (bp_error_wrap (&err, -ENOENT, "tag '%s'", "x"), -ENOENT);
  cr_assert_str_eq (err.msg, "tag 'x': open: No such file or directory");
}
