/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Profiles at work: recordings, replays, and the automatic mode, by the
 * rules of blobpager-profile(5).
 *
 * One thread does everything that waits for the driver; replays have a
 * thread each.  Functions that say they block must not be called from an
 * event loop or a lane.
 */
#ifndef BP_PROFILE_MANAGER_H
#define BP_PROFILE_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/merkle.h"
#include "lib/tag.h"

struct profiles;
struct pager;
struct driver;
struct options;

/* Attach to PAGER and DRIVER as their observer.  All borrowed. */
int profiles_new (struct profiles **ret_profiles,
                  const struct options *options, struct pager *pager,
                  struct driver *driver, struct bp_error *err);

/* Shutdown begins: every recording is aborted, every replay ends without
 * being waited for, and whoever waits in a function here gets -ESHUTDOWN.
 */
void profiles_shut_down (struct profiles *profiles);

/* Nobody is inside a function of this header any more, the exports have no
 * clients, and the driver has been shut down.
 */
void profiles_free (struct profiles *profiles);

enum profile_mode {
  PROFILE_RECORD_AND_REPLAY,
  PROFILE_REPLAY_XOR_RECORD,
};

struct profile_start {
  char name[BP_NAME_SIZE];       /* "" with attach. */
  bool attach;                   /* Needs export; named by its image root. */
  char export_tag[BP_NAME_SIZE]; /* Scope: "" is all exports. */
  unsigned for_s;                /* Seconds; 0: no limit. */
  unsigned quiet_s;              /* Seconds without a new open; 0: none. */
  bool until_exit;               /* Last client's exit ends it. */
  enum profile_mode mode;
};

/* Rule 1.  Blocks.  Returns 0; -EBUSY, -ERANGE, -EBADMSG, -ENOENT (attach
 * to a tag that is not there), -EIO, …; nothing is left recording then.
 */
int profiles_start (struct profiles *profiles,
                    const struct profile_start *start, struct bp_error *err);

struct profile_result {
  char name[BP_NAME_SIZE];
  struct bp_root root; /* Of the profile written. */
  uint64_t records;
};

/* Rule 4.  Blocks.  Returns 0; -EINVAL if there is no such recording, and
 * whatever kept the profile from being written.
 */
int profiles_stop (struct profiles *profiles, const char *name,
                   struct profile_result *ret_result, struct bp_error *err);

/* Rule 7.  Blocks. */
int profiles_abort (struct profiles *profiles, const char *name,
                    struct bp_error *err);

/* Stored profiles, through the driver.  Block. */
int profiles_list (struct profiles *profiles, char **ret_json,
                   struct bp_error *err);
int profiles_get (struct profiles *profiles, const char *name,
                  char **ret_meta, uint8_t **ret_data, size_t *ret_len,
                  struct bp_error *err);
int profiles_delete (struct profiles *profiles, const char *name,
                     struct bp_error *err);

/* Arrays for status: recordings[] and replay[], as blobpager(1) has them.
 * The caller owns both.
 */
void profiles_status (struct profiles *profiles,
                      struct json_object **ret_recordings,
                      struct json_object **ret_replays);

#endif /* BP_PROFILE_MANAGER_H */
