/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The judgement of the automatic mode.  Every threshold of rule 10 stands
 * in auto_refuses, in its order.
 */
#include <config.h>

#include <stddef.h>
#include <string.h>

#include "daemon/profile/auto-rule.h"

void
copy_detector_add (struct copy_detector *detector, uint64_t offset,
                   uint32_t len)
{
  unsigned i;

  detector->bytes += len;
  for (i = 0; i < detector->nr_ends; i++) {
    if (detector->ends[i] == offset) {
      detector->bytes_in_line += len;
      break;
    }
  }
  if (i == detector->nr_ends) {
    if (detector->nr_ends < COPY_STREAMS)
      detector->nr_ends++;
    else
      i--; /* The one that was idle longest. */
  }
  memmove (&detector->ends[1], &detector->ends[0],
           i * sizeof detector->ends[0]);
  detector->ends[0] = offset + len;
}

const char *
auto_refuses (const struct auto_facts *facts)
{
  const struct copy_detector *reads = facts->reads;

  if (!facts->is_complete)
    return "it is not complete";
  if (facts->roots == 0)
    return "nothing was read";
  if (facts->roots < facts->old_roots / 10 + (facts->old_roots % 10 != 0))
    return "it has less than a tenth of the blobs of the old one";
  if (facts->bytes_placed > 0 &&
      facts->bytes_touched > facts->bytes_placed / 4)
    return "more than a quarter of the image was read";
  if (reads->bytes_in_line >= reads->bytes - reads->bytes / 10)
    return "it was read from end to end, as a copy is";
  return NULL;
}
