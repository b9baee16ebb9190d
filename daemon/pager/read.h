/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A read under way: what the files read*.c share. */
#ifndef BP_READ_H
#define BP_READ_H

#include "daemon/pager/internal.h"

enum {
  READ_INLINE_SLOTS = 4, /* Windows of a small read. */
  READ_INLINE_PARTS = 8,
};

#define NO_SLOT UINT32_MAX

/* A window that the read needs, in order. */
struct read_slot {
  struct waiter waiter; /* First; its window is a reference. */
  struct read *read;
  uint64_t sent; /* fetcher_windows_sent when it was found. */
  int status;    /* What became of the wait. */
  bool warm;     /* It was verified when it was found. */
};

/* Where a piece of the answer comes from. */
struct read_part {
  uint32_t slot; /* NO_SLOT: a hole. */
  uint32_t skip; /* Bytes of the window before the piece. */
};

enum read_phase {
  READ_PLAN,    /* Looking up what lies in the range. */
  READ_REQUEST, /* Everything is known; ask for what is missing. */
  READ_ARRIVED, /* All windows have come, or failed. */
};

/* Owned by two: the op, until it is released, and the engine, until it
 * has nothing more to do with it.  The engine's part is worked by one
 * thread at a time, handed on through PENDING.
 */
struct read {
  struct admission_entry entry; /* First. */
  struct read_pool *pool;       /* It is recycled in. */
  struct read *pool_next;
  struct pager *pager;
  struct export *export; /* The caller's reference; once cancelled, one of
                            the engine's own. */
  struct read_op *op;    /* Touched by whoever has claimed it, only. */
  uint64_t offset;
  uint64_t end;
  bool is_quiet; /* No client's read: not counted, not watched. */
  bool is_watched;
  _Atomic unsigned refs;
  _Atomic bool is_claimed;  /* Somebody completes it. */
  _Atomic uint32_t pending; /* Waits that are not over, and the thread
                               that sets them up. */
  bool is_admitted;

  /* Under export->stall_lock. */
  enum {
    STALL_NONE,
    STALL_ON,
    STALL_OVER
  } stall;

  /* The engine's. */
  enum read_phase phase;
  bool has_waited;
  struct index_view view;
  struct read_slot index_slot; /* For an index window. */
  uint64_t pos;                /* Planned so far. */
  struct map_work *map;        /* To be filled by the plan, and that is
                                  all there is to do; or NULL. */
  int failure;
  uint64_t bad_offset;
  uint64_t around_from; /* The bytes missed; FROM >= TO: none. */
  uint64_t around_to;
  uint64_t around_window; /* Where the window at FROM starts. */
  uint64_t marked;        /* Offset at which a marker was met, or
                             UINT64_MAX. */

  /* Filled by the plan; they point to the inline arrays or to memory of
   * their own, which is charged.
   */
  struct read_slot *slots;
  struct read_part *parts;
  struct read_piece *pieces;
  struct read_touch *touches;
  uint32_t nr_slots;
  uint32_t max_slots;
  uint32_t nr_parts; /* Of parts and of pieces. */
  uint32_t max_parts;
  uint32_t nr_touches;
  struct read_slot inline_slots[READ_INLINE_SLOTS];
  struct read_part inline_parts[READ_INLINE_PARTS];
  struct read_piece inline_pieces[READ_INLINE_PARTS];
};

/* ---- read-memory.c ---- */

struct read *read_new (struct pager *pager, struct read_op *op, bool quiet);
void read_unref (struct read *read);
int read_grow_slots (struct read *read);
int read_grow_parts (struct read *read);
void read_make_touches (struct read *read);
void read_pools_init (struct pager *pager);
void read_pools_done (struct pager *pager);

/* ---- read-plan.c ---- */

/* Go on planning.  Returns 0 when the whole range is planned; -EAGAIN if
 * index window read->view.missing is needed; or what failed, at
 * read->pos.
 */
int read_plan (struct read *read);

/* ---- map.c ---- */

/* read_plan of a read that is a map. */
int map_plan (struct read *read);

/* Hand WORK to the caller of export_map.  By the one who has claimed the
 * read.
 */
void map_set_result (const struct map_work *work);

void map_work_free (struct pager *pager, struct map_work *work);

/* ---- read.c ---- */

/* export_read of OP by READ, which was made for it; NULL: there was no
 * memory.
 */
bool read_start (struct read_op *op, struct read *read);

/* export_read for the pager itself. */
bool read_start_quiet (struct read_op *op);

#endif /* BP_READ_H */
