/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* SHA-256: every way that the CPU can gives the digests that OpenSSL gives,
 * whatever the list.
 *
 * An input is a list of records of 8 bytes: u8 length of the header, u8 its
 * bytes, u16 length of the data, u32 zeros behind it.  The data are the last
 * bytes of the input, so that a byte too far is outside of it.
 */
#include <config.h>

#include <string.h>

#include <openssl/evp.h>

#include "fuzz/fuzz.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/sha256.h"

enum {
  RECORD_SIZE = 8,
  MAX_JOBS = 40,
  MAX_ZEROS = 10000,
};

const char fuzz_target[] = "sha256";
bool fuzz_decoded;

static struct bp_sha256_job
decode_record (const uint8_t *record, const uint8_t *data, size_t size)
{
  struct bp_sha256_job job = {
    .header_len = record[0] % (BP_SHA256_HEADER_MAX + 1),
    .len = MIN (get_le32 (record) >> 16, size),
    .nr_zeros = get_le32 (record + 4) % MAX_ZEROS,
  };

  memset (job.header, record[1], sizeof job.header);
  job.data = data + (size - job.len);
  return job;
}

static void
reference (const struct bp_sha256_job *job, uint8_t digest[BP_SHA256_SIZE])
{
  const size_t len = job->header_len + job->len + job->nr_zeros;
  CLEANUP_FREE uint8_t *message = calloc (1, len + 1);

  MUST (message != NULL);
  memcpy (message, job->header, job->header_len);
  memcpy (message + job->header_len, job->data, job->len);
  MUST (EVP_Digest (message, len, digest, NULL, EVP_sha256 (), NULL) == 1);
}

static void
try_way (enum bp_sha256_way way, const struct bp_sha256_job *jobs,
         size_t count, uint8_t wanted[MAX_JOBS][BP_SHA256_SIZE])
{
  if (bp_sha256_use (way) < 0)
    return; /* Not on this CPU. */
  for (size_t i = 0; i < count; i++)
    memset (jobs[i].digest, 0, BP_SHA256_SIZE);
  bp_sha256_list (jobs, count);
  for (size_t i = 0; i < count; i++)
    MUST (memcmp (jobs[i].digest, wanted[i], BP_SHA256_SIZE) == 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const enum bp_sha256_way ways[] = {
    BP_SHA256_AUTO, BP_SHA256_OPENSSL, BP_SHA256_NI, BP_SHA256_AVX512
  };
  const size_t count = MIN (size / RECORD_SIZE, MAX_JOBS);
  uint8_t got[MAX_JOBS][BP_SHA256_SIZE], wanted[MAX_JOBS][BP_SHA256_SIZE];
  struct bp_sha256_job jobs[MAX_JOBS];

  if (count == 0)
    return 0;
  fuzz_decoded = true;
  for (size_t i = 0; i < count; i++) {
    jobs[i] = decode_record (data + i * RECORD_SIZE, data, size);
    jobs[i].digest = got[i];
    reference (&jobs[i], wanted[i]);
  }
  for (size_t i = 0; i < ARRAY_LEN (ways); i++)
    try_way (ways[i], jobs, count, wanted);
  return 0;
}
