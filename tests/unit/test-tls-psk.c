/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* daemon/front/tls-psk: what psktool writes is read, and what is wrong is
 * named with its line.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/front/tls-psk.h"
#include "lib/base/range.h"

#define KEY "00112233445566778899aabbccddeeff"

/* psk_table_load of a file that holds TEXT. */
static int
load (struct psk_table **ret_table, const char *text, struct bp_error *err)
{
  char path[] = "/tmp/bp-psk.XXXXXX";
  const int fd = mkstemp (path);
  int r;

  cr_assert (fd >= 0);
  cr_assert_eq (write (fd, text, strlen (text)), (ssize_t) strlen (text));
  close (fd);
  r = psk_table_load (ret_table, path, err);
  unlink (path);
  return r;
}

static struct psk_table *
table_of (const char *text)
{
  struct psk_table *table;
  struct bp_error err;

  cr_assert_eq (load (&table, text, &err), 0, "%s", err.msg);
  return table;
}

static void
assert_key (const struct psk_table *table, const char *user,
            const void *wanted, size_t wanted_len)
{
  size_t len = 0;
  const uint8_t *key = psk_table_find (table, user, &len);

  cr_assert_not_null (key, "'%s' has no key", user);
  cr_assert_eq (len, wanted_len, "'%s': %zu bytes", user, len);
  cr_assert (memcmp (key, wanted, len) == 0, "'%s': another key", user);
}

#define KEY_BYTES                    \
  "\x00\x11\x22\x33\x44\x55\x66\x77" \
  "\x88\x99\xaa\xbb\xcc\xdd\xee\xff"

Test (tls_psk, finds_the_key_of_each_user_and_of_nobody_else)
{
  struct psk_table *table = table_of ("zoe:" KEY "\n"
                                      "alice:" KEY "ABcd\r\n"
                                      "\n"
                                      "Bob Smith:" KEY "\n"
                                      "#c3bc3a:" KEY "00");
  size_t len;

  assert_key (table, "zoe", KEY_BYTES, 16);
  assert_key (table, "alice", KEY_BYTES "\xab\xcd", 18);
  assert_key (table, "Bob Smith", KEY_BYTES, 16);
  assert_key (table, "\xc3\xbc:", KEY_BYTES "\0", 17);
  cr_assert_null (psk_table_find (table, "", &len));
  cr_assert_null (psk_table_find (table, "ali", &len));
  cr_assert_null (psk_table_find (table, "alice2", &len));
  cr_assert_null (psk_table_find (table, "#c3bc3a", &len));
  psk_table_free (table);
}

Test (tls_psk, names_the_line_that_is_wrong)
{
  static const struct {
    const char *text, *wanted;
  } cases[] = {
    { "a:" KEY "\nb\n", "line 2: not USER:KEY" },
    { "\n\n:" KEY "\n", "line 3: the user is empty" },
    { "#6g:" KEY "\n", "line 1: the user is not hexadecimal" },
    { "#00:" KEY "\n", "line 1: the user holds a zero byte" },
    { "#:" KEY "\n", "line 1: the user is too short" },
    { "a:" KEY "0\n", "line 1: the key is not hexadecimal" },
    { "a:xy" KEY "\n", "line 1: the key is not hexadecimal" },
    { "a: " KEY " \n", "line 1: the key is not hexadecimal" },
    { "a:00112233445566778899aabbccddee\n",
      "line 1: the key is too short" },
    { "a:\n", "line 1: the key is too short" },
    { "b:" KEY "\na:" KEY "\nb:" KEY "00\n",
      "lines 1 and 3: the same user" },
    { "a:" KEY "\n#61:" KEY "\n", "lines 1 and 2: the same user" },
    { "", "holds no key" },
    { "\n\r\n", "holds no key" },
  };

  for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
    struct psk_table *table;
    struct bp_error err = { 0 };
    const char *got;

    cr_assert_eq (load (&table, cases[i].text, &err), -EPROTO, "case %zu",
                  i);
    got = strstr (err.msg, ": ");
    cr_assert_not_null (got, "case %zu: %s", i, err.msg);
    cr_assert_str_eq (got + 2, cases[i].wanted, "case %zu: %s", i, got);
  }
}

Test (tls_psk, takes_keys_of_256_bytes_and_users_of_128)
{
  char text[1024], user[PSK_MAX_USER + 2];
  const struct {
    int user_len, key_len, wanted;
  } cases[] = {
    { PSK_MAX_USER, PSK_MAX_KEY, 0 },
    { PSK_MAX_USER + 1, PSK_MAX_KEY, -EPROTO },
    { PSK_MAX_USER, PSK_MAX_KEY + 1, -EPROTO },
  };
  struct psk_table *table = NULL;
  struct bp_error err;
  size_t len;

  for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
    memset (user, 'u', sizeof user);
    user[cases[i].user_len] = '\0';
    snprintf (text, sizeof text, "%s:%0*d", user, 2 * cases[i].key_len, 0);
    cr_assert_eq (load (&table, text, &err), cases[i].wanted);
    if (cases[i].wanted == 0) {
      cr_assert_not_null (psk_table_find (table, user, &len));
      cr_assert_eq (len, PSK_MAX_KEY);
      psk_table_free (table);
    }
  }
}

Test (tls_psk, says_what_cannot_be_read)
{
  struct psk_table *table;
  struct bp_error err;

  cr_assert_eq (psk_table_load (&table, "/nonexistent/psk", &err), -ENOENT);
  cr_assert_str_eq (err.msg, "/nonexistent/psk: No such file or directory");
  cr_assert_eq (psk_table_load (&table, "/dev/null", &err), -EINVAL);
  cr_assert_str_eq (err.msg, "/dev/null: not a regular file");
}
