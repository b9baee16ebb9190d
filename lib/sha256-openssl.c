/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* SHA-256 through OpenSSL, one message at a time.
 *
 * The algorithm is looked up once a process and never released; a
 * context lives for one list.  OpenSSL fails here only when memory has
 * run out or its configuration forbids SHA-256, and then nothing can be
 * verified any more: the process ends.
 */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/provider.h>

#include "lib/base/range.h"
#include "lib/sha256-lanes.h"

static pthread_once_t fetch_once = PTHREAD_ONCE_INIT;
static EVP_MD *algorithm; /* Written once, under fetch_once. */

/* OpenSSL returns 1 for success. */
static void
must (int r)
{
  if (r != 1)
    abort ();
}

static void
fetch_algorithm (void)
{
  algorithm = EVP_MD_fetch (NULL, "SHA256", NULL);
  must (algorithm != NULL);
}

static void
need_algorithm (void)
{
  must (pthread_once (&fetch_once, fetch_algorithm) == 0);
}

static void
update (EVP_MD_CTX *ctx, const void *data, size_t len)
{
  must (EVP_DigestUpdate (ctx, data, len));
}

static void
hash (EVP_MD_CTX *ctx, const struct bp_sha256_job *job)
{
  static const uint8_t zeros[4096];

  must (EVP_DigestInit_ex2 (ctx, algorithm, NULL));
  update (ctx, job->header, job->header_len);
  update (ctx, job->data, job->len);
  for (size_t left = job->nr_zeros; left > 0;) {
    const size_t n = MIN (left, sizeof zeros);

    update (ctx, zeros, n);
    left -= n;
  }
  must (EVP_DigestFinal_ex (ctx, job->digest, NULL));
}

void
sha256_run_openssl (const struct bp_sha256_job *jobs, size_t count)
{
  EVP_MD_CTX *ctx;

  need_algorithm ();
  ctx = EVP_MD_CTX_new ();
  must (ctx != NULL);
  for (size_t i = 0; i < count; i++)
    hash (ctx, &jobs[i]);
  EVP_MD_CTX_free (ctx);
}

/* Either the configuration asks for it by properties, or by there being no
 * other provider than the FIPS one.
 */
bool
sha256_openssl_is_fips (void)
{
  const OSSL_PROVIDER *provider;

  if (EVP_default_properties_is_fips_enabled (NULL))
    return true;
  need_algorithm ();
  provider = EVP_MD_get0_provider (algorithm);
  return strcmp (OSSL_PROVIDER_get0_name (provider), "fips") == 0;
}
