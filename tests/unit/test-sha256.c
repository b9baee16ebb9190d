/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* SHA-256, each way of it: against vectors of others, and against OpenSSL
 * on lists of every shape.  What the CPU cannot is skipped, and says so.
 */
#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <openssl/evp.h>

#include "harness/vectors.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/merkle.h"
#include "lib/sha256.h"

enum {
  MAX_JOBS = 40,
  /* Vectors above this are left to the tests of trees. */
  SMALL_VECTOR = 3 << 20,
};

/* A list of messages that own their data. */
struct list {
  size_t count;
  struct bp_sha256_job jobs[MAX_JOBS];
  uint8_t *data[MAX_JOBS]; /* As long as the message's data, and no more. */
  uint8_t digests[MAX_JOBS][BP_SHA256_SIZE];
};

static void
list_done (struct list *list)
{
  for (size_t i = 0; i < list->count; i++)
    free (list->data[i]);
}
#define CLEANUP_LIST __attribute__ ((cleanup (list_done)))

static void
list_add (struct list *list, uint32_t header_len, size_t len,
          size_t nr_zeros)
{
  struct bp_sha256_job *job = &list->jobs[list->count];
  uint8_t *data = malloc (len);

  cr_assert (data != NULL || len == 0);
  fill_splitmix (data, len, len + list->count);
  *job = (struct bp_sha256_job){
    .header = "0123456789ab",
    .header_len = header_len,
    .data = data,
    .len = len,
    .nr_zeros = nr_zeros,
    .digest = list->digests[list->count],
  };
  list->data[list->count++] = data;
}

/* What OpenSSL says of JOB as one message. */
static void
reference (const struct bp_sha256_job *job, uint8_t digest[BP_SHA256_SIZE])
{
  const size_t len = job->header_len + job->len + job->nr_zeros;
  CLEANUP_FREE uint8_t *message = calloc (1, len + 1);

  cr_assert_not_null (message);
  memcpy (message, job->header, job->header_len);
  if (job->len > 0)
    memcpy (message + job->header_len, job->data, job->len);
  cr_assert_eq (
    EVP_Digest (message, len, digest, NULL, EVP_sha256 (), NULL), 1);
}

static void
assert_list (struct list *list)
{
  uint8_t wanted[BP_SHA256_SIZE];

  memset (list->digests, 0, sizeof list->digests);
  bp_sha256_list (list->jobs, list->count);
  for (size_t i = 0; i < list->count; i++) {
    const struct bp_sha256_job *job = &list->jobs[i];

    reference (job, wanted);
    cr_assert_eq (memcmp (list->digests[i], wanted, sizeof wanted), 0,
                  "message %zu of %zu: %u + %zu + %zu bytes", i,
                  list->count, job->header_len, job->len, job->nr_zeros);
  }
}

/* ---- The ways ---- */

static enum bp_sha256_way ways[] = {
  BP_SHA256_AUTO,
  BP_SHA256_OPENSSL,
  BP_SHA256_NI,
  BP_SHA256_AVX512,
};

static void
use (enum bp_sha256_way way)
{
  if (bp_sha256_use (way) == 0)
    return;
  cr_log_warn ("NOT TESTED: this CPU cannot do way %d of SHA-256", way);
  cr_skip_test ("not on this CPU");
}

#define TEST_OF_EACH_WAY(name)                            \
  ParameterizedTestParameters (sha256, name)              \
  {                                                       \
    return cr_make_param_array (enum bp_sha256_way, ways, \
                                ARRAY_LEN (ways));        \
  }                                                       \
  ParameterizedTest (const enum bp_sha256_way *way, sha256, name)

TEST_OF_EACH_WAY (digests_are_those_of_every_vector)
{
  struct vectors row;
  size_t nr_rows = 0;

  use (*way);
  vectors_open (&row, "sha256.tsv");
  while (vectors_next (&row)) {
    const struct bp_root wanted = vector_root (row.columns[3]);
    const struct vector_content content = vector_content (&row);
    CLEANUP_FREE uint8_t *bytes = vector_bytes (&content);
    struct bp_root digest;

    bp_sha256 (bytes, content.len, digest.bytes);
    cr_assert (bp_root_equal (&digest, &wanted), "%s, %ju bytes",
               row.columns[1], (uintmax_t) content.len);
    nr_rows++;
  }
  cr_assert_eq (nr_rows, 39);
}

TEST_OF_EACH_WAY (roots_are_those_of_every_vector)
{
  struct vectors row;

  use (*way);
  vectors_open (&row, "merkle.tsv");
  while (vectors_next (&row)) {
    const struct bp_root wanted = vector_root (row.columns[3]);
    const struct vector_content content = vector_content (&row);
    CLEANUP_FREE uint8_t *bytes = NULL;
    struct bp_root root;

    if (content.len > SMALL_VECTOR)
      continue;
    bytes = vector_bytes (&content);
    cr_assert_eq (bp_merkle_root (bytes, content.len, &root), 0);
    cr_assert (bp_root_equal (&root, &wanted), "%s, %ju bytes",
               row.columns[1], (uintmax_t) content.len);
  }
}

/* Where the data and the zeros end, in each place of a block. */
TEST_OF_EACH_WAY (every_place_of_the_ends_in_a_block)
{
  use (*way);
  for (size_t len = 0; len <= 2 * 64; len++)
    for (size_t zeros = 0; zeros <= 2 * 64; zeros += MAX_JOBS) {
      CLEANUP_LIST struct list list = { 0 };

      for (size_t i = 0; i < MAX_JOBS; i++)
        list_add (&list, i % 2 ? 12 : 0, len, zeros + i);
      assert_list (&list);
    }
}

TEST_OF_EACH_WAY (lists_of_every_length)
{
  use (*way);
  for (size_t count = 0; count <= MAX_JOBS; count++) {
    CLEANUP_LIST struct list list = { 0 };

    for (size_t i = 0; i < count; i++)
      list_add (&list, 12, 8192 - 100 * i, 100 * i);
    assert_list (&list);
  }
}

/* Lanes that end at different times, one of them alone for long. */
TEST_OF_EACH_WAY (messages_of_random_lengths)
{
  uint64_t random = 4;

  use (*way);
  for (int n = 0; n < 300; n++) {
    CLEANUP_LIST struct list list = { 0 };
    const size_t count = 1 + splitmix64 (&random) % MAX_JOBS;

    for (size_t i = 0; i < count; i++) {
      const unsigned bits = (unsigned) (splitmix64 (&random) % 18);
      const size_t len = splitmix64 (&random) % (UINT64_C (1) << bits);

      list_add (&list, splitmix64 (&random) % 13, len,
                splitmix64 (&random) % 3 ? 0
                                         : splitmix64 (&random) % 40000);
    }
    assert_list (&list);
  }
}

TEST_OF_EACH_WAY (zeros_beside_data_and_alone)
{
  use (*way);
  for (size_t nr_data = 0; nr_data <= 4; nr_data++) {
    CLEANUP_LIST struct list list = { 0 };

    for (size_t i = 0; i < 20; i++)
      if (i % 4 < nr_data)
        list_add (&list, 12, 30000, 0);
      else
        list_add (&list, 0, 0, 30000 + i);
    assert_list (&list);
  }
}

Test (sha256, in_fips_mode_openssl_hashes_unless_told_otherwise)
{
  cr_assert_eq (EVP_default_properties_enable_fips (NULL, 1), 1);
  cr_assert_eq (bp_sha256_use (BP_SHA256_AUTO), 0);
  cr_assert_str_eq (bp_sha256_name (), "openssl");
}

Test (sha256, is_openssl_when_asked)
{
  cr_assert_eq (bp_sha256_use (BP_SHA256_OPENSSL), 0);
  cr_assert_str_eq (bp_sha256_name (), "openssl");
}
