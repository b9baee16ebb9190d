/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The fetcher: roots in, verified bytes out.
 *
 * Everything unverified stays behind this interface: keys, opens, tree
 * nodes, retries.  A fetch names a window of a blob and a buffer; a lane
 * opens the blob if it has no key, reads, verifies in the buffer after
 * the command has completed, and says done.
 *
 *   submit ─▶ queue (demand | replay) ─▶ lane: [OPEN] [TREE] read ─▶
 *          verify ─▶ done (0)        wrong digest: once more, then -EBADMSG
 *             └─ failed: back-off, other lane, until the deadline: -EIO
 *
 * Key table: root → key, under one lock.  Keys count from 1 and are never
 * reused; a key whose slot is taken or 0 is skipped.
 */
#ifndef BP_FETCHER_H
#define BP_FETCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/merkle.h"

struct fetcher;
struct key;
struct attempt;

enum fetch_class {
  FETCH_DEMAND, /* A client waits, or soon will. */
  FETCH_REPLAY, /* Nobody waits. */
};

/* Who needs blobs to stay open: one for each export in use and for each
 * replay.  When the last user of a blob is freed its key is closed.
 * Fetches and opens under way for a user that is freed go on without its
 * claim.
 */
struct fetch_user;
struct fetch_user *fetcher_user_new (struct fetcher *fetcher);
void fetcher_user_free (struct fetcher *fetcher, struct fetch_user *user);

TAILQ_HEAD (fetch_list, fetch);
TAILQ_HEAD (open_list, blob_open);

/* A window to fetch.  Owned by the submitter, untouched by it from submit
 * until done (or retired, see there).
 */
struct fetch {
  /* Set by the submitter. */
  struct bp_root root;
  uint64_t offset;         /* Window start, bytes. */
  uint64_t blob_size;      /* Bytes of the whole blob, as a verified index
                               or an earlier open says; the driver's word
                               must agree (-EPROTO). */
  uint8_t *buf;            /* Room for the window; only the fetcher writes
                               to it until done. */
  uint32_t len;            /* Bytes of the window. */
  enum fetch_class class;  /* Changed only by fetcher_promote. */
  struct fetch_user *user; /* Or NULL. */

  /* Called once, from a lane, no lock held; must not block.  STATUS: 0
   * (BUF holds verified bytes), -EBADMSG corrupt, -ENOENT the store lacks
   * the blob, -EPROTO, -EIO, -ETIMEDOUT (the deadline passed while a
   * connection still owes bytes to BUF), -ESHUTDOWN.  The fetch belongs
   * to the submitter again, except after -ETIMEDOUT: then when RETIRED is
   * called, which happens only then.
   */
  void (*done) (struct fetch *fetch, int status);
  void (*retired) (struct fetch *fetch);

  /* The fetcher's own. */
  TAILQ_ENTRY (fetch) link; /* In LIST. */
  TAILQ_ENTRY (fetch) age;  /* In order of deadline, until done. */
  struct fetch_list *list;  /* Where it waits; NULL on the wire. */
  struct key *key;          /* That it waits for, or NULL. */
  struct attempt *attempt;  /* On the wire, or NULL. */
  uint64_t deadline_ns;
  uint64_t retry_ns;     /* When to try again. */
  int status;            /* For done. */
  unsigned nr_attempts;  /* Sent so far. */
  unsigned nr_errors;    /* Failed in a way that may pass. */
  unsigned nr_corrupt;   /* Wrong digests so far. */
  unsigned nr_malformed; /* Answers that cannot be. */
  int avoid;             /* Lane that failed last, or -1. */
  bool is_news;          /* Its corruption is to be logged. */
  bool is_abandoned;     /* Timed out on the wire. */
  bool done_returned;    /* Then: DONE has been called … */
  bool is_over;          /* … and the wire is done with BUF. */
};

/* Queue COUNT fetches; those without a key share OPEN batches, and what
 * is submitted together is sent together.
 */
void fetcher_submit (struct fetcher *fetcher, struct fetch *const *fetches,
                     size_t count);

/* A client now waits for FETCH: if it is still queued for replay it moves
 * to the demand queue.  Harmless if it is done or on its way.
 */
void fetcher_promote (struct fetcher *fetcher, struct fetch *fetch);

/* A blob to open, for its size or ahead of a replay. */
struct blob_open {
  struct bp_root root; /* Set by the submitter. */
  enum fetch_class class;
  struct fetch_user *user; /* Keeps the blob open; or NULL. */
  uint64_t size;           /* Filled in: bytes, the driver's word. */
  /* Called once, from a lane; 0, -ENOENT, -EBADMSG, … as above. */
  void (*done) (struct blob_open *open, int status);

  /* The fetcher's own. */
  TAILQ_ENTRY (blob_open) link; /* In LIST. */
  TAILQ_ENTRY (blob_open) age;  /* In order of deadline, until done. */
  struct open_list *list;       /* Where it waits. */
  struct key *key;              /* That it waits for, or NULL. */
  uint64_t deadline_ns;
  uint64_t retry_ns;     /* When to try again. */
  int status;            /* For done. */
  unsigned nr_errors;    /* Failed in a way that may pass. */
  unsigned nr_malformed; /* Answers that cannot be. */
};

/* Open COUNT blobs in as few batches as they fit. */
void fetcher_open_blobs (struct fetcher *fetcher,
                         struct blob_open *const *opens, size_t count);

/* The cache holds no more bytes of ROOT: close its key unless a fetch of
 * it is under way.  (The user's claim is forgotten with the key.)
 */
void fetcher_blob_evicted (struct fetcher *fetcher,
                           const struct bp_root *root);

/* Bytes of the tables that it has from its start, for the budget. */
uint64_t fetcher_table_bytes (const struct fetcher *fetcher);

/* Windows put on the wire in data reads since the program started, over
 * all lanes, retries included.
 */
uint64_t fetcher_windows_sent (struct fetcher *fetcher);

/* All keys open now, for a recording that starts.  FN is called with the
 * key table locked.
 */
void fetcher_for_each_key (struct fetcher *fetcher,
                           void (*fn) (void *opaque, uint64_t key,
                                       const struct bp_root *root),
                           void *opaque);

#endif /* BP_FETCHER_H */
