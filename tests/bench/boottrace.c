/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* boottrace: issue the reads of a boot, one after another, and say how
 * long they took.
 *
 *   boottrace TRACE URI [REFERENCE]
 *
 * TRACE has a line "OFFSET LENGTH" for each read (record-trace.sh makes
 * one).  With REFERENCE, a file, every byte is compared.  One reader that
 * waits for each answer is what a boot looks like to its disk, without
 * the machine's own noise.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libnbd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"

enum {
  MAX_READ = 32 << 20
};

struct totals {
  uint64_t reads;
  uint64_t bytes;
  uint64_t wrong;    /* Reads that differ from the reference. */
  uint64_t spent_ns; /* In I/O alone. */
};

static void __attribute__ ((noreturn))
die (const char *what, const char *why)
{
  fprintf (stderr, "boottrace: %s: %s\n", what, why);
  exit (EXIT_FAILURE);
}

static void
read_once (struct nbd_handle *nbd, int reference, uint64_t offset,
           size_t len, struct totals *totals)
{
  static uint8_t buf[MAX_READ], wanted[MAX_READ];
  const uint64_t start = now_ns ();

  if (nbd_pread (nbd, buf, len, offset, 0) == -1)
    die ("read", nbd_get_error ());
  totals->spent_ns += now_ns () - start;
  totals->reads++;
  totals->bytes += len;
  if (reference == -1)
    return;
  if (bp_pread_exact (reference, wanted, len, offset) < 0)
    die ("reference", "cannot be read");
  if (memcmp (buf, wanted, len) != 0)
    totals->wrong++;
}

int
main (int argc, char *argv[])
{
  struct totals totals = { 0 };
  struct nbd_handle *nbd;
  uint64_t offset, len;
  int reference = -1;
  FILE *trace;

  if (argc < 3 || argc > 4) {
    fprintf (stderr, "usage: boottrace TRACE URI [REFERENCE]\n");
    return 2;
  }
  trace = fopen (argv[1], "r");
  if (trace == NULL)
    die (argv[1], strerror (errno));
  if (argc == 4 && (reference = open (argv[3], O_RDONLY)) == -1)
    die (argv[3], strerror (errno));
  nbd = nbd_create ();
  if (nbd == NULL || nbd_connect_uri (nbd, argv[2]) == -1)
    die (argv[2], nbd_get_error ());

  while (fscanf (trace, "%" SCNu64 " %" SCNu64, &offset, &len) == 2) {
    if (len > MAX_READ)
      die (argv[1], "a read is larger than 32 MiB");
    read_once (nbd, reference, offset, len, &totals);
  }
  if (!feof (trace))
    die (argv[1], "not a trace");
  printf ("%.3f s in I/O, %" PRIu64 " reads, %.1f MiB, %" PRIu64 " wrong\n",
          (double) totals.spent_ns / NS_PER_SEC, totals.reads,
          (double) totals.bytes / (1 << 20), totals.wrong);
  nbd_close (nbd);
  fclose (trace);
  return totals.wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
