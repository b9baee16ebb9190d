/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Threads that take jobs from a queue. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "daemon/pager/workers.h"

struct workers {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Under the lock. */
  struct job *head;
  struct job *tail;
  bool is_ending;

  unsigned nr_threads; /* Running. */
  pthread_t threads[];
};

/* The next job, or NULL when all is done and the end has come. */
static struct job *
next_job (struct workers *workers)
{
  LOCKED (&workers->lock);
  struct job *job;

  while (workers->head == NULL && !workers->is_ending)
    pthread_cond_wait (&workers->changed, &workers->lock);
  job = workers->head;
  if (job) {
    workers->head = job->next;
    if (workers->head == NULL)
      workers->tail = NULL;
  }
  return job;
}

static void *
work (void *opaque)
{
  struct workers *workers = opaque;
  struct job *job;

  while ((job = next_job (workers)) != NULL)
    job->run (job);
  return NULL;
}

int
workers_new (struct workers **ret_workers, unsigned nr_threads)
{
  struct workers *workers =
    calloc (1, sizeof *workers + nr_threads * sizeof workers->threads[0]);
  int r;

  if (workers == NULL)
    return -ENOMEM;
  pthread_mutex_init (&workers->lock, NULL);
  pthread_cond_init (&workers->changed, NULL);
  for (; workers->nr_threads < nr_threads; workers->nr_threads++) {
    r = pthread_create (&workers->threads[workers->nr_threads], NULL, work,
                        workers);
    if (r != 0) {
      workers_free (workers);
      return -r;
    }
  }
  *ret_workers = workers;
  return 0;
}

void
workers_add (struct workers *workers, struct job *job)
{
  LOCKED (&workers->lock);

  job->next = NULL;
  if (workers->tail)
    workers->tail->next = job;
  else
    workers->head = job;
  workers->tail = job;
  pthread_cond_signal (&workers->changed);
}

void
workers_free (struct workers *workers)
{
  if (workers == NULL)
    return;
  pthread_mutex_lock (&workers->lock);
  workers->is_ending = true;
  pthread_cond_broadcast (&workers->changed);
  pthread_mutex_unlock (&workers->lock);
  while (workers->nr_threads > 0)
    pthread_join (workers->threads[--workers->nr_threads], NULL);
  pthread_mutex_destroy (&workers->lock);
  pthread_cond_destroy (&workers->changed);
  free (workers);
}
