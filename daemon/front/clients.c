/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Counting clients. */
#include <config.h>

#include <sys/eventfd.h>

#include "daemon/front/clients.h"
#include "lib/base/clock.h"

void
clients_init (struct clients *clients, int none_fd)
{
  atomic_init (&clients->count, 0);
  atomic_init (&clients->none_since_ns, now_ns ());
  clients->none_fd = none_fd;
}

void
clients_enter (struct clients *clients)
{
  atomic_fetch_add_explicit (&clients->count, 1, memory_order_relaxed);
}

/* The time is written before the count falls: who sees that there is no
 * client sees since when.
 */
void
clients_leave (struct clients *clients)
{
  atomic_store_explicit (&clients->none_since_ns, now_ns (),
                         memory_order_relaxed);
  if (atomic_fetch_sub_explicit (&clients->count, 1,
                                 memory_order_acq_rel) == 1 &&
      clients->none_fd != -1)
    eventfd_write (clients->none_fd, 1);
}

uint64_t
clients_none_ns (const struct clients *clients)
{
  uint64_t since, now;

  if (atomic_load_explicit (&clients->count, memory_order_acquire) > 0)
    return 0;
  since =
    atomic_load_explicit (&clients->none_since_ns, memory_order_relaxed);
  now = now_ns ();
  return now > since ? now - since : 0;
}
