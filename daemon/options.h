/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpagerd's command line, parsed once in main and const afterwards. */
#ifndef BP_OPTIONS_H
#define BP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/error.h"
#include "lib/merkle.h"
#include "lib/sha256.h"
#include "daemon/front/policy.h"
#include "daemon/front/tls-config.h"

/* One --listen. */
struct listen_option {
  char *path;  /* unix: path of the socket; NULL for TCP. */
  mode_t mode; /* unix: mode of the socket, default 0600. */
  gid_t gid;   /* unix: group, (gid_t) -1 to leave it. */
  char *host;  /* tcp: host or address. */
  char *port;  /* tcp: port or service. */

  struct client_settings clients; /* Of the options behind it. */
};

/* One --pin=TAG=ROOT: TAG is served only while it names ROOT. */
struct pin_option {
  char *tag;
  struct bp_root root;
};

/* Strings are argv's, but for those of LISTENS and PINS and a default
 * control path, which options_free frees.
 */
struct options {
  const char *store;      /* --store, or NULL. */
  const char *driver_uri; /* --driver, or NULL. */
  struct listen_option *listens;
  size_t nr_listens;
  struct client_settings clients; /* Of the options before the first
                                     --listen: about all listeners. */

  bool ends_with_client;   /* --stdio. */
  bool use_stdio;          /* Its client is at standard input and output,
                              not at a socket from systemd. */
  unsigned nr_systemd_fds; /* Listening sockets from systemd, descriptors
                              3, 4, …; 0 if there are none. */
  struct tls_config tls;
  bool is_insecure;        /* --insecure. */
  const char *control;     /* Path of the control socket; or NULL. */
  bool control_is_default; /* Its directory is made if it is absent. */
  uint64_t cache_bytes;    /* --cache-size. */
  bool profile_auto;       /* --profile=auto. */
  uint64_t replay_rate;    /* Bytes a second; 0: no limit. */
  unsigned driver_timeout; /* Seconds. */
  unsigned drain;          /* Seconds. */
  unsigned max_clients;    /* Connections at a time; 0: as usual. */
  unsigned exit_when_idle; /* Seconds; 0: never. */
  enum bp_sha256_way sha256;
  struct pin_option *pins;
  size_t nr_pins;
  const char *pidfile; /* Or NULL. */
  bool check;
  bool verbose;
};

/* Parse.  Prints one line on standard error and exits 2 for a command line
 * that is wrong; prints and exits 0 for --help, --version and
 * --long-options.
 */
void options_parse (struct options *options, int argc, char *argv[]);
void options_free (struct options *options);

/* Store VALUE (NULL if the option takes none) in OPTIONS.  0, or -EINVAL
 * with ERR's message, or with an empty one: "could not parse 'VALUE'".
 */
typedef int option_setter (struct options *options, const char *value,
                           struct bp_error *err);

/* The rows of the table in options.c, for --long-options and the tests. */
struct option_row {
  const char *name; /* Without its dashes. */
  const char *arg;  /* What its value is called; NULL if it takes none. */
  const char *help; /* One line. */
  option_setter *set;
};

/* Free what LISTEN points to. */
void listen_option_free (struct listen_option *listen);

/* A copy of the LEN bytes at TEXT; ARRAY with room for one more element
 * of SIZE bytes behind COUNT.  They exit if there is no memory.
 */
char *options_copy (const char *text, size_t len);
void *options_grow (void *array, size_t count, size_t size);

/* The setters: in option-listeners.c those whose
 * place among the --listen counts, in option-values.c the rest.
 */
option_setter set_listen;
option_setter set_allow_export;
option_setter set_allow;
option_setter set_tls;

option_setter set_stdio;
option_setter set_store;
option_setter set_driver;
option_setter set_tls_certificates;
option_setter set_tls_psk;
option_setter set_tls_verify_peer;
option_setter set_insecure;
option_setter set_control;
option_setter set_cache_size;
option_setter set_profile;
option_setter set_replay_rate;
option_setter set_driver_timeout;
option_setter set_drain;
option_setter set_exit_when_idle;
option_setter set_max_clients;
option_setter set_sha256;
option_setter set_pin;
option_setter set_pidfile;
option_setter set_check;
option_setter set_verbose;

/* Of OPTIONS that are complete: may plain text go to this driver? */
int check_driver (const struct options *options, struct bp_error *err);

#endif /* BP_OPTIONS_H */
