/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Inside the profile manager: what its files share.
 *
 *   profiles.c  the outside: start, stop, abort; the manager's thread
 *   tasks.c     the list of tasks: names, scopes, life
 *   run.c       what a task does, step by step, through the driver;
 *               run-replay.c: with its replay
 *   auto.c      the automatic mode: what it starts, and what it writes
 *   hooks.c     what the pager and the driver tell us
 *   status.c    recordings[] and replay[]
 *
 * A task is a recording, a replay, or both.  It moves one way:
 *
 *   STARTING ─▶ RUNNING ─▶ ENDING ─▶ ENDED ─▶ GONE
 *                (timers,   (replay   (its result   (freed with the
 *                 stop)      drains)   waits for     last reference)
 *                                      `stop`)
 *   and from any state before ENDED, by abort or a lost driver, to GONE
 *   (or ENDED with the reason, if a person started it).
 *
 * Only the manager's thread moves tasks and waits for the driver; others
 * set wishes (want_end, want_abort, lost, exited) and wake it.
 *
 * Locks: profiles->lock guards everything marked LOCK and is held for
 * short stretches only, never while waiting for the driver.  Inside it the
 * pager's, a replay's and the log's may be taken.
 */
#ifndef BP_PROFILE_INTERNAL_H
#define BP_PROFILE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/profile.h"
#include "lib/tag.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/pager.h"
#include "daemon/profile/auto-rule.h"
#include "daemon/profile/meta.h"
#include "daemon/profile/profile.h"
#include "daemon/profile/rate-limit.h"
#include "daemon/profile/recording.h"
#include "daemon/profile/replay.h"

enum {
  AUTO_SECONDS = 60, /* An automatic recording, and an automatic replay. */
  MAX_ENDED = 64,    /* Results that wait for `stop`. */
  MAX_PAST = 32,     /* Replays that have ended, kept for status. */
  MAX_DAMAGED = 16,  /* Names whose damage has been logged. */
};

/* An export that has clients. */
struct tracked_export {
  struct tracked_export *next;
  struct export *export; /* Lives as long as this is in the list. */
  const struct export_info *info;
  bool was_read;     /* Since it had no clients. */
  bool watched;      /* We have asked for its reads. */
  bool wants_replay; /* Automatic: a client has come. */
  uint64_t stalls;   /* When they were last shared out. */
  uint64_t stall_ns;
};

enum task_state {
  TASK_STARTING,
  TASK_RUNNING,
  TASK_ENDING,
  TASK_ENDED,
  TASK_GONE,
};

/* Fields are LOCK, but for those that are const once it is in the list. */
struct task {
  struct task *next;
  unsigned refs; /* The list's, and one for each caller who waits. */
  enum task_state state;

  struct profile_start start; /* Name (an automatic one by ROOT has none
                                 until it is resolved), scope, limits. */
  bool automatic;             /* Const. */
  bool records;               /* Wants to record. */
  bool replays;               /* Wants to replay. */
  struct export *export;      /* Automatic: its scope.  Only compared; NULL
                                 when its last client has left. */
  struct bp_root export_root; /* Automatic: the image's.  Const. */

  struct recording *recording;    /* Hooks fill it while it is here … */
  struct recording_counts counts; /* … and what it had come to then. */
  struct driver_recording driver_recording;
  bool has_driver_recording;
  struct copy_detector reads; /* Automatic. */
  uint64_t placed_bytes;      /* Automatic: by the index; 0: unknown. */
  bool has_image;             /* Of what clients read: one image … */
  bool has_images;            /* … or several. */
  struct bp_root image;

  struct replay *replay;
  struct bp_root replay_root; /* Of the profile that is replayed. */
  uint64_t replay_records;
  uint64_t stalls; /* While the replay ran. */
  uint64_t stall_ns;

  bool want_end;
  bool want_abort;
  bool lost;   /* The driver. */
  bool exited; /* The last client in scope has left. */
  uint64_t started_ns;
  uint64_t last_open_ns;
  uint64_t drain_deadline_ns; /* Once ENDING. */

  int status; /* ENDED or GONE: 0 and RESULT, or what failed. */
  struct bp_error why;
  struct profile_result result;
};

/* A replay that has ended. */
struct past_replay {
  char name[BP_NAME_SIZE];
  struct replay_counts counts;
};

struct profiles {
  struct pager *pager;
  struct driver *driver;
  struct fetcher *fetcher;
  bool is_auto;
  unsigned auto_s;   /* AUTO_SECONDS. */
  uint64_t drain_ns; /* A stop waits for a replay at most this long. */
  struct rate_limit limit;
  struct pager_observer observer; /* Const; the pager borrows it. */
  pthread_t thread;

  _Atomic unsigned nr_recordings; /* Tasks with a recording; changed under
                                     LOCK, read without it by key_opened
                                     (a late reader misses nothing: the
                                     key table is read after it rose). */

  pthread_mutex_t lock;
  pthread_cond_t wake;    /* The manager: there is something to do. */
  pthread_cond_t changed; /* Callers: a task has moved. */
  /* All below: LOCK. */
  bool shutting_down;
  struct task *tasks; /* Oldest first. */
  struct tracked_export *exports;
  struct past_replay past[MAX_PAST]; /* Most recent first. */
  unsigned nr_past;
  char damaged[MAX_DAMAGED][BP_NAME_SIZE];
  unsigned next_damaged;
};

/* ---- tasks.c.  All are called with the lock held. ---- */

/* A new task at the end of the list, STARTING.  NULL when memory has run
 * out.
 */
struct task *task_new (struct profiles *profiles,
                       const struct profile_start *start, bool automatic,
                       bool records, bool replays);
void task_unref (struct task *task);

/* Move TASK; whoever waits for it is woken.  GONE takes it off the list.
 */
void task_move (struct profiles *profiles, struct task *task,
                enum task_state state);

/* Take the recording from the hooks. */
struct recording *task_take_recording (struct profiles *profiles,
                                       struct task *task);

bool task_is_live (const struct task *task); /* Before ENDED. */
bool task_covers (const struct task *task, struct export *export,
                  const struct export_info *info);
bool task_overlaps (const struct task *task,
                    const struct profile_start *start);

/* The task that `stop NAME` means: one that a person started, else an
 * automatic recording.  NULL if there is none.
 */
struct task *task_find (struct profiles *profiles, const char *name);

/* A person records, or replays, EXPORT. */
bool is_taken (struct profiles *profiles, struct export *export,
               const struct export_info *info);

/* ---- run.c.  Called by the manager's thread with the lock held, which is
 * released while the driver works. ----
 */
void task_begin (struct profiles *profiles, struct task *task);
/* A task without begin: RUNNING if R is 0, else GONE with that status. */
void task_run (struct profiles *profiles, struct task *task, int r);
void task_finish (struct profiles *profiles, struct task *task);
void task_abort (struct profiles *profiles, struct task *task);

/* ---- run-replay.c.  Manager. ---- */

/* A stored profile, decoded. */
struct loaded_profile {
  struct bp_blob_message *messages; /* Owned. */
  size_t count;
  struct bp_root root;
};
/* Without the lock.  Returns 0; -ENOENT; -ERANGE or -EBADMSG for one that
 * cannot be decoded; what else GET_PROFILE says.
 */
int load_profile (struct profiles *profiles, const char *name,
                  struct loaded_profile *ret_profile, struct bp_error *err);

/* Rule 3: a profile that cannot be decoded is in the way until somebody
 * deletes it; ERR then says so.  Returns R.
 */
int explain_damage (const char *name, int r, struct bp_error *err);

/* Start TASK's replay of PROFILE.  Without the lock. */
int start_replay (struct profiles *profiles, struct task *task,
                  const struct loaded_profile *profile,
                  struct bp_error *err);

/* End TASK's replay: count, release its pins, tell the driver how it went
 * (TELL).  Lock held, released meanwhile.  Returns false if there was
 * none.
 */
bool end_replay (struct profiles *profiles, struct task *task, bool tell,
                 struct replay_result *ret_result);

/* ---- auto.c ---- */

/* The first read of TRACKED: record.  Lock held. */
void auto_start_recording (struct profiles *profiles,
                           struct tracked_export *tracked);

/* Serve one export that wants a replay; false if there is none.  Manager,
 * lock held, released meanwhile.
 */
bool auto_serve_replay (struct profiles *profiles);

/* The name of the profile of an export attached by TAG, or, if that is
 * "", by ROOT: the first tag in byte order that names it.  Without the
 * lock.  0, -ENOENT, or what the driver says.
 */
int auto_resolve_name (struct profiles *profiles, const char *tag,
                       const struct bp_root *root, char name[BP_NAME_SIZE],
                       struct bp_error *err);

/* Judge what was recorded automatically as NAME: NULL if it is to be
 * written, or why not.  FACTS lack the roots, which are filled in.
 * Manager, without the lock.
 */
const char *auto_judge (struct profiles *profiles, const char *name,
                        struct auto_facts *facts,
                        const struct bp_blob_message *messages,
                        size_t count);

/* ---- hooks.c ---- */

void hooks_observe (struct profiles *profiles);

/* Ask the pager for the reads that somebody wants.  Lock held. */
void update_watches (struct profiles *profiles);

/* Share the stalls since last time out to the replays.  Lock held. */
void settle_stalls (struct profiles *profiles);

#endif /* BP_PROFILE_INTERNAL_H */
