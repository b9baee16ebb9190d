/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the clients of a listener may do.
 *
 *   options ─▶ client_settings ─▶ client_policy ─▶ conn->policy
 *              what was said,     what holds, for
 *              per listener       one listener
 *
 * A policy is made when its listener is opened and const from then on; it
 * is copied freely, since what it points to belongs to the options, which
 * outlive everything.  Threads: any.
 */
#ifndef BP_POLICY_H
#define BP_POLICY_H

#include <stdbool.h>
#include <stddef.h>

enum tls_mode {
  TLS_UNSAID, /* No option says. */
  TLS_OFF,    /* STARTTLS is refused. */
  TLS_ON,     /* The client decides. */
  TLS_REQUIRE /* Nothing but STARTTLS is answered before it. */
};

struct client_policy {
  enum tls_mode tls;
  const char *const *export_globs; /* Borrowed from the options. */
  size_t nr_export_globs;          /* 0: every export. */
  bool may_list;                   /* NBD_OPT_LIST. */
  bool may_open_blobs;             /* Exports blob/ROOT. */
  bool may_see_residency;          /* Context blobpager:residency. */
  bool input_may_end;              /* Before the replies have been taken. */
};

/* What the options say about a listener, so far as they do. */
struct client_settings {
  enum tls_mode tls;
  const char **export_globs; /* Owned array of argv's strings. */
  size_t nr_export_globs;
  bool has_allow; /* The rest was said, with --allow. */
  bool may_list;
  bool may_open_blobs;
  bool may_see_residency;
};

/* Where the clients of a listener come from; the worst is the last. */
enum listener_reach {
  REACH_UNIX,     /* Whoever may open the socket. */
  REACH_LOOPBACK, /* Whoever is on this host. */
  REACH_NETWORK,
};

/* OWN is about the listener and goes before DEFAULTS, which is about all;
 * what neither says depends on the listener's REACH: a Unix socket has
 * permissions of its own, so its clients may do everything.
 */
struct client_policy
client_policy_resolve (const struct client_settings *own,
                       const struct client_settings *defaults,
                       enum listener_reach reach);

/* What is done on a listener of REACH if no option says: plain text does
 * not go over the network unless the operator IS_INSECURE, and with
 * credentials not even then.
 */
enum tls_mode tls_mode_default (enum listener_reach reach,
                                bool has_credentials, bool is_insecure);

/* May a client open the export NAME?  The empty name is not decided here
 * but by the tag that it stands for.
 *
 * A glob without '@' is about tags (and blob/ROOT) only, since TAG@ROOT
 * and ROOT name any image: a ROOT matches as it is, or as "@ROOT".
 */
bool policy_allows_export (const struct client_policy *policy,
                           const char *name);

/* May a client not learn which exports there are? */
bool policy_hides_exports (const struct client_policy *policy);

#endif /* BP_POLICY_H */
