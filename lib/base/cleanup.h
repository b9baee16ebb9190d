/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Resources that end with their scope.
 *
 * CLEANUP_FREE uint8_t *buf = NULL;   freed when buf goes out of scope
 * CLEANUP_CLOSE int fd = -1;          closed likewise
 *
 * Ownership leaves a function on its success line:
 * *ret = steal_ptr (&buf); or return steal_fd (&fd);
 */
#ifndef BP_CLEANUP_H
#define BP_CLEANUP_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <dirent.h>
#include <assert.h>

static inline void
cleanup_free (void *p)
{
  free (*(void **) p);
}

/* Keeps errno: cleanup runs after "return -errno" has been evaluated,
 * but also in callers that read errno later.
 */
static inline void
cleanup_close (int *fd)
{
  const int saved = errno;

  if (*fd >= 0)
    close (*fd);
  errno = saved;
}

static inline void
cleanup_fclose (FILE **fp)
{
  if (*fp)
    fclose (*fp);
}

static inline void
cleanup_closedir (DIR **dir)
{
  if (*dir)
    closedir (*dir);
}

static inline void
cleanup_unlock (pthread_mutex_t **lock)
{
  const int r = pthread_mutex_unlock (*lock);

  assert (r == 0);
  (void) r;
}

#define CLEANUP_FREE __attribute__ ((cleanup (cleanup_free)))
#define CLEANUP_CLOSE __attribute__ ((cleanup (cleanup_close)))
#define CLEANUP_FCLOSE __attribute__ ((cleanup (cleanup_fclose)))
#define CLEANUP_CLOSEDIR __attribute__ ((cleanup (cleanup_closedir)))

/* Hold LOCK until the end of the enclosing scope. */
#define LOCKED(lock)                                                 \
  __attribute__ ((cleanup (cleanup_unlock), unused)) pthread_mutex_t \
    *locked_scope_ = (pthread_mutex_lock (lock), (lock))

#define steal_ptr(ptr)                    \
  ({                                      \
    __typeof__ (*(ptr)) stolen_ = *(ptr); \
    *(ptr) = NULL;                        \
    stolen_;                              \
  })

static inline int
steal_fd (int *fd)
{
  const int stolen = *fd;

  *fd = -1;
  return stolen;
}

#endif /* BP_CLEANUP_H */
