/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* verifying ROUNDS: how fast lists of segments are verified on one core.
 *
 * Every round measures each contender once on each list, one after another:
 * OpenSSL called for one block after the other, as one would who knows only
 * it; and bp_verify_windows, for each way of SHA-256 that this CPU can.  A
 * line each: LIST, tab, CONTENDER, tab, MB/s of processor time.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/evp.h>

#include "harness/check.h"
#include "harness/vectors.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "lib/merkle.h"
#include "lib/sha256.h"

enum {
  MAX_SEGMENTS = 64,
  MIN_TIME_MS = 30, /* Of a measurement, at least. */
};

static const struct shape {
  size_t count; /* Segments in the list. */
  size_t len;   /* Bytes of each. */
} shapes[] = {
  { 64, 65536 },
  { 16, 40960 },
  { 4, 65536 },
  { 1, 131072 },
  { 1, 16384 },
};

static struct bp_window windows[MAX_SEGMENTS];
static struct bp_root roots[MAX_SEGMENTS];

static void
set_list (const struct shape *shape)
{
  static uint8_t bytes[MAX_SEGMENTS << 16];

  fill_splitmix (bytes, shape->count * shape->len, 1);
  for (size_t i = 0; i < shape->count; i++) {
    const uint8_t *data = bytes + i * shape->len;

    CHECK_EQ (bp_merkle_root (data, shape->len, &roots[i]), 0);
    windows[i] = (struct bp_window){
      .size = shape->len,
      .data = data,
      .len = shape->len,
      .root = &roots[i],
    };
  }
}

/* ---- OpenSSL, one block at a time ---- */

static EVP_MD *md;
static EVP_MD_CTX *ctx;

static void
hash_node (uint64_t location, uint32_t length, const uint8_t *data,
           size_t len, uint8_t *digest)
{
  static const uint8_t zeros[BP_BLOCK_SIZE];
  uint8_t header[12];

  put_le64 (header, location);
  put_le32 (header + 8, length);
  CHECK_EQ (EVP_DigestInit_ex2 (ctx, md, NULL), 1);
  CHECK_EQ (EVP_DigestUpdate (ctx, header, sizeof header), 1);
  CHECK_EQ (EVP_DigestUpdate (ctx, data, len), 1);
  CHECK_EQ (EVP_DigestUpdate (ctx, zeros, BP_BLOCK_SIZE - len), 1);
  CHECK_EQ (EVP_DigestFinal_ex (ctx, digest, NULL), 1);
}

static void
verify_with_openssl (const struct bp_window *window)
{
  uint8_t leaves[BP_WINDOW_SIZE / BP_BLOCK_SIZE][BP_ROOT_SIZE];
  const uint8_t *data = window->data;
  struct bp_root root;
  size_t count = 0;

  for (size_t at = 0; at < window->len; at += BP_BLOCK_SIZE) {
    const size_t n = MIN (BP_BLOCK_SIZE, window->len - at);

    hash_node (at, (uint32_t) n, data + at, n, leaves[count++]);
  }
  hash_node (1, BP_BLOCK_SIZE, leaves[0], count * BP_ROOT_SIZE, root.bytes);
  CHECK (bp_root_equal (&root, window->root));
}

/* ---- Measuring ---- */

enum {
  ONE_AT_A_TIME = -1 /* Not a bp_sha256_way. */
};

static void
verify (int way, size_t count)
{
  if (way == ONE_AT_A_TIME)
    for (size_t i = 0; i < count; i++)
      verify_with_openssl (&windows[i]);
  else {
    bp_verify_windows (windows, count);
    for (size_t i = 0; i < count; i++)
      CHECK_EQ (windows[i].status, 0);
  }
}

static double
cpu_ms (void)
{
  struct timespec now;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

static void
measure (const struct shape *shape, const char *name, int way)
{
  const double start = cpu_ms ();
  double ms, bytes = 0;

  if (way != ONE_AT_A_TIME && bp_sha256_use ((enum bp_sha256_way) way) < 0)
    return; /* Not on this CPU. */
  do {
    verify (way, shape->count);
    bytes += (double) (shape->count * shape->len);
    ms = cpu_ms () - start;
  } while (ms < MIN_TIME_MS);
  printf ("%zu x %zu KiB\t%s\t%.0f\n", shape->count, shape->len >> 10,
          way == BP_SHA256_AUTO ? bp_sha256_name () : name,
          bytes / ms / 1000);
}

int
main (int argc, char *argv[])
{
  static const struct {
    const char *name;
    int way;
  } contenders[] = {
    { "EVP, block by block", ONE_AT_A_TIME },
    { "--sha256=openssl", BP_SHA256_OPENSSL },
    { "sha-ni alone", BP_SHA256_NI },
    { "avx512 alone", BP_SHA256_AVX512 },
    { "", BP_SHA256_AUTO },
  };
  const int rounds = argc == 2 ? atoi (argv[1]) : 0;

  if (rounds < 1) {
    fprintf (stderr, "usage: verifying ROUNDS\n");
    return 2;
  }
  md = EVP_MD_fetch (NULL, "SHA256", NULL);
  ctx = EVP_MD_CTX_new ();
  CHECK (md != NULL && ctx != NULL);
  for (size_t i = 0; i < ARRAY_LEN (shapes); i++) {
    set_list (&shapes[i]);
    for (int round = 0; round < rounds; round++)
      for (size_t j = 0; j < ARRAY_LEN (contenders); j++)
        measure (&shapes[i], contenders[j].name, contenders[j].way);
  }
  EVP_MD_CTX_free (ctx);
  EVP_MD_free (md);
  return 0;
}
