/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The values of options, but for those about listeners.
 *
 * Threads: main only, before any other starts.
 */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/log.h"
#include "daemon/options.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/base/size.h"
#include "lib/tag.h"

#define MIN_CACHE_BYTES (UINT64_C (64) << 20)

enum {
  MAX_SECONDS = 24 * 60 * 60,
  MAX_CLIENTS = 1000000,
  MAX_PINS = 4096,
};

char *
options_copy (const char *text, size_t len)
{
  char *copy = strndup (text, len);

  if (copy == NULL)
    fatal ("out of memory");
  return copy;
}

void *
options_grow (void *array, size_t count, size_t size)
{
  void *grown = reallocarray (array, count + 1, size);

  if (grown == NULL)
    fatal ("out of memory");
  return grown;
}

int
set_store (struct options *options, const char *value, struct bp_error *err)
{
  (void) err;
  options->store = value;
  return *value == '\0' ? -EINVAL : 0;
}

int
set_control (struct options *options, const char *value,
             struct bp_error *err)
{
  (void) err;
  options->control = value;
  return *value == '\0' ? -EINVAL : 0;
}

int
set_pidfile (struct options *options, const char *value,
             struct bp_error *err)
{
  (void) err;
  options->pidfile = value;
  return *value == '\0' ? -EINVAL : 0;
}

int
set_cache_size (struct options *options, const char *value,
                struct bp_error *err)
{
  const int r = bp_size_parse (value, &options->cache_bytes);

  if (r == 0 && options->cache_bytes < MIN_CACHE_BYTES)
    return bp_error_set (err, -EINVAL, "'%s' is less than 64M", value);
  return r;
}

int
set_profile (struct options *options, const char *value,
             struct bp_error *err)
{
  options->profile_auto = strcmp (value, "auto") == 0;
  if (!options->profile_auto && strcmp (value, "off") != 0)
    return bp_error_set (err, -EINVAL, "'%.80s' is neither auto nor off",
                         value);
  return 0;
}

int
set_replay_rate (struct options *options, const char *value,
                 struct bp_error *err)
{
  (void) err;
  return bp_size_parse (value, &options->replay_rate);
}

/* A whole number of seconds, at least MIN and at most a day. */
static int
parse_seconds (const char *text, uint64_t min, unsigned *ret_seconds)
{
  uint64_t seconds;

  if (bp_number_parse (text, min, MAX_SECONDS, &seconds) < 0)
    return -EINVAL;
  *ret_seconds = (unsigned) seconds;
  return 0;
}

int
set_driver_timeout (struct options *options, const char *value,
                    struct bp_error *err)
{
  (void) err;
  return parse_seconds (value, 1, &options->driver_timeout);
}

int
set_drain (struct options *options, const char *value, struct bp_error *err)
{
  (void) err;
  return parse_seconds (value, 0, &options->drain);
}

int
set_sha256 (struct options *options, const char *value,
            struct bp_error *err)
{
  if (strcmp (value, "auto") == 0)
    options->sha256 = BP_SHA256_AUTO;
  else if (strcmp (value, "openssl") == 0)
    options->sha256 = BP_SHA256_OPENSSL;
  else
    return bp_error_set (err, -EINVAL, "'%.80s' is neither auto nor openssl",
                         value);
  return 0;
}

int
set_tls_certificates (struct options *options, const char *value,
                      struct bp_error *err)
{
  (void) err;
  options->tls.certificates = value;
  return *value == '\0' ? -EINVAL : 0;
}

int
set_tls_psk (struct options *options, const char *value,
             struct bp_error *err)
{
  (void) err;
  options->tls.psk = value;
  return *value == '\0' ? -EINVAL : 0;
}

int
set_tls_verify_peer (struct options *options, const char *value,
                     struct bp_error *err)
{
  (void) value;
  (void) err;
  options->tls.verify_peer = true;
  return 0;
}

int
set_insecure (struct options *options, const char *value,
              struct bp_error *err)
{
  (void) value;
  (void) err;
  options->is_insecure = true;
  return 0;
}

int
set_stdio (struct options *options, const char *value, struct bp_error *err)
{
  (void) value;
  (void) err;
  options->ends_with_client = true;
  return 0;
}

int
set_check (struct options *options, const char *value, struct bp_error *err)
{
  (void) value;
  (void) err;
  options->check = true;
  return 0;
}

int
set_verbose (struct options *options, const char *value,
             struct bp_error *err)
{
  (void) value;
  (void) err;
  options->verbose = true;
  return 0;
}

int
set_exit_when_idle (struct options *options, const char *value,
                    struct bp_error *err)
{
  (void) err;
  return parse_seconds (value, 1, &options->exit_when_idle);
}

int
set_max_clients (struct options *options, const char *value,
                 struct bp_error *err)
{
  uint64_t count;

  (void) err;
  if (bp_number_parse (value, 1, MAX_CLIENTS, &count) < 0)
    return -EINVAL;
  options->max_clients = (unsigned) count;
  return 0;
}

/* SCHEME://AUTHORITY/EXPORT?QUERY of an NBD URI, where EXPORT may be
 * absent.  The daemon asks for the export itself, so one that the user
 * wrote can only be a mistake, such as the name of an image.
 */
int
set_driver (struct options *options, const char *value, struct bp_error *err)
{
  static const char *const schemes[] = { "nbd", "nbds", "nbd+unix",
                                         "nbds+unix", "nbd+vsock",
                                         "nbds+vsock" };
  const char *authority = strstr (value, "://");
  const char *export;
  size_t i, len;

  if (authority == NULL)
    return -EINVAL;
  len = (size_t) (authority - value);
  for (i = 0; i < ARRAY_LEN (schemes); i++)
    if (strlen (schemes[i]) == len && memcmp (schemes[i], value, len) == 0)
      break;
  if (i == ARRAY_LEN (schemes))
    return bp_error_set (err, -EINVAL, "'%s' is no NBD URI", value);

  export = authority + 3 + strcspn (authority + 3, "/?#");
  if (*export == '/')
    export ++;
  len = strcspn (export, "?#");
  if (len != 0 && (len != 7 || memcmp (export, "session", 7) != 0))
    return bp_error_set (err, -EINVAL,
                         "export '%.*s': the name must be empty or 'session'",
                         (int) MIN (len, 80), export);
  options->driver_uri = value;
  return 0;
}

/* The host of the authority of an NBD URI, [USER@]HOST[:PORT], cut to what
 * fits.
 */
static void
copy_host (const char *authority, char *host, size_t len)
{
  const char *end = authority + strcspn (authority, "/?#");
  const char *at = memrchr (authority, '@', (size_t) (end - authority));
  const char *start = at ? at + 1 : authority;
  size_t n;

  if (*start == '[')
    n = strcspn (++start, "]/?#");
  else
    n = strcspn (start, ":/?#");
  snprintf (host, len, "%.*s", (int) MIN (n, len), start);
}

/* Names are not looked up, since they may mean another host tomorrow. */
static bool
is_this_host (const char *host)
{
  struct in6_addr in6;
  struct in_addr in4;

  if (inet_pton (AF_INET, host, &in4) == 1)
    return ntohl (in4.s_addr) >> 24 == IN_LOOPBACKNET;
  if (inet_pton (AF_INET6, host, &in6) == 1)
    return IN6_IS_ADDR_LOOPBACK (&in6);
  return *host == '\0' || strcasecmp (host, "localhost") == 0;
}

int
check_driver (const struct options *options, struct bp_error *err)
{
  const char *uri = options->driver_uri;
  char host[256];

  if (uri == NULL || options->is_insecure || strncmp (uri, "nbd://", 6) != 0)
    return 0;
  copy_host (uri + 6, host, sizeof host);
  if (is_this_host (host))
    return 0;
  return bp_error_set (err, -EINVAL,
                       "'%.80s' is another host: use nbds:// for TLS, or "
                       "--insecure for plain text",
                       host);
}

/* TAG=ROOT */
int
set_pin (struct options *options, const char *value, struct bp_error *err)
{
  const char *equals = strchr (value, '=');
  CLEANUP_FREE char *tag = NULL;
  struct pin_option pin;

  if (equals == NULL || bp_root_parse (equals + 1, &pin.root) < 0)
    return -EINVAL;
  tag = options_copy (value, (size_t) (equals - value));
  if (!bp_is_tag_name (tag))
    return bp_error_set (err, -EINVAL, "'%.140s' is no tag", tag);
  for (size_t i = 0; i < options->nr_pins; i++)
    if (strcmp (options->pins[i].tag, tag) == 0)
      return bp_error_set (err, -EINVAL, "'%s' is pinned twice", tag);
  if (options->nr_pins == MAX_PINS)
    return bp_error_set (err, -EINVAL, "given more than %d times",
                         (int) MAX_PINS);

  pin.tag = steal_ptr (&tag);
  options->pins = options_grow (options->pins, options->nr_pins,
                                sizeof *options->pins);
  options->pins[options->nr_pins++] = pin;
  return 0;
}
