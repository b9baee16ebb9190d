/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The pager: exports, reads of them, and prefetch, over one cache.
 *
 * A read asks for a range of an export.  It is admitted when its whole
 * length fits the reply share of the budget (the oldest always is), looks
 * its segments up in the image index, takes a reference to each window
 * that is verified already, and waits for the others.  When all are
 * there its bytes lie in the cache, held until the read is released.
 *
 * No function here blocks, except where it says so.
 */
#ifndef BP_PAGER_H
#define BP_PAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/merkle.h"
#include "lib/tag.h"

struct pager;
struct driver;
struct options;
struct export;
struct window;

/* Returns 0 or -ENOMEM.  OPTIONS and DRIVER are borrowed. */
int pager_new (struct pager **ret_pager, const struct options *options,
               struct driver *driver, struct bp_error *err);

/* Every export has been closed, every read released, every pin set freed.
 * Waits for names being resolved and fetches under way: so after
 * driver_free, which fails them.
 */
void pager_free (struct pager *pager);

/* ---- Exports ---- */

enum export_kind {
  EXPORT_IMAGE, /* TAG, TAG@ROOT, ROOT, or "". */
  EXPORT_BLOB,  /* blob/ROOT. */
};

/* What the front and the profiles may know of an export.  Fixed from open
 * to close.
 */
struct export_info {
  char name[256]; /* As the client asked for it; "" resolved to
                     the tag. */
  enum export_kind kind;
  struct bp_root root;    /* Image root, or the blob's. */
  char tag[BP_NAME_SIZE]; /* The tag it was attached by, or "". */
  uint64_t size;          /* Bytes. */
  char description[256];  /* For LIST and INFO. */
};
const struct export_info *export_get_info (const struct export *export);

/* Resolve NAME and make the export ready: its index header is verified.
 * Works in the background; DONE is called from another thread with the
 * export (a reference) and 0, or NULL and -ENOENT (no such export),
 * -EPERM (--pin), -EPROTO, -EIO, …  Clients of one name share the export
 * until the last has left.
 */
typedef void (*export_open_fn) (void *opaque, struct export *export,
                                int status, const char *why);
void pager_open_export (struct pager *pager, const char *name,
                        export_open_fn done, void *opaque);
void export_unref (struct export *export);

/* A client has attached (GO or EXPORT_NAME), or has gone.  Both need a
 * reference held by the caller.
 */
void export_client_entered (struct export *export);
void export_client_left (struct export *export);

/* The exports that LIST shows.  DONE is called from another thread; the
 * array is borrowed for the call.
 */
typedef void (*export_list_fn) (void *opaque, const struct bp_tag *tags,
                                size_t count, int status);
void pager_list_exports (struct pager *pager, export_list_fn done,
                         void *opaque);

/* SIGHUP: exports opened from now on resolve their tags afresh. */
void pager_forget_tags (struct pager *pager);

/* ---- Reads ---- */

/* A stretch of an answer. */
struct read_piece {
  const uint8_t *data; /* Borrowed from the cache, or NULL: zeros. */
  uint32_t len;        /* Bytes. */
};

/* A window that the read needed: of data or of the index. */
struct read_touch {
  struct window *window; /* A reference, held until release. */
  uint64_t sent;         /* fetcher_windows_sent when it was found. */
  bool warm;             /* It was verified already. */
};

/* A read.  Owned by the caller, who sets the first part, and from
 * export_read until it is complete lends it to the pager.
 */
struct read_op {
  struct export *export;
  uint64_t offset; /* OFFSET, LEN: inside the export. */
  uint32_t len;    /* Bytes, at most 32 MiB, at least 1. */
  /* Called once if export_read returned false: from any thread, no lock
   * held; must not block or call back into the pager but for
   * read_op_release.
   */
  void (*complete) (struct read_op *op);
  void *opaque; /* The caller's. */

  /* Results. */
  int status;          /* 0; -EBADMSG, -EIO, -ENOENT, -EPROTO, -ENOMEM. */
  uint64_t bad_offset; /* On failure: image offset of the first window
                          that failed. */

  /* The whole range, or on failure what is verified of it before
   * bad_offset.
   */
  struct read_piece *pieces; /* Owned by the pager until release. */
  size_t nr_pieces;
  struct read_touch *touches; /* Of a watched export, on success; else
                                 none. */
  size_t nr_touches;

  /* The pager's own. */
  void *private;
};

/* Start OP.  Returns true if it is complete already (OP->complete is then
 * not called).
 */
bool export_read (struct read_op *op);

/* The answer has been sent, or is not wanted: let its windows go.  OP must
 * be complete.  This may make room for other reads, and complete them: so
 * hold no lock that a COMPLETE takes.
 */
void read_op_release (struct read_op *op);

/* The client has gone while OP was under way: unless it is completed (by
 * another thread, just now), complete it with -ESHUTDOWN before this
 * returns.  Either way OP->complete is called exactly once; OP has not
 * been released.  Its fetches go on.
 */
void read_op_cancel (struct read_op *op);

/* ---- Maps: what lies where, without its bytes ---- */

enum map_kind {
  MAP_ALLOCATION,
  MAP_RESIDENCY, /* Where the bytes are now; a hole is verified. */
  NR_MAP_KINDS,
};

/* What an extent of a map is.  0 is always a safe answer. */
enum {
  MAP_DATA = 0, /* MAP_ALLOCATION. */
  MAP_HOLE = 1,

  MAP_ABSENT = 0, /* MAP_RESIDENCY. */
  MAP_ON_ITS_WAY = 1,
  MAP_VERIFIED = 2,
};

struct map_extent {
  uint32_t len; /* Bytes, at least 1. */
  uint32_t state;
};

/* What the caller of export_map wants, and gets. */
struct export_map {
  bool wanted[NR_MAP_KINDS]; /* At least one. */
  uint32_t max;              /* Extents of each kind, at least 1. */

  /* Results: of each kind that is wanted. */
  const struct map_extent *extents[NR_MAP_KINDS]; /* The pager's until
                                                     release. */
  uint32_t count[NR_MAP_KINDS];
};

/* Like export_read, for BLOCK_STATUS: fill MAP, which is lent with OP,
 * instead of paging in the range; its length may be anything from 1 up.
 * There are no pieces.
 *
 * On success each kind that is wanted has at least one extent and at most
 * MAP->max; each starts where the one before it ends, the first at
 * OP->offset, none ends beyond the range, and neighbours differ.  They may
 * end before the range does: where there is no room for more, where the
 * work that one call may cost is done, or where the index cannot be read.
 *
 * Windows of the index are paged in as for a read.  No window of data is,
 * and nothing is counted as a read, a stall or a use.
 */
bool export_map (struct read_op *op, struct export_map *map);

/* NBD_CMD_CACHE: page the range in; nobody waits. */
void export_prefetch (struct export *export, uint64_t offset, uint64_t len);

/* ---- Windows, for the profiles ---- */

const struct bp_root *window_root (const struct window *window);
uint64_t window_offset (const struct window *window); /* Bytes in blob. */
uint32_t window_len (const struct window *window);
bool window_is_multi (const struct window *window); /* Of a larger blob. */

/* ---- Watching (recording and auto mode) ---- */

/* Called with no lock held, from event loops and lanes; must not block. */
struct pager_observer {
  void (*entered) (void *opaque, struct export *export);
  void (*left) (void *opaque, struct export *export, unsigned remaining);
  /* A read of a watched export starts: before its first lookup. */
  void (*read_started) (void *opaque, struct export *export,
                        uint64_t offset, uint32_t len);
  /* A read of a watched export succeeded: its touches are set. */
  void (*read_served) (void *opaque, const struct read_op *op);
  void *opaque;
};
/* OBSERVER is borrowed; NULL: none (no hook may be under way then). */
void pager_observe (struct pager *pager,
                    const struct pager_observer *observer);

/* Count up or down who wants the read_… calls for EXPORT; unwatched
 * exports pay one relaxed load a read.
 */
void export_watch (struct export *export, int delta);

/* Call FN for each export that has a client, and for the last few whose
 * clients have gone, for their counts.  Under the exports' lock.
 */
void pager_for_each_export (struct pager *pager,
                            void (*fn) (void *opaque, struct export *export),
                            void *opaque);

/* ---- Prefetch for replay ---- */

/* The pins of one replay. */
struct pin_set;
struct pin_set *pin_set_new (struct pager *pager);

/* What a pin set holds; each byte once. */
struct pin_set_counts {
  uint64_t prefetched_bytes; /* Fetched for it, verified. */
  uint64_t used_bytes;       /* Of these, served to a client since. */
  uint64_t late;             /* Windows a client asked for before they had
                                come. */
  uint64_t wasted_bytes;     /* Prefetched and not (yet) used. */
};
void pin_set_count (struct pin_set *pins, struct pin_set_counts *ret_counts);

/* Unpin everything.  Prefetches under way go on; their DONE is still
 * called, and what they bring is not pinned.
 */
void pin_set_free (struct pin_set *pins);

/* Page in and pin the window of ROOT (a blob of BLOB_SIZE bytes) that
 * holds OFFSET, for USER.  DONE is called from a lane with the bytes that
 * were fetched (0 if resident already) and 0 or what failed; not called
 * unless 0 is returned.  Returns 0; 1 if resident (now pinned); -ENOSPC if
 * the pin share is full; -EINVAL if OFFSET is beyond the blob; -EAGAIN if
 * there is no memory for it just now (try again after a done).
 */
struct fetch_user;
typedef void (*prefetch_fn) (void *opaque, uint32_t len, int status);
int pager_prefetch (struct pager *pager, const struct bp_root *root,
                    uint64_t blob_size, uint64_t offset,
                    struct fetch_user *user, struct pin_set *pins,
                    prefetch_fn done, void *opaque);

/* True if the window that holds OFFSET of ROOT is verified in the cache.
 * (BLOB_SIZE is not needed: windows are aligned.)
 */
bool pager_is_resident (struct pager *pager, const struct bp_root *root,
                        uint64_t offset);

/* ---- Status ---- */

struct export_counts {
  unsigned clients;
  uint64_t reads;
  uint64_t bytes_read;
  uint64_t stalls;   /* Times that a read began to wait while none did. */
  uint64_t stall_ns; /* Time during which at least one read waited. */
};
void export_get_counts (struct export *export,
                        struct export_counts *ret_counts);

/* Bytes that the index of an image export places (0 until known), for
 * rule 10; from the tag, which is the driver's word.
 */
uint64_t export_placed_bytes (const struct export *export);

#endif /* BP_PAGER_H */
