/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The counters themselves. */
#include <config.h>

#include "daemon/metrics.h"

struct metric_slot metric_slots[THREAD_SLOTS];

uint64_t
metric_get (enum metric metric)
{
  uint64_t sum = 0;
  unsigned i;

  for (i = 0; i < THREAD_SLOTS; i++)
    sum += atomic_load_explicit (&metric_slots[i].values[metric],
                                 memory_order_relaxed);
  return sum;
}
