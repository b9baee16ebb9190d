/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Verification of windows.
 *
 * A blob of one window is verified by recomputing its root; a window of a
 * larger one by the nodes that lead to it, or by what is left of them from
 * an earlier time: its digest.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdbool.h>

#include "daemon/metrics.h"
#include "daemon/pager/verifier.h"

static bool
is_whole_blob (const struct verify_job *job)
{
  return job->size <= BP_WINDOW_SIZE;
}

static void
count_verified (const struct verify_job *job)
{
  if (job->status < 0)
    return; /* A second try decides whether it is counted as corrupt. */
  METRIC_ADD (verify_blobs, 1);
  METRIC_ADD (verify_bytes, job->len);
}

/* Of a window of a larger blob. */
static int
verify_window (const struct verify_job *job)
{
  struct bp_root digest;

  if (job->digest == NULL)
    return bp_merkle_verify_window (job->root, job->size, job->offset,
                                    job->data, job->len, job->nodes, NULL);
  bp_window_digest (job->offset, job->data, job->len, &digest);
  return bp_root_equal (&digest, job->digest) ? 0 : -EBADMSG;
}

void
verify_list (struct verify_job *jobs, size_t count)
{
  struct bp_merkle_job merkle_jobs[VERIFY_BATCH] = { 0 };
  struct bp_root computed[VERIFY_BATCH];
  size_t nr = 0;

  assert (count <= VERIFY_BATCH);
  for (size_t i = 0; i < count; i++)
    if (is_whole_blob (&jobs[i])) {
      merkle_jobs[nr] = (struct bp_merkle_job){
        .data = jobs[i].data, .len = jobs[i].len, .root = &computed[nr]
      };
      nr++;
    }
  bp_merkle_roots (merkle_jobs, nr);

  nr = 0;
  for (size_t i = 0; i < count; i++) {
    struct verify_job *job = &jobs[i];

    if (!is_whole_blob (job))
      job->status = verify_window (job);
    else
      job->status = bp_root_equal (&computed[nr++], job->root) &&
                        job->len == job->size
                      ? 0
                      : -EBADMSG;
    count_verified (job);
  }
}
