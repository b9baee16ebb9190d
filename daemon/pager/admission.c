/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The queue of reads that wait to be admitted.
 *
 * Nobody is forgotten: whoever queues first counts itself in nr_queued
 * and then tries once more, and whoever leaves first gives back its
 * charge and then reads nr_queued, all sequentially consistent.
 *
 * One thread pumps at a time, so that a read which is admitted, answered
 * and released within the call that admitted it does not pump a level
 * deeper.
 */
#include <config.h>

#include "lib/base/cleanup.h"
#include "daemon/pager/admission.h"

void
admission_init (struct admission *admission, uint64_t share)
{
  admission->share = share;
  pthread_mutex_init (&admission->lock, NULL);
}

void
admission_done (struct admission *admission)
{
  pthread_mutex_destroy (&admission->lock);
}

static bool
try_charge (struct admission *admission, uint64_t charge)
{
  uint64_t charged = atomic_load (&admission->charged);

  do
    if (charged != 0 && charged + charge > admission->share)
      return false;
  while (!atomic_compare_exchange_weak (&admission->charged, &charged,
                                        charged + charge));
  return true;
}

/* Called with the lock held, as are the next two. */
static void
append (struct admission *admission, struct admission_entry *entry)
{
  entry->next = NULL;
  entry->is_queued = true;
  if (admission->tail)
    admission->tail->next = entry;
  else
    admission->head = entry;
  admission->tail = entry;
  atomic_fetch_add (&admission->nr_queued, 1);
}

static void
unlink_after (struct admission *admission, struct admission_entry *prev,
              struct admission_entry *entry)
{
  if (prev)
    prev->next = entry->next;
  else
    admission->head = entry->next;
  if (admission->tail == entry)
    admission->tail = prev;
  entry->is_queued = false;
  atomic_fetch_sub (&admission->nr_queued, 1);
}

/* The head of the queue if it may go, taken off and charged. */
static struct admission_entry *
take_head (struct admission *admission)
{
  struct admission_entry *entry = admission->head;

  if (entry == NULL || !try_charge (admission, entry->charge))
    return NULL;
  unlink_after (admission, NULL, entry);
  return entry;
}

bool
admission_enter (struct admission *admission, struct admission_entry *entry)
{
  entry->is_queued = false;
  if (atomic_load (&admission->nr_queued) == 0 &&
      try_charge (admission, entry->charge))
    return true;

  LOCKED (&admission->lock);
  append (admission, entry);
  return admission->head == entry && take_head (admission) == entry;
}

static void
pump (struct admission *admission)
{
  struct admission_entry *entry;

  pthread_mutex_lock (&admission->lock);
  if (admission->is_pumping) {
    pthread_mutex_unlock (&admission->lock);
    return;
  }
  admission->is_pumping = true;
  while ((entry = take_head (admission)) != NULL) {
    pthread_mutex_unlock (&admission->lock);
    entry->admitted (entry);
    pthread_mutex_lock (&admission->lock);
  }
  admission->is_pumping = false;
  pthread_mutex_unlock (&admission->lock);
}

bool
admission_withdraw (struct admission *admission,
                    struct admission_entry *entry)
{
  struct admission_entry *prev = NULL, *here;

  pthread_mutex_lock (&admission->lock);
  if (!entry->is_queued) {
    pthread_mutex_unlock (&admission->lock);
    return false;
  }
  for (here = admission->head; here != entry; here = here->next)
    prev = here;
  unlink_after (admission, prev, entry);
  pthread_mutex_unlock (&admission->lock);
  pump (admission); /* A smaller one may have stood behind it. */
  return true;
}

static void
give_back (struct admission *admission, uint64_t bytes)
{
  atomic_fetch_sub (&admission->charged, bytes);
  if (atomic_load (&admission->nr_queued) > 0)
    pump (admission);
}

void
admission_set_charge (struct admission *admission,
                      struct admission_entry *entry, uint64_t charge)
{
  const uint64_t before = entry->charge;

  entry->charge = charge;
  if (charge >= before)
    atomic_fetch_add (&admission->charged, charge - before);
  else
    give_back (admission, before - charge);
}

void
admission_leave (struct admission *admission, struct admission_entry *entry)
{
  const uint64_t charge = entry->charge;

  entry->charge = 0;
  give_back (admission, charge);
}
