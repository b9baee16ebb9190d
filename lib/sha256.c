/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What hashes a list: chosen at the first one, or before. */
#include <config.h>

#include <errno.h>
#include <stdatomic.h>

#include "lib/base/range.h"
#include "lib/sha256-lanes.h"
#include "lib/sha256.h"

enum {
  /* From how many messages on the sixteen lanes of AVX-512, empty as some
   * may be, take no longer than the other way: SHA-NI, or OpenSSL on a CPU
   * that lacks it.  Measured on a Zen 5.
   */
  MIN_MANY = 9,
  MIN_MANY_WITHOUT_NI = 2,
};

/* A way to hash lists: what is left of one goes to the first kernel, its
 * lanes at a time, while that is at least min_messages; then to the second;
 * then to OpenSSL.
 */
struct plan {
  const char *name;
  struct {
    const struct sha256_kernel *kernel; /* Or NULL. */
    size_t min_messages;
  } steps[2];
};

static const struct plan openssl = { "openssl", { { NULL, 0 } } };
static const struct plan ni_alone = { "sha-ni", { { &sha256_ni, 1 } } };
static const struct plan avx512_alone = { "avx512",
                                          { { &sha256_avx512, 1 } } };
/* A single message is what OpenSSL is best at. */
static const struct plan ni = { "sha-ni", { { &sha256_ni, 2 } } };
static const struct plan avx512 = {
  "avx512", { { &sha256_avx512, MIN_MANY_WITHOUT_NI } }
};
static const struct plan avx512_and_ni = {
  "avx512+sha-ni", { { &sha256_avx512, MIN_MANY }, { &sha256_ni, 2 } }
};

/* NULL until it is chosen.  Threads that choose at the same time choose the
 * same, and plans are constant: relaxed.
 */
static const struct plan *_Atomic chosen;

static const struct plan *
fastest (void)
{
  const bool has_ni = sha256_ni.is_supported ();

  if (sha256_openssl_is_fips ())
    return &openssl;
  if (sha256_avx512.is_supported ())
    return has_ni ? &avx512_and_ni : &avx512;
  return has_ni ? &ni : &openssl;
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
  if ((way == BP_SHA256_NI && !sha256_ni.is_supported ()) ||
      (way == BP_SHA256_AVX512 && !sha256_avx512.is_supported ()))
    return -EOPNOTSUPP;
  switch (way) {
  case BP_SHA256_AUTO: choose (fastest ()); break;
  case BP_SHA256_OPENSSL: choose (&openssl); break;
  case BP_SHA256_NI: choose (&ni_alone); break;
  case BP_SHA256_AVX512: choose (&avx512_alone); break;
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

  for (size_t i = 0; i < ARRAY_LEN (plan->steps); i++) {
    const struct sha256_kernel *kernel = plan->steps[i].kernel;

    while (kernel && count >= plan->steps[i].min_messages) {
      const size_t n = MIN (count, kernel->max_lanes);

      sha256_run (kernel, jobs, (unsigned) n);
      jobs += n;
      count -= n;
    }
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
