/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Up to four messages at once with the SHA extensions of x86.
 *
 * sha256rnds2 takes four clocks, and the next one of the same message needs
 * its result; but every second clock one can begin.  So two messages take
 * hardly longer than one, and with more there is always one that is ready:
 * 1.7 times the speed of one for three lanes, 1.8 for four (Zen 5).
 *
 * The rounds and the message schedule are those of FIPS 180-4, 6.2.2, four
 * at a time, in the instructions' layout (Intel SHA Extensions, 2013): a
 * state is the two registers ABEF and CDGH, and the sixteen words of the
 * schedule that are still needed are four:
 *
 *   W[t]   = w[r % 4]          four words, used in rounds t … t + 3
 *   W[t+16] = msg2 (msg1 (W[t], W[t+4]) + W[t+9 … t+12], W[t+12])
 */
#include <config.h>

#include "lib/sha256-lanes.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define TARGET __attribute__ ((target ("sha,sse4.1,ssse3")))
#define INLINE TARGET static inline __attribute__ ((always_inline))

enum {
  MAX_LANES = 4,
  QUADS = SHA256_ROUNDS / 4, /* Of rounds in a block. */
};

/* A message in the middle of a block. */
struct registers {
  __m128i abef, cdgh;
  __m128i w[4]; /* The schedule; w[r % 4] belongs to quad R. */
};

INLINE void
load_state (const struct sha256_lanes *lanes, unsigned i,
            struct registers *regs)
{
  const uint32_t (*s)[SHA256_MAX_LANES] = lanes->state;

  regs->abef = _mm_set_epi32 ((int) s[0][i], (int) s[1][i], (int) s[4][i],
                              (int) s[5][i]);
  regs->cdgh = _mm_set_epi32 ((int) s[2][i], (int) s[3][i], (int) s[6][i],
                              (int) s[7][i]);
}

INLINE void
store_state (struct sha256_lanes *lanes, unsigned i,
             const struct registers *regs)
{
  uint32_t (*s)[SHA256_MAX_LANES] = lanes->state;

  s[0][i] = (uint32_t) _mm_extract_epi32 (regs->abef, 3);
  s[1][i] = (uint32_t) _mm_extract_epi32 (regs->abef, 2);
  s[2][i] = (uint32_t) _mm_extract_epi32 (regs->cdgh, 3);
  s[3][i] = (uint32_t) _mm_extract_epi32 (regs->cdgh, 2);
  s[4][i] = (uint32_t) _mm_extract_epi32 (regs->abef, 1);
  s[5][i] = (uint32_t) _mm_extract_epi32 (regs->abef, 0);
  s[6][i] = (uint32_t) _mm_extract_epi32 (regs->cdgh, 1);
  s[7][i] = (uint32_t) _mm_extract_epi32 (regs->cdgh, 0);
}

/* The sixteen big-endian words of a block. */
INLINE void
load_words (struct registers *regs, const uint8_t *block)
{
  const __m128i swap = _mm_set_epi8 (12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6,
                                     7, 0, 1, 2, 3);

#pragma GCC unroll 4
  for (int i = 0; i < 4; i++)
    regs->w[i] = _mm_shuffle_epi8 (
      _mm_loadu_si128 ((const __m128i *) (block + 16 * i)), swap);
}

/* The four words of the schedule that take the place of those of quad R. */
INLINE void
extend_schedule (struct registers *regs, int r)
{
  const __m128i newest = regs->w[(r + 3) % 4];
  const __m128i early =
    _mm_sha256msg1_epu32 (regs->w[r % 4], regs->w[(r + 1) % 4]);
  const __m128i middle = _mm_alignr_epi8 (newest, regs->w[(r + 2) % 4], 4);

  regs->w[r % 4] =
    _mm_sha256msg2_epu32 (_mm_add_epi32 (early, middle), newest);
}

/* Quad R of the rounds of all lanes: of each first one half, then the
 * schedule, then the other, so that none waits for itself.
 */
INLINE void
do_quad (struct registers *regs, int nr, int r, bool has_words)
{
  const __m128i k = _mm_load_si128 ((const __m128i *) &sha256_k[4 * r]);
  __m128i wk[MAX_LANES];

#pragma GCC unroll 4
  for (int i = 0; i < nr; i++) {
    wk[i] = has_words ? _mm_add_epi32 (regs[i].w[r % 4], k) : k;
    regs[i].cdgh =
      _mm_sha256rnds2_epu32 (regs[i].cdgh, regs[i].abef, wk[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < nr; i++)
    if (has_words && r < QUADS - 4)
      extend_schedule (&regs[i], r);
#pragma GCC unroll 4
  for (int i = 0; i < nr; i++)
    regs[i].abef = _mm_sha256rnds2_epu32 (
      regs[i].abef, regs[i].cdgh, _mm_shuffle_epi32 (wk[i], 0x0e));
}

/* COUNT blocks of NR lanes: of words, or of zeros. */
INLINE void
hash_lanes (struct sha256_lanes *lanes, int nr, size_t count,
            bool has_words)
{
  struct registers before[MAX_LANES], regs[MAX_LANES];

#pragma GCC unroll 4
  for (int i = 0; i < nr; i++)
    load_state (lanes, i, &before[i]);
  for (size_t n = 0; n < count; n++) {
#pragma GCC unroll 4
    for (int i = 0; i < nr; i++) {
      regs[i] = before[i];
      if (has_words)
        load_words (&regs[i], lanes->blocks[i] + n * SHA256_BLOCK_SIZE);
    }
#pragma GCC unroll 16
    for (int r = 0; r < QUADS; r++)
      do_quad (regs, nr, r, has_words);
#pragma GCC unroll 4
    for (int i = 0; i < nr; i++) {
      before[i].abef = _mm_add_epi32 (before[i].abef, regs[i].abef);
      before[i].cdgh = _mm_add_epi32 (before[i].cdgh, regs[i].cdgh);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < nr; i++)
    store_state (lanes, i, &before[i]);
}

TARGET static void
hash_blocks (struct sha256_lanes *lanes, unsigned nr, size_t count)
{
  switch (nr) {
  case 1: hash_lanes (lanes, 1, count, true); break;
  case 2: hash_lanes (lanes, 2, count, true); break;
  case 3: hash_lanes (lanes, 3, count, true); break;
  default: hash_lanes (lanes, 4, count, true); break;
  }
}

TARGET static void
hash_zeros (struct sha256_lanes *lanes, unsigned nr, size_t count)
{
  switch (nr) {
  case 1: hash_lanes (lanes, 1, count, false); break;
  case 2: hash_lanes (lanes, 2, count, false); break;
  case 3: hash_lanes (lanes, 3, count, false); break;
  default: hash_lanes (lanes, 4, count, false); break;
  }
}

static bool
is_supported (void)
{
  unsigned eax, ebx, ecx, edx;

  return __builtin_cpu_supports ("sse4.1") &&
         __get_cpuid_count (7, 0, &eax, &ebx, &ecx, &edx) == 1 &&
         (ebx & bit_SHA) != 0;
}

const struct sha256_kernel sha256_ni = {
  .max_lanes = MAX_LANES,
  .is_supported = is_supported,
  .hash_blocks = hash_blocks,
  .hash_zeros = hash_zeros,
};

#else

const struct sha256_kernel sha256_ni = {
  .is_supported = sha256_never_supported,
};

#endif
