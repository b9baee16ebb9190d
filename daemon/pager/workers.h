/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A few threads for what waits for the driver: resolving names, listing
 * images.  Jobs run in order of arrival, several at once.
 */
#ifndef BP_WORKERS_H
#define BP_WORKERS_H

struct workers;

struct job {
  struct job *next;
  void (*run) (struct job *job); /* Owns JOB; may block. */
};

/* Returns 0 or a negative errno. */
int workers_new (struct workers **ret_workers, unsigned nr_threads);

/* Run JOB on one of the threads. */
void workers_add (struct workers *workers, struct job *job);

/* Run what has been added, then end. */
void workers_free (struct workers *workers);

#endif /* BP_WORKERS_H */
