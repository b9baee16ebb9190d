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

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "lib/base/bytes.h"
#include "lib/sha256.h"

enum {
  NODE_SIZE = 8192,
  NODE_HEADER_SIZE = 12, /* u64 location, u32 length. */
};

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

static EVP_MD_CTX *
new_context (void)
{
  EVP_MD_CTX *ctx;

  must (pthread_once (&fetch_once, fetch_algorithm) == 0);
  ctx = EVP_MD_CTX_new ();
  must (ctx != NULL);
  return ctx;
}

static void
hash_node (EVP_MD_CTX *ctx, const struct bp_node_job *job)
{
  static const uint8_t zeros[NODE_SIZE];
  uint8_t header[NODE_HEADER_SIZE];

  assert (job->len <= job->padded && job->padded <= NODE_SIZE);
  put_le64 (header, job->location);
  put_le32 (header + 8, job->length);
  must (EVP_DigestInit_ex2 (ctx, algorithm, NULL));
  must (EVP_DigestUpdate (ctx, header, sizeof header));
  must (EVP_DigestUpdate (ctx, job->data, job->len));
  must (EVP_DigestUpdate (ctx, zeros, job->padded - job->len));
  must (EVP_DigestFinal_ex (ctx, job->digest, NULL));
}

void
bp_sha256_nodes (const struct bp_node_job *jobs, size_t count)
{
  EVP_MD_CTX *ctx = new_context ();

  for (size_t i = 0; i < count; i++)
    hash_node (ctx, &jobs[i]);
  EVP_MD_CTX_free (ctx);
}

void
bp_sha256 (const void *data, size_t len, uint8_t digest[BP_SHA256_SIZE])
{
  EVP_MD_CTX *ctx = new_context ();

  must (EVP_DigestInit_ex2 (ctx, algorithm, NULL));
  must (EVP_DigestUpdate (ctx, data, len));
  must (EVP_DigestFinal_ex (ctx, digest, NULL));
  EVP_MD_CTX_free (ctx);
}
