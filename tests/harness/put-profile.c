/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Put a profile into a store, for shell tests:
 *
 *   put-profile STORE NAME [ROOT@OFFSET]...
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/profile.h"
#include "lib/store.h"

static void __attribute__ ((noreturn))
give_up (const char *why)
{
  fprintf (stderr, "put-profile: %s\n", why);
  exit (EXIT_FAILURE);
}

static struct bp_blob_message
parse (const char *text)
{
  struct bp_blob_message message;
  char root[BP_ROOT_HEX_SIZE];

  if (sscanf (text, "%64[0-9a-f]@%" SCNu64, root, &message.offset) != 2 ||
      bp_root_parse (root, &message.root) < 0)
    give_up ("a record is ROOT@OFFSET");
  return message;
}

int
main (int argc, char *argv[])
{
  CLEANUP_FREE struct bp_blob_message *messages = NULL;
  CLEANUP_FREE uint8_t *data = NULL;
  static const char meta[] = "{\"kind\":\"blob\"}";
  struct bp_store *store;
  struct bp_error err;
  size_t len;
  int i;

  if (argc < 3)
    give_up ("STORE NAME [ROOT@OFFSET]...");
  messages = calloc ((size_t) argc, sizeof *messages);
  for (i = 3; i < argc; i++)
    messages[i - 3] = parse (argv[i]);
  if (bp_profile_encode_blobs (messages, (size_t) argc - 3, &data, &len,
                               &err) < 0 ||
      bp_store_open (&store, argv[1], BP_STORE_WRITE, &err) < 0 ||
      bp_store_put_profile (store, argv[2], meta, strlen (meta), data, len,
                            &err) < 0)
    give_up (err.msg);
  bp_store_close (store);
  return EXIT_SUCCESS;
}
