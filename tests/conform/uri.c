/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Taking an NBD URI apart. */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "conform/uri.h"
#include "lib/base/range.h"
#include "lib/base/size.h"

#define DEFAULT_PORT "10809"

/* Returns -1 if C is none. */
static int
hex_digit (char c)
{
  if (!isxdigit ((unsigned char) c))
    return -1;
  return isdigit ((unsigned char) c) ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* Decode LEN bytes of TEXT into OUT (URI_MAX bytes).  No part may hold a
 * NUL.  Returns the decoded length or -EINVAL.
 */
static int
decode (const char *text, size_t len, char *out)
{
  size_t n = 0;

  for (size_t i = 0; i < len; i++) {
    int c = (unsigned char) text[i];

    if (c == '%') {
      const int high = i + 2 < len ? hex_digit (text[i + 1]) : -1;
      const int low = i + 2 < len ? hex_digit (text[i + 2]) : -1;

      if (high < 0 || low < 0)
        return -EINVAL;
      c = high << 4 | low;
      i += 2;
    }
    if (c == '\0' || n == URI_MAX - 1)
      return -EINVAL;
    out[n++] = (char) c;
  }
  out[n] = '\0';
  return (int) n;
}

/* The scheme of TEXT; returns what follows "://", or NULL. */
static const char *
parse_scheme (struct uri *uri, const char *text)
{
  static const struct {
    const char *scheme;
    bool is_tls, is_unix;
  } schemes[] = {
    { "nbd://", false, false },
    { "nbds://", true, false },
    { "nbd+unix://", false, true },
    { "nbds+unix://", true, true },
  };

  for (size_t i = 0; i < ARRAY_LEN (schemes); i++) {
    const size_t len = strlen (schemes[i].scheme);

    if (strncasecmp (text, schemes[i].scheme, len) == 0) {
      uri->is_tls = schemes[i].is_tls;
      uri->is_unix = schemes[i].is_unix;
      return text + len;
    }
  }
  return NULL;
}

/* [USER@]HOST[:PORT], LEN bytes. */
static int
parse_authority (struct uri *uri, const char *text, size_t len)
{
  const char *at = memchr (text, '@', len);
  const char *end = text + len, *host_end, *port = NULL;
  uint64_t number;

  if (at) {
    if (decode (text, (size_t) (at - text), uri->user) < 0)
      return -EINVAL;
    text = at + 1;
  }
  if (text < end && *text == '[') {
    host_end = memchr (text, ']', (size_t) (end - text));
    if (host_end == NULL || (host_end + 1 < end && host_end[1] != ':'))
      return -EINVAL;
    text++;
    port = host_end + 1 < end ? host_end + 2 : NULL;
  }
  else {
    host_end = memchr (text, ':', (size_t) (end - text));
    port = host_end ? host_end + 1 : NULL;
    host_end = host_end ? host_end : end;
  }
  if (decode (text, (size_t) (host_end - text), uri->host) < 0)
    return -EINVAL;
  strcpy (uri->port, DEFAULT_PORT);
  if (port && port < end) {
    if ((size_t) (end - port) >= sizeof uri->port)
      return -EINVAL;
    memcpy (uri->port, port, (size_t) (end - port));
    uri->port[end - port] = '\0';
    return bp_number_parse (uri->port, 1, UINT16_MAX, &number);
  }
  return 0;
}

/* One KEY=VALUE of LEN bytes. */
static int
parse_parameter (struct uri *uri, const char *text, size_t len,
                 const char **ret_why)
{
  static const char *const ignored[] = { "tls-hostname", "tls-type",
                                         "tls-verify-peer" };
  const struct {
    const char *key;
    char *value;
  } known[] = {
    { "socket", uri->socket },
    { "tls-certificates", uri->certificates },
    { "tls-psk-file", uri->psk_file },
  };
  const char *equals = memchr (text, '=', len);
  const size_t key_len = equals ? (size_t) (equals - text) : len;

  *ret_why = "a parameter that is not known";
  for (size_t i = 0; i < ARRAY_LEN (known); i++)
    if (equals && strlen (known[i].key) == key_len &&
        memcmp (known[i].key, text, key_len) == 0) {
      *ret_why = "the value of a parameter is not well-formed";
      return decode (equals + 1, len - key_len - 1, known[i].value);
    }
  for (size_t i = 0; i < ARRAY_LEN (ignored); i++)
    if (strlen (ignored[i]) == key_len &&
        memcmp (ignored[i], text, key_len) == 0)
      return 0;
  return -EINVAL;
}

static int
parse_parameters (struct uri *uri, const char *text, const char **ret_why)
{
  while (*text) {
    const size_t len = strcspn (text, "&;");

    if (len > 0 && parse_parameter (uri, text, len, ret_why) < 0)
      return -EINVAL;
    text += len + (text[len] != '\0');
  }
  return 0;
}

int
uri_parse (struct uri *uri, const char *text, const char **ret_why)
{
  size_t len;
  int export_len;

  *uri = (struct uri){ 0 };
  *ret_why = "too long";
  if (strlen (text) >= URI_MAX)
    return -EINVAL;
  *ret_why = "it does not begin with nbd://, nbds://, nbd+unix:// or "
             "nbds+unix://";
  text = parse_scheme (uri, text);
  if (text == NULL)
    return -EINVAL;

  *ret_why = "no HOST[:PORT]";
  len = strcspn (text, "/?");
  if (parse_authority (uri, text, len) < 0 ||
      (!uri->is_unix && uri->host[0] == '\0'))
    return -EINVAL;
  text += len + (text[len] == '/');

  *ret_why = "the name of the export is not well-formed";
  len = strcspn (text, "?");
  export_len = decode (text, len, uri->export);
  if (export_len < 0)
    return -EINVAL;
  uri->export_len = (size_t) export_len;
  text += len + (text[len] == '?');

  if (parse_parameters (uri, text, ret_why) < 0)
    return -EINVAL;
  *ret_why = "no socket=PATH";
  return uri->is_unix && uri->socket[0] == '\0' ? -EINVAL : 0;
}
