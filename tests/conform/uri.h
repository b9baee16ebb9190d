/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* NBD URIs, as uri.md of the standard writes them:
 *
 *   nbd://HOST[:PORT][/EXPORT]            nbd+unix:///[EXPORT]?socket=PATH
 *   nbds://…                              nbds+unix:///…
 */
#ifndef BP_CONFORM_URI_H
#define BP_CONFORM_URI_H

#include <stdbool.h>
#include <stddef.h>

enum {
  URI_MAX = 8192, /* Bytes of a URI, and so of each of its parts. */
};

/* Parts are decoded, and end with a NUL. */
struct uri {
  bool is_tls;
  bool is_unix;
  char user[URI_MAX]; /* For a pre-shared key; may be empty. */
  char host[URI_MAX]; /* Without the brackets of an IPv6 address. */
  char port[8];
  char socket[URI_MAX];
  char export[URI_MAX];
  size_t export_len;
  char certificates[URI_MAX]; /* tls-certificates, or empty. */
  char psk_file[URI_MAX];     /* tls-psk-file, or empty. */
};

/* Returns 0, or -EINVAL with *RET_WHY saying what is wrong with TEXT. */
int uri_parse (struct uri *uri, const char *text, const char **ret_why);

#endif /* BP_CONFORM_URI_H */
