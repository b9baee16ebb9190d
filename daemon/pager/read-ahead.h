/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Fetching what will be asked for next: around a miss, and ahead of a
 * sequential reader.
 *
 * Around: a miss also fetches the segments that overlap the 256 KiB-
 * aligned piece of the image around it.
 *
 * Ahead: an export remembers where a few misses ended.  A miss that
 * starts exactly there (holes skipped) comes from a sequential reader;
 * what lies behind is fetched too, and the first window of it is marked.
 * A read that touches the mark fetches the next stretch, twice as long
 * each time, so that from then on the reader misses nothing.
 *
 *   miss ─▶ miss ─▶ │*512K     │*1M            │*2M …      * marker
 */
#ifndef BP_READ_AHEAD_H
#define BP_READ_AHEAD_H

#include <pthread.h>
#include <stdint.h>

struct fetch_batch;
struct index_view;

enum {
  READ_AROUND = 256 << 10,    /* Bytes, also the unit of alignment. */
  READ_AHEAD_MIN = 512 << 10, /* Bytes of the first stretch. */
  READ_AHEAD_MAX = 4 << 20,
  READ_AHEAD_SHARE = 16, /* Or a sixteenth of the budget, if that is less:
                            two stretches are ahead of a reader. */
  READ_STREAMS = 8,      /* Sequential readers followed in an export. */
};

struct read_stream {
  uint64_t start; /* Of the last stretch fetched ahead. */
  uint64_t next;  /* Where what was fetched ends; 0: not in use. */
  uint64_t size;  /* Bytes of the last stretch; 0: none yet. */
  uint64_t used;  /* When, in uses of the table. */
};

struct read_ahead {
  pthread_mutex_t lock; /* Only ever tried: this is but a hint. */
  uint64_t uses;
  struct read_stream streams[READ_STREAMS];
};

void read_ahead_init (struct read_ahead *ahead);
void read_ahead_done (struct read_ahead *ahead);

/* The bytes FROM … TO of VIEW's export were missed, the window of the
 * first beginning at WINDOW_START; put what should come with them in
 * BATCH.
 */
void read_ahead_missed (struct index_view *view, struct fetch_batch *batch,
                        uint64_t window_start, uint64_t from, uint64_t to);

/* A read has come upon a marker at OFFSET. */
void read_ahead_marked (struct index_view *view, struct fetch_batch *batch,
                        uint64_t offset);

#endif /* BP_READ_AHEAD_H */
