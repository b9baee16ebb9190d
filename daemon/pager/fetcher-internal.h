/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the files of the fetcher share.
 *
 *   fetcher.c   submit, promote, users: the interface
 *   queue.c     where a fetch waits, and how it ends
 *   timer.c     deadlines, retries, hanging blobs
 *   lane.c      the thread of a lane and its connection
 *   pull.c      what it takes from the queues, and sends
 *   attempt.c   one try of one fetch: reads, answers, verification
 *   tree-path.c the nodes that come with a window of a large blob
 *   opening.c   OPEN and CLOSE in batches
 *
 * A fetch is at any time in exactly one place: in a list (FETCH->list: a
 * queue, parked on a key, delayed), or on the wire (FETCH->attempt), or
 * done.
 *
 * Lock: fetcher->lock covers the queues, the keys and every fetch's own
 * fields.  It is a leaf: no callback is called and nothing waits under it.
 */
#ifndef BP_FETCHER_INTERNAL_H
#define BP_FETCHER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/pager/digest-table.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/fetcher.h"
#include "daemon/pager/keys.h"
#include "daemon/pager/lane.h"
#include "daemon/pager/observing.h"

enum {
  NR_LANES = 4, /* The first half for demand. */
  NR_LANES_OF_CLASS = 2,
  NR_CORRUPT_SEEN = 256, /* Corrupt windows that are not logged again. */
  /* Data reads of one large blob under way: fewer than nbdkit has workers
   * for a connection, so that one that hangs leaves some to the others.
   */
  MAX_SENT_PER_BLOB = 12,
};

/* Numbers whose CLOSE has to be sent again. */
struct close_batch;
STAILQ_HEAD (close_list, close_batch);

struct corrupt_window {
  struct bp_root root;
  uint64_t offset;
};

struct fetcher {
  pthread_mutex_t lock;
  pthread_cond_t timer_wanted;
  uint64_t timeout_ns;

  /* Under the lock. */
  struct fetch_list queue[2]; /* By class. */
  struct open_list opens[2];  /* By class. */
  struct fetch_list delayed;  /* By retry_ns. */
  struct open_list delayed_opens;
  struct fetch_list under_way; /* By deadline. */
  struct open_list opens_under_way;
  struct keys keys;
  struct digest_table digests;
  struct close_list lost_closes; /* Not answered. */
  bool is_short_of_keys;         /* A lane waits for a key to be closed. */
  uint64_t close_due_ns;         /* When to send CLOSE; 0: nothing to close. */
  bool timer_is_idle;            /* Waits without end. */
  bool is_stopping;              /* Everything fails. */
  bool timer_must_end;
  struct corrupt_window corrupt_seen[NR_CORRUPT_SEEN];
  unsigned nr_corrupt_seen; /* Ever; the array is a ring. */
  struct observing observing;

  struct lane lanes[NR_LANES];
  pthread_t timer;
  _Atomic uint64_t windows_sent; /* Relaxed: a counter. */
};

/* ---- fetcher.c: life, for the driver ---- */

int fetcher_new (struct fetcher **ret_fetcher, struct session_gate *gate,
                 const struct wire_target *target, struct bp_error *err);
void fetcher_kick_all (struct fetcher *fetcher);

/* The session is over and every lane has left it: forget every key. */
void fetcher_session_lost (struct fetcher *fetcher);

/* From now on everything fails with -ESHUTDOWN.  After session_stop. */
void fetcher_shut_down (struct fetcher *fetcher);
void fetcher_free (struct fetcher *fetcher);

/* For tests: at most LIMIT keys open. */
void fetcher_limit_keys (struct fetcher *fetcher, size_t limit);

/* ---- queue.c.  All with the lock held, but for report. ---- */

/* What has ended, to be reported once the lock is released. */
struct outcome {
  struct fetch_list fetches;
  struct fetch_list retired;
  struct open_list opens;
};
void outcome_init (struct outcome *outcome);
/* Call done (or retired) for each.  No lock held. */
void outcome_report (struct fetcher *fetcher, struct outcome *outcome);

/* FETCH has reached its deadline on the wire: it is reported now, and
 * retired when the wire is done with its buffer.
 */
void fetch_abandon (struct fetcher *fetcher, struct fetch *fetch,
                    struct outcome *outcome);
/* The wire is done with the buffer of an abandoned FETCH. */
void fetch_retire (struct fetch *fetch, struct outcome *outcome);

void fetch_finish (struct fetcher *fetcher, struct fetch *fetch, int status,
                   struct outcome *outcome);
void open_finish (struct fetcher *fetcher, struct blob_open *open,
                  int status, struct outcome *outcome);

/* Put FETCH where a lane will find it: behind the others, without waking a
 * lane; or, where it has waited before, ahead of them.
 */
void fetch_enqueue (struct fetcher *fetcher, struct fetch *fetch);
void fetch_requeue (struct fetcher *fetcher, struct fetch *fetch);
void open_enqueue (struct fetcher *fetcher, struct blob_open *open);

/* It failed in a way that may pass: try again after a back-off. */
void fetch_delay (struct fetcher *fetcher, struct fetch *fetch);
void open_delay (struct fetcher *fetcher, struct blob_open *open);

/* Wait on KEY, with a reference to it. */
void fetch_park (struct fetch *fetch, struct key *key);
void open_park (struct blob_open *open, struct key *key);

/* Up to MAX of those parked on KEY go back to the queue. */
void key_unpark (struct fetcher *fetcher, struct key *key, unsigned max);

/* Take it out of the list it waits in. */
void fetch_unlink (struct fetcher *fetcher, struct fetch *fetch);
void open_unlink (struct fetcher *fetcher, struct blob_open *open);

/* An OPEN for it failed with STATUS. */
void fetch_open_failed (struct fetcher *fetcher, struct fetch *fetch,
                        int status, struct outcome *outcome);
void open_failed (struct fetcher *fetcher, struct blob_open *open,
                  int status, struct outcome *outcome);

/* Wake the lane of CLASS that has least to do. */
void fetcher_kick (struct fetcher *fetcher, enum fetch_class class);

/* Keys have become free: lanes that were short of them go on. */
void fetcher_keys_freed (struct fetcher *fetcher);

/* Keys may have become closable: have it done soon. */
void fetcher_check_closing (struct fetcher *fetcher);

/* Wake the timer: something is due sooner than it knows. */
void fetcher_kick_timer (struct fetcher *fetcher);

/* ---- timer.c ---- */

void *timer_main (void *fetcher);

/* ---- pull.c: the lane's thread ---- */

/* Send what the lane may send now. */
void lane_pull (struct lane *lane);

/* ---- attempt.c: the lane's thread ---- */

/* One try of a fetch, on the wire. */
struct attempt {
  struct fetch *fetch;
  struct lane *lane;
  struct key *key;    /* A reference. */
  unsigned waiting;   /* Answers still to come. */
  int error;          /* The first that a read brought, or 0. */
  int open_error;     /* Of the OPEN it rides behind, or 0. */
  int status;         /* Of the verification. */
  bool is_discounted; /* Hangs: not counted among the lane's. */
  uint64_t sent_ns;
  struct command read;
  struct tree_path *path; /* To a window of a large blob, or NULL. */
  bool has_digest;        /* Of the window: no path is needed. */
  struct bp_root digest;
  TAILQ_ENTRY (attempt) ride; /* In its key's riders. */
  TAILQ_ENTRY (attempt) link; /* To be sent, or ready. */
};

/* Attach an attempt to FETCH, which is in no list, and count it; NULL: out
 * of memory.  With the lock held.
 */
struct attempt *attempt_new (struct lane *lane, struct fetch *fetch,
                             struct key *key);
/* Control requests that an attempt of FETCH takes at most. */
unsigned attempt_nr_requests (const struct fetch *fetch);
/* Put it on the wire.  No lock held, as for all that follow. */
void attempt_send (struct attempt *attempt);
/* One of the answers it waits for has come; ERROR is 0 or what was wrong
 * with it.
 */
void attempt_note_answer (struct attempt *attempt, int error);
/* The OPEN that ATTEMPT rides behind was answered. */
void attempt_open_answered (struct attempt *attempt, int status);
/* Verify what is ready and end it. */
void lane_settle_ready (struct lane *lane);

/* ---- opening.c: the lane's thread ---- */

struct open_batch;
/* An empty batch, or NULL. */
struct open_batch *open_batch_new (struct lane *lane);
bool open_batch_has_room (struct open_batch *batch);
/* With the lock held.  Takes a reference to KEY until the answer. */
void open_batch_add (struct open_batch *batch, struct key *key,
                     bool will_read);
/* Tell the observer, and send it; frees an empty one. */
void open_batch_send (struct open_batch *batch);

/* Send CLOSE for what is to be closed, if it is due. */
void lane_send_closes (struct lane *lane);
/* With the lock held: drop what lost_closes holds. */
void fetcher_forget_closes (struct fetcher *fetcher);

#endif /* BP_FETCHER_INTERNAL_H */
