/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A pager without a driver, for tests of the front alone: pager.h over an
 * image in memory whose bytes anybody can work out.  It takes the place of
 * the real one when it is linked first.
 *
 * The export says how it behaves:
 *
 *   fast     every read is complete at once
 *   slow     every read is completed by another thread
 *   mixed    one or the other
 *   held     reads are complete after fake_pager_let_go
 *   corrupt  as mixed; reads that touch FAKE_BAD_OFFSET fail, and have
 *            what precedes it
 *   healing  as corrupt, at once, until fake_pager_let_go
 *   failing  reads that touch FAKE_BAD_OFFSET fail at once, others are
 *            held
 *   later    as fast; reads from FAKE_LATER_OFFSET on are held
 *   ending   as mixed; every read ends in -ESHUTDOWN
 *   broken, denied, late
 *            cannot be opened (-EPROTO, -EPERM); opens after
 *            fake_pager_let_go
 *   ""       is fast
 */
#ifndef BP_TEST_FAKE_PAGER_H
#define BP_TEST_FAKE_PAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pager;

enum {
  FAKE_SIZE = (40 << 20) + 77, /* Bytes of every export. */
  FAKE_BAD_OFFSET = 1 << 20,   /* FAKE_BAD_LEN corrupt bytes here. */
  FAKE_BAD_LEN = 64 << 10,
  FAKE_LATER_OFFSET = 2 << 20,
  FAKE_PIECE_BYTES = 48 << 10, /* Windows are no power of two here; */
  FAKE_HOLE_EVERY = 5,         /* every fifth is a hole. */
};

struct pager *fake_pager_new (void);

/* Fails unless every export and every read has been given back. */
void fake_pager_free (struct pager *pager);

/* The LEN bytes at OFFSET, which lie within the image. */
const uint8_t *fake_pager_bytes (const struct pager *pager, uint64_t offset);

/* Have held reads complete and late exports open: those there are, and
 * all from now on.
 */
void fake_pager_let_go (struct pager *pager);
void fake_pager_hold_again (struct pager *pager);

struct fake_counts {
  unsigned clients;        /* Entered and not left. */
  unsigned waiting;        /* Reads held and late opens. */
  unsigned cancelled;      /* Reads ever cancelled under way. */
  unsigned failed;         /* Reads ever that met FAKE_BAD_OFFSET. */
  uint64_t unreleased;     /* Bytes of complete reads not released. */
  uint64_t max_unreleased; /* The most there ever were. */
  uint64_t completed;      /* Bytes of reads ever complete. */
  uint64_t prefetched;     /* Bytes ever asked for by CACHE. */
};
struct fake_counts fake_pager_counts (struct pager *pager);

/* Wait until no read is unreleased and no client is left, at most ten
 * seconds.  Returns false if it took longer.
 */
bool fake_pager_wait_idle (struct pager *pager);

#endif /* BP_TEST_FAKE_PAGER_H */
