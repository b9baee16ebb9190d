/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What hashes a list: chosen at the first one, or before. */
#include <config.h>

#include <errno.h>
#include <stdatomic.h>

#include "lib/base/range.h"
#include "lib/sha256-lanes.h"
#include "lib/sha256.h"

/* A way to hash lists: what is left of one goes to FEW, a kernel's lanes
 * at a time, while that is at least min_few messages; then to OpenSSL.
 */
struct plan {
  const char *name;
  const struct sha256_kernel *few; /* Or NULL. */
  size_t min_few;
};

static const struct plan openssl = { "openssl", NULL, 0 };
static const struct plan ni_alone = { "sha-ni", &sha256_ni, 1 };
/* A single message is what OpenSSL is best at. */
static const struct plan ni = { "sha-ni", &sha256_ni, 2 };

/* NULL until it is chosen.  Threads that choose at the same time choose the
 * same, and plans are constant: relaxed.
 */
static const struct plan *_Atomic chosen;

static const struct plan *
fastest (void)
{
  if (sha256_openssl_is_fips () || !sha256_ni.is_supported ())
    return &openssl;
  return &ni;
}

static void
choose (const struct plan *plan)
{
  atomic_store_explicit (&chosen, plan, memory_order_relaxed);
}

static const struct plan *
get_plan (void)
{
  const struct plan *plan =
    atomic_load_explicit (&chosen, memory_order_relaxed);

  if (plan == NULL) {
    plan = fastest ();
    choose (plan);
  }
  return plan;
}

int
bp_sha256_use (enum bp_sha256_way way)
{
  if (way == BP_SHA256_NI && !sha256_ni.is_supported ())
    return -EOPNOTSUPP;
  switch (way) {
  case BP_SHA256_AUTO: choose (fastest ()); break;
  case BP_SHA256_OPENSSL: choose (&openssl); break;
  case BP_SHA256_NI: choose (&ni_alone); break;
  }
  return 0;
}

const char *
bp_sha256_name (void)
{
  return get_plan ()->name;
}

void
bp_sha256_list (const struct bp_sha256_job *jobs, size_t count)
{
  const struct plan *plan = get_plan ();

  while (plan->few && count >= plan->min_few && count > 0) {
    const size_t n = MIN (count, plan->few->max_lanes);

    sha256_run (plan->few, jobs, (unsigned) n);
    jobs += n;
    count -= n;
  }
  if (count > 0)
    sha256_run_openssl (jobs, count);
}

void
bp_sha256 (const void *data, size_t len, uint8_t digest[BP_SHA256_SIZE])
{
  const struct bp_sha256_job job = {
    .data = data,
    .len = len,
    .digest = digest,
  };

  bp_sha256_list (&job, 1);
}
