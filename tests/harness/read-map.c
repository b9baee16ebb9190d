/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* read-map URI SIZE: read an export in pieces of SIZE bytes, one after
 * another, and print which could be read, neighbours joined:
 *
 *   OFFSET LENGTH ok
 *   OFFSET LENGTH EIO
 *
 * For tests of what one corrupt byte costs.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libnbd.h>

#include "lib/base/range.h"
#include "lib/base/size.h"

enum {
  MAX_PIECE = 32 << 20
};

static int
die (const char *what)
{
  fprintf (stderr, "read-map: %s: %s\n", what, nbd_get_error ());
  return 1;
}

/* 0, or the errno of the answer. */
static int
read_piece (struct nbd_handle *nbd, uint64_t offset, uint64_t len)
{
  static uint8_t buf[MAX_PIECE];

  return nbd_pread (nbd, buf, len, offset, 0) == 0 ? 0 : nbd_get_errno ();
}

static void
print_run (uint64_t start, uint64_t end, int code)
{
  if (start < end)
    printf ("%" PRIu64 " %" PRIu64 " %s\n", start, end - start,
            code == 0     ? "ok"
            : code == EIO ? "EIO"
                          : strerrorname_np (code));
}

int
main (int argc, char **argv)
{
  struct nbd_handle *nbd = nbd_create ();
  uint64_t piece, start = 0, offset = 0;
  int64_t size;
  int last = 0;

  if (argc != 3 || bp_number_parse (argv[2], 1, MAX_PIECE, &piece) < 0) {
    fprintf (stderr, "usage: read-map URI SIZE\n");
    return 2;
  }
  if (nbd == NULL || nbd_connect_uri (nbd, argv[1]) == -1)
    return die (argv[1]);
  size = nbd_get_size (nbd);
  if (size == -1)
    return die ("size");

  while (offset < (uint64_t) size) {
    const uint64_t len = MIN (piece, (uint64_t) size - offset);
    const int code = read_piece (nbd, offset, len);

    if (code != last) {
      print_run (start, offset, last);
      start = offset;
      last = code;
    }
    offset += len;
  }
  print_run (start, offset, last);
  nbd_close (nbd);
  return 0;
}
