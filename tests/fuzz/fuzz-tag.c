/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Tags: what decodes is within its limits, and encodes and decodes again
 * to the same.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "lib/base/cleanup.h"
#include "lib/image-index.h"
#include "lib/tag.h"

const char fuzz_target[] = "tag";
bool fuzz_decoded;

static bool
is_terminated (const char *s, size_t len)
{
  return memchr (s, '\0', len) != NULL;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  /* Filled, so that a byte the decoder leaves alone differs. */
  struct bp_tag tag, again;
  CLEANUP_FREE char *text = NULL;
  struct bp_error err;
  int r;

  memset (&tag, 0xa5, sizeof tag);
  r = bp_tag_decode ((const char *) data, size, NULL, &tag, &err);
  if (r < 0) {
    MUST (r == -EPROTO && err.code == r);
    MUST (is_terminated (err.msg, sizeof err.msg));
    return 0;
  }
  fuzz_decoded = true;
  MUST (size <= BP_TAG_MAX_SIZE);
  MUST (is_terminated (tag.name, sizeof tag.name));
  MUST (is_terminated (tag.created, sizeof tag.created));
  MUST (is_terminated (tag.source, sizeof tag.source));
  MUST (bp_is_tag_name (tag.name));
  MUST (tag.size <= BP_IMAGE_MAX_SIZE);

  MUST (bp_tag_encode (&tag, &text, NULL) == 0);
  MUST (bp_tag_decode (text, strlen (text), tag.name, &again, NULL) == 0);
  MUST (strcmp (again.name, tag.name) == 0);
  MUST (bp_root_equal (&again.root, &tag.root));
  MUST (again.size == tag.size && again.segments == tag.segments);
  MUST (again.bytes == tag.bytes && again.bytes_new == tag.bytes_new);
  MUST (again.stored_new == tag.stored_new);
  /* A source that was cut inside a character loses its end. */
  MUST (strlen (again.source) <= strlen (tag.source));
  return 0;
}
