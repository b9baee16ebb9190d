/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* How many clients there are, and since when there have been none.
 *
 * A client enters in the acceptor's thread and leaves in its shard's.
 * Threads: any.
 */
#ifndef BP_CLIENTS_H
#define BP_CLIENTS_H

#include <stdatomic.h>
#include <stdint.h>

struct clients {
  /* Relaxed, but for the last who leaves: its release is paired with the
   * acquire in clients_none_ns.
   */
  _Atomic unsigned count;
  /* The clock when the last one left, or at the start; relaxed. */
  _Atomic uint64_t none_since_ns;
  /* An eventfd, written when the last one leaves; or -1. */
  int none_fd;
};

void clients_init (struct clients *clients, int none_fd);

void clients_enter (struct clients *clients);
void clients_leave (struct clients *clients);

/* For how long there have been none; 0 while there are some. */
uint64_t clients_none_ns (const struct clients *clients);

#endif /* BP_CLIENTS_H */
