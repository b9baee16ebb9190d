/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Slots, one thread after the other. */
#include <config.h>

#include <stdatomic.h>

#include "daemon/thread-slot.h"

unsigned
thread_slot (void)
{
  static _Atomic unsigned nr_threads;
  static _Thread_local unsigned mine; /* And 1; 0: not yet. */

  if (mine == 0)
    mine = 1 + atomic_fetch_add_explicit (&nr_threads, 1,
                                          memory_order_relaxed) %
                 THREAD_SLOTS;
  return mine - 1;
}
