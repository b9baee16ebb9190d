/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The table of pre-shared keys.
 *
 * The file is read into one block of memory and taken apart there: names
 * and keys stay where they are, the keys decoded in place.  So there is
 * one copy of each key, which is wiped with the block.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/crypto.h>

#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/range.h"
#include "daemon/front/tls-psk.h"

enum {
  MAX_FILE = 4 << 20 /* Bytes: 50,000 users. */
};

struct psk_entry {
  const char *user;
  const uint8_t *key;
  size_t key_len;
  size_t line; /* Where it stands, from 1. */
};

struct psk_table {
  struct psk_entry *entries; /* Sorted by user. */
  size_t count;
  char *text; /* That they point into. */
  size_t text_len;
};

void
psk_table_free (struct psk_table *table)
{
  if (table == NULL)
    return;
  if (table->text)
    OPENSSL_cleanse (table->text, table->text_len);
  free (table->text);
  free (table->entries);
  free (table);
}

static int
compare_users (const void *a, const void *b)
{
  const struct psk_entry *left = a, *right = b;

  return strcmp (left->user, right->user);
}

const uint8_t *
psk_table_find (const struct psk_table *table, const char *user,
                size_t *ret_len)
{
  const struct psk_entry wanted = { .user = user };
  const struct psk_entry *entry =
    bsearch (&wanted, table->entries, table->count, sizeof wanted,
             compare_users);

  if (entry == NULL)
    return NULL;
  *ret_len = entry->key_len;
  return entry->key;
}

/* Read the file into TABLE->text, with a NUL behind it. */
static int
read_text (struct psk_table *table, const char *path, struct bp_error *err)
{
  CLEANUP_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  int r;

  if (fd == -1 || fstat (fd, &st) == -1)
    return bp_error_set (err, -errno, "%s: %m", path);
  if (!S_ISREG (st.st_mode))
    return bp_error_set (err, -EINVAL, "%s: not a regular file", path);
  if (st.st_size > MAX_FILE)
    return bp_error_set (err, -ERANGE, "%s: larger than 4M", path);
  table->text_len = (size_t) st.st_size;
  table->text = calloc (1, table->text_len + 1);
  if (table->text == NULL)
    return bp_error_set (err, -ENOMEM, "%s: out of memory", path);
  r = bp_pread_exact (fd, table->text, table->text_len, 0);
  if (r < 0)
    return bp_error_set (err, r, "%s: read: %m", path);
  if (strlen (table->text) != table->text_len)
    return bp_error_set (err, -EPROTO, "%s: holds a zero byte", path);
  return 0;
}

/* Decode the digits of TEXT where they are, MIN to MAX bytes.  Returns
 * what is wrong, or NULL.
 */
static const char *
decode_hex (char *text, size_t min, size_t max, size_t *ret_len)
{
  const size_t digits = strlen (text);

  if (digits % 2 != 0 ||
      digits != strspn (text, "0123456789abcdefABCDEF"))
    return "is not hexadecimal";
  if (digits < 2 * min)
    return "is too short";
  if (digits > 2 * max)
    return "is too long";
  /* It reads two digits before it writes the byte they make. */
  if (OPENSSL_hexstr2buf_ex ((unsigned char *) text, digits / 2, ret_len,
                             text, '\0') != 1)
    return "is not hexadecimal";
  text[digits / 2] = '\0';
  return NULL;
}

static const char *
parse_user (char *user)
{
  const char *wrong;
  size_t len = strlen (user);

  if (*user == '#') {
    wrong = decode_hex (user + 1, 1, PSK_MAX_USER, &len);
    if (wrong)
      return wrong;
    memmove (user, user + 1, len + 1);
  }
  if (len == 0)
    return "is empty";
  if (len > PSK_MAX_USER)
    return "is too long";
  return strlen (user) == len ? NULL : "holds a zero byte";
}

/* USER:KEY */
static int
parse_line (struct psk_entry *entry, char *line, const char *path,
            struct bp_error *err)
{
  char *key = strchr (line, ':');
  const char *wrong;

  if (key == NULL)
    return bp_error_set (err, -EPROTO, "%s: line %zu: not USER:KEY", path,
                         entry->line);
  *key++ = '\0';
  wrong = parse_user (line);
  if (wrong)
    return bp_error_set (err, -EPROTO, "%s: line %zu: the user %s", path,
                         entry->line, wrong);
  wrong = decode_hex (key, PSK_MIN_KEY, PSK_MAX_KEY, &entry->key_len);
  if (wrong)
    return bp_error_set (err, -EPROTO, "%s: line %zu: the key %s", path,
                         entry->line, wrong);
  entry->user = line;
  entry->key = (const uint8_t *) key;
  return 0;
}

static int
parse_text (struct psk_table *table, const char *path, struct bp_error *err)
{
  char *rest = table->text, *line;
  size_t number = 0;
  int r;

  while ((line = strsep (&rest, "\n")) != NULL) {
    struct psk_entry *entry = &table->entries[table->count];

    number++;
    line[strcspn (line, "\r")] = '\0';
    if (*line == '\0')
      continue;
    *entry = (struct psk_entry){ .line = number };
    r = parse_line (entry, line, path, err);
    if (r < 0)
      return r;
    table->count++;
  }
  if (table->count == 0)
    return bp_error_set (err, -EPROTO, "%s: holds no key", path);
  return 0;
}

/* Sort, and see that no user has two keys. */
static int
sort_entries (struct psk_table *table, const char *path,
              struct bp_error *err)
{
  size_t i;

  qsort (table->entries, table->count, sizeof *table->entries,
         compare_users);
  for (i = 1; i < table->count; i++)
    if (compare_users (&table->entries[i - 1], &table->entries[i]) == 0)
      return bp_error_set (err, -EPROTO,
                           "%s: lines %zu and %zu: the same user", path,
                           MIN (table->entries[i - 1].line,
                                table->entries[i].line),
                           MAX (table->entries[i - 1].line,
                                table->entries[i].line));
  return 0;
}

static int
load (struct psk_table *table, const char *path, struct bp_error *err)
{
  size_t lines = 1;
  const char *p;
  int r;

  r = read_text (table, path, err);
  if (r < 0)
    return r;
  for (p = table->text; *p != '\0'; p++)
    lines += *p == '\n';
  table->entries = calloc (lines, sizeof *table->entries);
  if (table->entries == NULL)
    return bp_error_set (err, -ENOMEM, "%s: out of memory", path);
  r = parse_text (table, path, err);
  return r < 0 ? r : sort_entries (table, path, err);
}

int
psk_table_load (struct psk_table **ret_table, const char *path,
                struct bp_error *err)
{
  struct psk_table *table = calloc (1, sizeof *table);
  int r;

  if (table == NULL)
    return bp_error_set (err, -ENOMEM, "%s: out of memory", path);
  r = load (table, path, err);
  if (r < 0) {
    psk_table_free (table);
    return r;
  }
  *ret_table = table;
  return 0;
}
