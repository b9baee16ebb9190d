/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The driver's observer. */
#include <config.h>

#include <string.h>

#include "daemon/pager/observing.h"

void
observing_init (struct observing *observing)
{
  memset (observing, 0, sizeof *observing);
  pthread_rwlock_init (&observing->lock, NULL);
}

void
observing_done (struct observing *observing)
{
  pthread_rwlock_destroy (&observing->lock);
}

void
observing_set (struct observing *observing,
               const struct driver_observer *observer)
{
  static const struct driver_observer none;

  pthread_rwlock_wrlock (&observing->lock);
  observing->observer = observer ? *observer : none;
  pthread_rwlock_unlock (&observing->lock);
}

void
observing_key_opened (struct observing *observing, uint64_t key,
                      const struct bp_root *root)
{
  const struct driver_observer *observer = &observing->observer;

  pthread_rwlock_rdlock (&observing->lock);
  if (observer->key_opened)
    observer->key_opened (observer->opaque, key, root);
  pthread_rwlock_unlock (&observing->lock);
}

void
observing_session_lost (struct observing *observing)
{
  const struct driver_observer *observer = &observing->observer;

  pthread_rwlock_rdlock (&observing->lock);
  if (observer->session_lost)
    observer->session_lost (observer->opaque);
  pthread_rwlock_unlock (&observing->lock);
}
