/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The key table: which blobs are open in the session, under which key.
 *
 *            keys_allocate          answer: opened
 *   (none) ───────────────▶ OPENING ─────────────▶ OPEN
 *                              │ failed, lost        │ not needed, old,
 *                              ▼                     ▼ or in doubt
 *                             DEAD ◀─────────────────┘
 *                              │ nobody refers to it: no read is unanswered
 *                              ▼
 *                          to be closed ──▶ CLOSE answered: slot is free
 *
 * A dead key is no longer found by its root: a later fetch takes a new
 * one.  Its slot stays taken until the driver has answered the CLOSE.
 *
 * Threads: everything here is called with the fetcher's lock held.
 */
#ifndef BP_KEYS_H
#define BP_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/pager/fetcher.h"
#include "lib/merkle.h"

struct lane;
struct attempt;

enum {
  KEYS_MAX = 65536, /* Open at once, those being closed included. */
};

enum key_state {
  KEY_OPENING, /* OPEN is on its way; only OPENER may send reads. */
  KEY_OPEN,
  KEY_DEAD, /* To be closed when nobody refers to it. */
};

TAILQ_HEAD (attempt_list, attempt);

struct key {
  struct bp_root root;
  uint64_t number; /* From 1. */
  enum key_state state;
  struct lane *opener;        /* While OPENING. */
  uint64_t size;              /* Bytes, the driver's word; once OPEN. */
  unsigned nr_refs;           /* Attempts, parked fetches, OPEN. */
  unsigned nr_sent;           /* Attempts on the wire. */
  bool is_hung;               /* One attempt at a time till answered. */
  bool close_wanted;          /* Dies with its last reference. */
  struct fetch_list parked;   /* Fetches that wait for an answer. */
  struct open_list waiting;   /* Opens that wait for the OPEN's answer. */
  struct attempt_list riders; /* Attempts sent behind the OPEN. */
  LIST_HEAD (, claim) claims; /* Of users. */
  TAILQ_ENTRY (key) age;      /* Used last: at the end. */
  TAILQ_ENTRY (key) closing;  /* While it is to be closed. */
  struct key *hash_next;
};
TAILQ_HEAD (key_list, key);

struct keys {
  struct key **buckets;    /* By root; OPENING and OPEN. */
  uint64_t seed;           /* Of the hash. */
  struct key_list by_age;  /* OPENING and OPEN, used longest ago first. */
  struct key_list closing; /* DEAD and not referred to. */
  uint64_t *slots;         /* A bit for each slot that is taken. */
  uint64_t next;           /* Number of the next key. */
  size_t nr_live;          /* On the list BY_AGE. */
  size_t nr_taken;         /* Slots. */
  size_t limit;            /* Of slots: KEYS_MAX, or less in tests. */
};

/* Returns 0 or -ENOMEM. */
int keys_init (struct keys *keys);
void keys_done (struct keys *keys);

/* The key of ROOT, OPENING or OPEN, or NULL. */
struct key *keys_find (struct keys *keys, const struct bp_root *root);

/* Let the oldest unused keys die, if there are many.  Returns whether there
 * is room for another key; false: not before something has been closed.
 */
bool keys_make_room (struct keys *keys);

/* A new key for ROOT, OPENING by LANE; there is room.  NULL: out of memory.
 */
struct key *keys_allocate (struct keys *keys, const struct bp_root *root,
                           struct lane *lane);

/* KEY has just been used. */
void keys_touch (struct keys *keys, struct key *key);

void key_ref (struct key *key);
void key_unref (struct keys *keys, struct key *key);

/* KEY is not to be used any more. */
void keys_kill (struct keys *keys, struct key *key);

static inline bool
keys_has_closing (const struct keys *keys)
{
  return !TAILQ_EMPTY (&keys->closing);
}

/* Take up to MAX keys that are to be closed off the list; their slots stay
 * taken.  Returns how many.
 */
size_t keys_take_closing (struct keys *keys, uint64_t *numbers, size_t max);

/* CLOSE was answered: the slots of COUNT keys are free. */
void keys_closed (struct keys *keys, const uint64_t *numbers, size_t count);

/* The session is gone, and with it every key.  None is referred to. */
void keys_forget (struct keys *keys);

/* ---- Users ---- */

/* USER needs KEY open.  Out of memory: the claim is not made, and the key
 * may be closed early, which costs another OPEN.
 */
void key_claim (struct key *key, struct fetch_user *user);

/* A user of its own; lives until it is freed and nothing under way names
 * it.
 */
struct fetch_user {
  LIST_HEAD (, claim) claims;
  unsigned nr_refs;
  bool is_freed; /* Makes no claims any more. */
};
struct fetch_user *user_ref (struct fetch_user *user);
void user_unref (struct fetch_user *user);

/* USER's claims end; keys that nobody else claims are dropped. */
void user_release (struct keys *keys, struct fetch_user *user);

#endif /* BP_KEYS_H */
