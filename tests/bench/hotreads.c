/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a hot read costs in the pager, without a front and without a
 * socket: reads of an image that is all in the cache, by 1 and by 2
 * threads, in batches that are held together and then released, as an
 * event loop does.
 *
 *   hotreads [ROUNDS]
 *
 * Prints nanoseconds of CPU time a read (of the thread, so that what else
 * runs on the machine counts little): the median of the rounds, which
 * take turns.  What two threads pay more than one is what they fight for.
 */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/range.h"
#include "harness/check.h"
#include "harness/pager-fixture.h"

enum {
  MIB = 1 << 20,
  IMAGE_BYTES = 256 * MIB,
  BUDGET = 512 * MIB,
  BATCH = 16,
  BATCHES = 20000,
  MAX_THREADS = 2,
  MAX_ROUNDS = 101,
};

struct kind {
  const char *name;
  uint32_t len;
  unsigned nr_threads;
};

static const struct kind kinds[] = {
  { "4 KiB, 1 thread", 4096, 1 },
  { "4 KiB, 2 threads", 4096, 2 },
  { "128 KiB, 1 thread", 128 << 10, 1 },
  { "128 KiB, 2 threads", 128 << 10, 2 },
};

struct reader {
  pthread_t thread;
  pthread_barrier_t *start;
  struct export *export;
  uint32_t len;
  uint64_t x; /* Random. */
  double ns_a_read;
};

static double
thread_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

/* A hot read completes at once. */
static void
not_called (struct read_op *op)
{
  (void) op;
  CHECK (!"hot");
}

static uint64_t
random_offset (struct reader *reader)
{
  reader->x = reader->x * UINT64_C (6364136223846793005) + 1;
  return (reader->x >> 20) % (IMAGE_BYTES / reader->len) * reader->len;
}

static void
read_batch (struct reader *reader, struct read_op *ops)
{
  unsigned i;

  for (i = 0; i < BATCH; i++) {
    ops[i] = (struct read_op){ .export = reader->export,
                               .offset = random_offset (reader),
                               .len = reader->len,
                               .complete = not_called };
    CHECK (export_read (&ops[i]));
    CHECK_EQ (ops[i].status, 0);
  }
  for (i = 0; i < BATCH; i++)
    read_op_release (&ops[i]);
}

static void *
read_on (void *opaque)
{
  struct reader *reader = opaque;
  struct read_op ops[BATCH];
  double start;
  unsigned i;

  pthread_barrier_wait (reader->start);
  start = thread_ns ();
  for (i = 0; i < BATCHES; i++)
    read_batch (reader, ops);
  reader->ns_a_read = (thread_ns () - start) / ((double) BATCHES * BATCH);
  return NULL;
}

static double
measure (struct export *export, const struct kind *kind)
{
  struct reader readers[MAX_THREADS];
  pthread_barrier_t start;
  double sum = 0;
  unsigned i;

  pthread_barrier_init (&start, NULL, kind->nr_threads);
  for (i = 0; i < kind->nr_threads; i++) {
    readers[i] = (struct reader){ .start = &start,
                                  .export = export,
                                  .len = kind->len,
                                  .x = i };
    CHECK_EQ (pthread_create (&readers[i].thread, NULL, read_on,
                              &readers[i]),
              0);
  }
  for (i = 0; i < kind->nr_threads; i++) {
    pthread_join (readers[i].thread, NULL);
    sum += readers[i].ns_a_read;
  }
  pthread_barrier_destroy (&start);
  return sum / kind->nr_threads;
}

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;

  return x < y ? -1 : x > y;
}

static void
print_median (const char *name, double *ns, size_t rounds)
{
  qsort (ns, rounds, sizeof ns[0], compare);
  printf ("%-20s %8.1f ns a read\n", name, ns[rounds / 2]);
}

/* Open the image and read all of it. */
static struct export *
heat (struct fixture *f, const uint8_t *image)
{
  struct export *export;
  uint64_t offset;

  fake_add_image (f->driver, "disk", image, IMAGE_BYTES);
  CHECK_EQ (fixture_open (f, "disk", &export), 0);
  for (offset = 0; offset < IMAGE_BYTES; offset += MIB)
    CHECK_EQ (read_and_compare (export, image, offset, MIB), 0);
  fake_wait_idle (f->driver);
  return export;
}

int
main (int argc, char *argv[])
{
  static double ns[ARRAY_LEN (kinds)][MAX_ROUNDS];
  const size_t rounds = argc > 1 ? strtoul (argv[1], NULL, 10) : 5;
  uint8_t *image = image_bytes (IMAGE_BYTES, 1, false);
  struct export *export;
  struct fixture f;
  size_t k, i;

  CHECK (rounds >= 1 && rounds <= MAX_ROUNDS);
  fixture_init (&f, BUDGET);
  export = heat (&f, image);
  for (i = 0; i < rounds; i++)
    for (k = 0; k < ARRAY_LEN (kinds); k++)
      ns[k][i] = measure (export, &kinds[k]);
  for (k = 0; k < ARRAY_LEN (kinds); k++)
    print_median (kinds[k].name, ns[k], rounds);
  fixture_close (export);
  fixture_done (&f);
  free (image);
  return 0;
}
