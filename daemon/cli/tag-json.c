/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A tag as JSON: what its file says, parsed back, so that there is one
 * place that writes tags.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/cli/tag-json.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"

struct json_object *
tag_to_json (const struct bp_tag *tag)
{
  CLEANUP_FREE char *text = NULL;
  struct json_object *obj;

  if (bp_tag_encode (tag, &text, NULL) < 0 ||
      bp_json_parse (text, strlen (text), &obj) < 0)
    abort (); /* Out of memory: what we encode can be parsed. */
  return obj;
}
