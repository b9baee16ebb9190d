/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A small number for each thread.
 *
 * What all threads change all the time is kept once for each slot, so that
 * cores do not fight for it.  Threads take the slots in turn, as they
 * first ask: few have one of their own, and some share one if there are
 * many.  So a slot is a hint where to go, not a right: what stands there
 * is atomic or locked.
 */
#ifndef BP_THREAD_SLOT_H
#define BP_THREAD_SLOT_H

enum {
  THREAD_SLOTS = 16,
};

/* From 0 to THREAD_SLOTS - 1; always the same for a thread. */
unsigned thread_slot (void);

#endif /* BP_THREAD_SLOT_H */
