/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What "blobpager profile" can do.  Each prints its result and returns 0
 * or a negative errno.
 */
#ifndef BP_PROFILE_ACTIONS_H
#define BP_PROFILE_ACTIONS_H

#include <stdbool.h>

#include "lib/error.h"

/* The command line; strings are borrowed, NULL if they were not given. */
struct profile_args {
  const char *name;
  const char *control_path;
  const char *store_path;
  const char *export_tag;
  const char *mode;
  unsigned for_s;   /* Seconds; 0: not given. */
  unsigned quiet_s; /* The same. */
  bool attach;
  bool until_exit;
  bool foreground;
  bool json;
};

/* profile-recordings.c: of the running daemon. */
int profile_start (const struct profile_args *args, struct bp_error *err);
int profile_stop (const struct profile_args *args, struct bp_error *err);
int profile_abort (const struct profile_args *args, struct bp_error *err);

/* profile-stored.c: in the daemon's store, or in that of store_path. */
int profile_list (const struct profile_args *args, struct bp_error *err);
int profile_show (const struct profile_args *args, struct bp_error *err);
int profile_delete (const struct profile_args *args, struct bp_error *err);

#endif /* BP_PROFILE_ACTIONS_H */
