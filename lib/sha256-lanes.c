/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Messages cut into the blocks of FIPS 180-4, a lane each.
 *
 *   0        header         len          nr_zeros        padding
 *   │  copied  │ │ straight from the data │ copied │ zeros │ copied │
 *   ├────────────┼────────┼────────┼ … ───┼────────┼ … ────┼────────┤
 *
 * The nodes of Merkle trees all have the same number of blocks, so their
 * lanes end together.  The lane of a shorter message is idle from then on:
 * it hashes zeros, and nobody looks.
 */
#include <config.h>

#include <assert.h>
#include <string.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "lib/sha256-lanes.h"

enum {
  LENGTH_SIZE = 8,       /* Of a message in bits, at its end. */
  END_OF_MESSAGE = 0x80, /* The byte behind it. */
};

const uint32_t sha256_k[SHA256_ROUNDS] __attribute__ ((aligned (64))) = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
  0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
  0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
  0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
  0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
  0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
  0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
  0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

/* FIPS 180-4, 5.3.3. */
static const uint32_t initial_state[SHA256_WORDS] = {
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
};

/* What a lane reads that has no data, beside others that have: for at most
 * so many blocks.
 */
static const uint8_t zeros[128 * SHA256_BLOCK_SIZE];

/* One message on its way. */
struct lane {
  const struct bp_sha256_job *job;
  size_t data_end;  /* Bytes of header and data. */
  size_t zeros_end; /* … and zeros: all of the message. */
  size_t nr_blocks; /* With the padding. */
  size_t done;      /* Blocks hashed. */

  /* The run of blocks that is next. */
  size_t run;           /* Blocks; 0: the message is hashed. */
  const uint8_t *bytes; /* Where they are; NULL: zeros. */
  uint8_t copy[SHA256_BLOCK_SIZE];
};

/* Copy what of LEN bytes at BYTES, which stand at AT of the message, falls
 * into the block at START.
 */
static void
copy_part (uint8_t *block, size_t start, const uint8_t *bytes, size_t len,
           size_t at)
{
  const size_t from = MAX (start, at);
  const size_t to = MIN (start + SHA256_BLOCK_SIZE, at + len);

  if (from < to)
    memcpy (block + (from - start), bytes + (from - at), to - from);
}

/* A block that is not all data and not all zeros. */
static void
copy_block (struct lane *lane)
{
  const struct bp_sha256_job *job = lane->job;
  const size_t start = lane->done * SHA256_BLOCK_SIZE;
  uint8_t *copy = lane->copy;

  memset (copy, 0, SHA256_BLOCK_SIZE);
  copy_part (copy, start, job->header, job->header_len, 0);
  copy_part (copy, start, job->data, job->len, job->header_len);
  if (lane->zeros_end - start < SHA256_BLOCK_SIZE)
    copy[lane->zeros_end - start] = END_OF_MESSAGE;
  if (lane->done == lane->nr_blocks - 1)
    put_be64 (copy + SHA256_BLOCK_SIZE - LENGTH_SIZE,
              (uint64_t) lane->zeros_end * 8);
  lane->bytes = copy;
  lane->run = 1;
}

static size_t
whole_blocks (size_t start, size_t end)
{
  return start < end ? (end - start) / SHA256_BLOCK_SIZE : 0;
}

/* Find the next run of LANE, whose message is not hashed yet. */
static void
find_run (struct lane *lane)
{
  const struct bp_sha256_job *job = lane->job;
  const size_t start = lane->done * SHA256_BLOCK_SIZE;

  lane->run = 0;
  if (start >= lane->data_end) {
    lane->bytes = NULL;
    lane->run = whole_blocks (start, lane->zeros_end);
  }
  else if (start >= job->header_len) {
    lane->bytes = job->data + (start - job->header_len);
    lane->run = whole_blocks (start, lane->data_end);
  }
  if (lane->run == 0)
    copy_block (lane);
}

static void
lane_init (struct lane *lane, const struct bp_sha256_job *job)
{
  lane->job = job;
  lane->data_end = job->header_len + job->len;
  lane->zeros_end = lane->data_end + job->nr_zeros;
  lane->nr_blocks = lane->zeros_end / SHA256_BLOCK_SIZE + 1;
  if (lane->zeros_end % SHA256_BLOCK_SIZE >= SHA256_BLOCK_SIZE - LENGTH_SIZE)
    lane->nr_blocks++;
  lane->done = 0;
  find_run (lane);
}

static bool
is_busy (const struct lane *lane)
{
  return lane->run > 0;
}

/* ---- Side by side ---- */

/* The messages that one call of sha256_run hashes. */
struct hashing {
  unsigned nr;
  struct lane lanes[SHA256_MAX_LANES];
  struct sha256_lanes work;
};

static void
begin (struct hashing *hashing, const struct bp_sha256_job *jobs,
       unsigned count)
{
  hashing->nr = count;
  for (unsigned i = 0; i < count; i++)
    lane_init (&hashing->lanes[i], &jobs[i]);
  for (unsigned i = 0; i < SHA256_MAX_LANES; i++) {
    hashing->work.blocks[i] = zeros;
    for (unsigned word = 0; word < SHA256_WORDS; word++)
      hashing->work.state[word][i] = initial_state[word];
  }
}

/* Point the kernel at the next blocks of every lane.  Returns how many it
 * may take of each, 0 at the end; are they all zeros?
 */
static size_t
place_lanes (struct hashing *hashing, bool *ret_are_zeros)
{
  const size_t max_zeros = sizeof zeros / SHA256_BLOCK_SIZE;
  size_t count = 0;

  *ret_are_zeros = true;
  for (unsigned i = 0; i < hashing->nr; i++) {
    const struct lane *lane = &hashing->lanes[i];

    hashing->work.blocks[i] = zeros;
    if (!is_busy (lane))
      continue;
    count = count > 0 ? MIN (count, lane->run) : lane->run;
    if (lane->bytes) {
      hashing->work.blocks[i] = lane->bytes;
      *ret_are_zeros = false;
    }
  }
  return *ret_are_zeros ? count : MIN (count, max_zeros);
}

static void
write_digest (const struct hashing *hashing, unsigned i)
{
  uint8_t *digest = hashing->lanes[i].job->digest;

  for (unsigned word = 0; word < SHA256_WORDS; word++)
    put_be32 (digest + 4 * word, hashing->work.state[word][i]);
}

/* COUNT blocks of every lane have been hashed. */
static void
advance (struct hashing *hashing, size_t count)
{
  for (unsigned i = 0; i < hashing->nr; i++) {
    struct lane *lane = &hashing->lanes[i];

    if (!is_busy (lane))
      continue;
    lane->done += count;
    lane->run -= count;
    if (lane->bytes)
      lane->bytes += count * SHA256_BLOCK_SIZE;
    if (lane->run > 0)
      continue;
    if (lane->done < lane->nr_blocks)
      find_run (lane);
    else
      write_digest (hashing, i);
  }
}

void
sha256_run (const struct sha256_kernel *kernel,
            const struct bp_sha256_job *jobs, unsigned count)
{
  struct hashing hashing;
  bool are_zeros;
  size_t n;

  assert (count <= kernel->max_lanes);
  begin (&hashing, jobs, count);
  while ((n = place_lanes (&hashing, &are_zeros)) > 0) {
    if (are_zeros)
      kernel->hash_zeros (&hashing.work, count, n);
    else
      kernel->hash_blocks (&hashing.work, count, n);
    advance (&hashing, n);
  }
}

bool
sha256_never_supported (void)
{
  return false;
}
