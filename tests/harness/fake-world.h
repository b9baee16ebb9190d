/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The world as the profile manager sees it: a pager, a fetcher and a
 * driver in memory, with one lane (a thread), a store of profiles, and
 * clients that do what the test says.  Blobs are numbers; blob N is named
 * by world_root (N).
 *
 * One world at a time, for plain test programs; see check.h.
 */
#ifndef BP_FAKE_WORLD_H
#define BP_FAKE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/profile.h"
#include "daemon/pager/pager.h"
#include "daemon/profile/profile.h"

enum {
  WORLD_BLOBS = 64,
  WORLD_WINDOWS = 4
};

/* What the test may set while nothing is under way. */
struct world_settings {
  int record_start; /* Status of these requests; 0: they succeed. */
  int record_stop;
  int get_profile;
  int write_profile;
  bool missing[WORLD_BLOBS]; /* The store lacks it. */
  unsigned pin_room;         /* Windows that may be pinned. */
  uint64_t placed_bytes;     /* Of every image; 0: unknown. */
  /* Called in RECORD_START, before it is answered. */
  void (*in_record_start) (void);
};
extern struct world_settings world;
extern struct profiles *world_profiles;

/* A new world, with a manager in it. */
void world_start (unsigned driver_timeout, bool is_auto);
/* The same, and the manager's automatic tasks last SECONDS. */
void world_start_auto (unsigned seconds);
/* Shut down, and check that nothing is left: pins, users, watches. */
void world_end (void);

struct bp_root world_root (unsigned n);

/* Store a profile: "N@OFFSET N@OFFSET …". */
void world_put_profile (const char *name, const char *records);
/* The same form; NULL if there is none.  Borrowed until the next call. */
const char *world_get_profile (const char *name);
/* Its metadata; NULL if there is none.  Borrowed. */
const char *world_get_meta (const char *name);

/* Driver requests since the last call of this, "RECORD_START GET_PROFILE
 * …"; and blobs opened and closed ("OPEN:3 CLOSE:3").
 */
const char *world_calls (void);
/* Keep what the lane has to do; let it go on. */
void world_hold_lane (void);
void world_release_lane (void);

/* Clients.  NAME is a tag, or "blob/N" for a blob, or "root/N" for an
 * image by root.
 */
struct export *world_enter (const char *name);
void world_leave (struct export *export);
/* A read that needs window W of blob N; MULTI if the blob has several. */
void world_read (struct export *export, unsigned n, unsigned w, bool multi);
/* The same, from OFFSET of the image on, LEN bytes. */
void world_read_at (struct export *export, unsigned n, uint64_t offset,
                    uint32_t len);
/* Evict blob N: its bytes, and its key. */
void world_evict (unsigned n);
/* The driver logs a message that nobody asked for. */
void world_log (unsigned n, uint64_t offset);
void world_lose_driver (void);

unsigned world_pinned (void); /* Windows. */
unsigned world_watched (struct export *export);
bool world_is_resident (unsigned n);

/* Wait until CONDITION () (at most 20 s). */
void world_wait (bool (*condition) (void));

/* Nothing is being recorded, nor written. */
bool world_is_idle (void);
/* A recording has begun, and has not ended. */
bool world_is_recording (void);

/* "recordings" names, and "replay" NAME:STATE, of status, in order. */
const char *world_recordings (void);
const char *world_replays (void);

/* profiles_start with the usual members. */
int world_start_recording (const char *name, const char *export_tag);
/* Stop it; the records of the result. */
int world_stop (const char *name, uint64_t *ret_records);

#endif /* BP_FAKE_WORLD_H */
