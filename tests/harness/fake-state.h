/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Inside the fake world: its state, under one lock, which is never held
 * while a hook or a callback runs.
 */
#ifndef BP_FAKE_STATE_H
#define BP_FAKE_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/profile.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/fetcher.h"
#include "daemon/pager/pager.h"
#include "harness/fake-world.h"

enum {
  BLOB_BYTES = 8192,
  NR_PROFILES = 8,
  NR_RECORDINGS = 16,
  LOG_MAX = 4096
};

struct export
{
  struct export_info info;
  unsigned clients;
  int watch;
  struct export *next;
};

struct window {
  struct bp_root root;
  uint64_t offset;
  bool multi;
};

struct fetch_user {
  int unused;
};

struct pin_set {
  bool pinned[WORLD_BLOBS][WORLD_WINDOWS];
  struct pin_set_counts counts;
};

/* Work of the lane: an open, or a page-in. */
struct job {
  struct job *next;
  struct blob_open *open;
  unsigned n, w;
  struct pin_set *pins; /* NULL when it has been freed. */
  prefetch_fn done;
  void *opaque;
};

struct stored {
  char name[BP_NAME_SIZE];
  char *meta;
  uint8_t *data;
  size_t len;
};

struct fake_state {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  pthread_t lane;
  bool stop, hold, lost;
  struct job *jobs;
  struct job *running; /* The lane is at it. */

  struct pager_observer pager;
  struct driver_observer driver;
  struct export *exports;

  uint64_t last_key, keys[WORLD_BLOBS]; /* 0: not open. */
  bool resident[WORLD_BLOBS][WORLD_WINDOWS];
  struct pin_set *pin_sets[8];
  unsigned users;
  uint64_t sent;

  struct bp_file_message log[LOG_MAX]; /* All that was ever asked for. */
  size_t nr_log;
  uint64_t recording_id;           /* The last. */
  size_t log_start[NR_RECORDINGS]; /* Of each, in the log. */
  struct stored profiles[NR_PROFILES];
  char calls[4096];
};
extern struct fake_state state;

/* Called with the lock held. */
void note_call (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));
void append_log (uint64_t key, uint64_t offset);
/* A key for blob N: 0 if it has one, else the new one, which the hook is
 * to be told.
 */
uint64_t open_key (unsigned n);
unsigned count_pinned (void);
/* Forget every stored profile. */
void forget_profiles (void);
/* The lane, until it is stopped. */
void *lane_main (void *opaque);

/* Called without. */
void tell_key (uint64_t key, unsigned n);
unsigned number_of (const struct bp_root *root);

#endif /* BP_FAKE_STATE_H */
