/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Admission: which reads may hold bytes, in order of arrival.
 *
 * Unfinished replies hold at most a share of the budget.  A read that
 * does not fit waits, and so does everybody who comes after it; when
 * nothing is admitted the first in the queue always is, whatever its
 * size.  So two reads can never each hold what the other waits for.
 *
 * Threads: any.  When nobody waits, entering and leaving take no lock.
 */
#ifndef BP_ADMISSION_H
#define BP_ADMISSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct admission_entry {
  struct admission_entry *next;
  uint64_t charge; /* Bytes. */
  bool is_queued;  /* Under the lock. */
  /* Called once if the entry had to wait: from whoever made room, no lock
   * held.
   */
  void (*admitted) (struct admission_entry *entry);
};

struct admission {
  uint64_t share;           /* Bytes. */
  _Atomic uint64_t charged; /* By those who are admitted. */
  _Atomic uint32_t nr_queued;
  pthread_mutex_t lock;
  /* Under the lock. */
  struct admission_entry *head;
  struct admission_entry *tail;
  bool is_pumping; /* Somebody is admitting; he looks again. */
};

void admission_init (struct admission *admission, uint64_t share);
void admission_done (struct admission *admission);

/* Returns true if ENTRY is admitted now. */
bool admission_enter (struct admission *admission,
                      struct admission_entry *entry);

/* Returns true if ENTRY was still waiting, and is no more. */
bool admission_withdraw (struct admission *admission,
                         struct admission_entry *entry);

/* ENTRY holds CHARGE bytes after all. */
void admission_set_charge (struct admission *admission,
                           struct admission_entry *entry, uint64_t charge);

/* ENTRY, which was admitted, holds nothing any more.  May admit others. */
void admission_leave (struct admission *admission,
                      struct admission_entry *entry);

#endif /* BP_ADMISSION_H */
