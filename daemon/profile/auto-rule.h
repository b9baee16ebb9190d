/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The judgement of the automatic mode (rule 10): is what was recorded a
 * boot, worth more than the profile it would replace?
 *
 * Threads: pure functions on the caller's memory.
 */
#ifndef BP_AUTO_RULE_H
#define BP_AUTO_RULE_H

#include <stdbool.h>
#include <stdint.h>

enum {
  COPY_STREAMS = 16
};

/* How much of what a client read came in ascending order without a gap.
 * A program that copies reads with several connections, or threads, each
 * in ascending order somewhere: so the ends of the last COPY_STREAMS
 * places are remembered.
 */
struct copy_detector {
  uint64_t ends[COPY_STREAMS]; /* Where each stream's next read would
                                  start, bytes; most recent first. */
  unsigned nr_ends;
  uint64_t bytes;         /* Read in all. */
  uint64_t bytes_in_line; /* Of these, by reads that went on with a
                             stream. */
};
void copy_detector_add (struct copy_detector *detector, uint64_t offset,
                        uint32_t len);

/* What the automatic mode knows when a recording has ended. */
struct auto_facts {
  bool is_complete;       /* Recorded to its end, nothing left out. */
  uint64_t roots;         /* Distinct ones recorded. */
  uint64_t old_roots;     /* Of the profile to be replaced; 0: none. */
  uint64_t bytes_touched; /* Of windows that the client touched. */
  uint64_t bytes_placed;  /* By the index; 0: not known. */
  const struct copy_detector *reads;
};

/* NULL if it is to be written, or why not. */
const char *auto_refuses (const struct auto_facts *facts);

#endif /* BP_AUTO_RULE_H */
