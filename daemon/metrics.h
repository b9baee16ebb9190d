/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The daemon's counters, in one table: it makes the enum, the counters,
 * the text that Prometheus reads, and the list that the documentation is
 * checked against.
 *
 * A counter is the sum of one for each thread slot, since every thread
 * counts all the time.  A gauge is one number: summed up while it moves
 * from slot to slot, it could be less than nothing.
 *
 * Threads: any.  All are relaxed: they order nothing.
 */
#ifndef BP_METRICS_H
#define BP_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/thread-slot.h"

/* X (name, type, help): type is counter or gauge.  Units are in names. */
/* clang-format off */
#define METRICS(X) \
  X (client_connections,   counter, "Client connections accepted") \
  X (client_tls_connections, counter, "TLS handshakes completed") \
  X (client_tls_failures,  counter, "TLS handshakes that failed") \
  X (client_reads,         counter, "Client reads answered") \
  X (client_bytes,         counter, "Bytes sent in answer to client reads") \
  X (client_errors,        counter, "Client reads answered with an error") \
  X (cache_hits,           counter, "Windows found verified in the cache") \
  X (cache_misses,         counter, "Windows that a client had to wait for") \
  X (cache_evictions,      counter, "Windows evicted") \
  X (cache_budget_bytes,   gauge,   "The cache's budget") \
  X (cache_used_bytes,     gauge,   "Bytes in use, of the budget") \
  X (cache_pinned_bytes,   gauge,   "Bytes pinned by replays") \
  X (verify_blobs,         counter, "Windows verified") \
  X (verify_bytes,         counter, "Bytes verified") \
  X (verify_corrupt,       counter, "Windows whose digest did not match") \
  X (driver_reads,         counter, "Windows asked for in data reads") \
  X (driver_nodes,         counter, "Tree nodes asked for, of large blobs") \
  X (driver_node_bytes,    counter, "Bytes of tree nodes received") \
  X (driver_bytes,         counter, "Bytes received in data reads") \
  X (driver_opens,         counter, "Blobs opened") \
  X (driver_errors,        counter, "Reads and requests that failed") \
  X (driver_missing,       counter, "Opens of blobs that the store lacks") \
  X (driver_retries,       counter, "Reads tried again") \
  X (driver_sessions,      counter, "Sessions made with the driver") \
  X (profile_records,      counter, "Messages logged and client opens noted") \
  X (profile_recordings,   counter, "Recordings started") \
  X (profile_replays,      counter, "Replays started")
/* clang-format on */

enum metric {
#define X(name, type, help) METRIC_##name,
  METRICS (X)
#undef X
  NR_METRICS
};

enum {
  METRIC_TYPE_counter,
  METRIC_TYPE_gauge,
#define X(name, type, help) METRIC_TYPE_OF_##name = METRIC_TYPE_##type,
  METRICS (X)
#undef X
};

/* Lines of the processor's cache of its own. */
struct metric_slot {
  _Alignas(64) _Atomic uint64_t values[NR_METRICS];
};
extern struct metric_slot metric_slots[THREAD_SLOTS];

/* Where this thread changes NAME. */
#define METRIC_MINE(name)                                     \
  (&metric_slots[METRIC_TYPE_OF_##name == METRIC_TYPE_counter \
                   ? thread_slot ()                           \
                   : 0]                                       \
      .values[METRIC_##name])

#define METRIC_ADD(name, n) \
  atomic_fetch_add_explicit (METRIC_MINE (name), (n), memory_order_relaxed)
#define METRIC_SUB(name, n) \
  atomic_fetch_sub_explicit (METRIC_MINE (name), (n), memory_order_relaxed)
#define METRIC_GET(name) metric_get (METRIC_##name)

uint64_t metric_get (enum metric metric);

#endif /* BP_METRICS_H */
