/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A client for shell tests that stays connected: nbd-reader URI.
 *
 *   OFFSET LENGTH  on standard input, a line each, is read; the answer is
 *                  the SHA-256 of the bytes, or "error NAME"
 *   anything else  disconnects, as the end of input does
 *
 * Says "ready" once it is connected.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libnbd.h>
#include <openssl/sha.h>

enum {
  MAX_LENGTH = 32 << 20
};

static uint8_t buf[MAX_LENGTH];

static void
answer (struct nbd_handle *nbd, uint64_t offset, size_t len)
{
  uint8_t digest[SHA256_DIGEST_LENGTH];

  if (nbd_pread (nbd, buf, len, offset, 0) == -1) {
    printf ("error %s\n", strerrorname_np (nbd_get_errno ()));
    return;
  }
  SHA256 (buf, len, digest);
  for (size_t i = 0; i < sizeof digest; i++)
    printf ("%02x", digest[i]);
  printf ("\n");
}

int
main (int argc, char *argv[])
{
  struct nbd_handle *nbd = nbd_create ();
  uint64_t offset;
  size_t len;

  if (argc != 2 || nbd == NULL || nbd_connect_uri (nbd, argv[1]) == -1) {
    fprintf (stderr, "nbd-reader: %s\n",
             argc == 2 ? nbd_get_error () : "one URI");
    return EXIT_FAILURE;
  }
  setvbuf (stdout, NULL, _IOLBF, 0);
  printf ("ready\n");
  while (scanf ("%" SCNu64 " %zu", &offset, &len) == 2 && len <= MAX_LENGTH)
    answer (nbd, offset, len);
  nbd_shutdown (nbd, 0);
  nbd_close (nbd);
  return EXIT_SUCCESS;
}
