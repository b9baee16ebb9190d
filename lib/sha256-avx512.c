/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Sixteen messages at once with AVX-512: word i of a register belongs to
 * message i, and every operation of FIPS 180-4, 6.2.2 is done for all.
 *
 * Rotation and the three-operand functions are one instruction each.  What
 * limits the speed is how soon the next round can begin, so what a round
 * adds up is ordered such that the words made last are added last; the
 * compiler must not order it anew (see settle ()).
 */
#include <config.h>

#include "lib/sha256-lanes.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__ ((target ("avx512f,avx512bw")))
#define INLINE TARGET static inline __attribute__ ((always_inline))

enum {
  SCHEDULE = 16, /* Words of the message schedule that are kept. */
};

/* ---- The functions of FIPS 180-4, 4.1.2 ---- */

/* Truth tables of three operands, for _mm512_ternarylogic_epi32. */
#define XOR3 0x96
#define CHOOSE 0xca
#define MAJORITY 0xe8

INLINE __m512i
big_sigma0 (__m512i x)
{
  return _mm512_ternarylogic_epi32 (_mm512_ror_epi32 (x, 2),
                                    _mm512_ror_epi32 (x, 13),
                                    _mm512_ror_epi32 (x, 22), XOR3);
}

INLINE __m512i
big_sigma1 (__m512i x)
{
  return _mm512_ternarylogic_epi32 (_mm512_ror_epi32 (x, 6),
                                    _mm512_ror_epi32 (x, 11),
                                    _mm512_ror_epi32 (x, 25), XOR3);
}

INLINE __m512i
small_sigma0 (__m512i x)
{
  return _mm512_ternarylogic_epi32 (_mm512_ror_epi32 (x, 7),
                                    _mm512_ror_epi32 (x, 18),
                                    _mm512_srli_epi32 (x, 3), XOR3);
}

INLINE __m512i
small_sigma1 (__m512i x)
{
  return _mm512_ternarylogic_epi32 (_mm512_ror_epi32 (x, 17),
                                    _mm512_ror_epi32 (x, 19),
                                    _mm512_srli_epi32 (x, 10), XOR3);
}

/* ---- A block ---- */

/* The sum is complete: do not move its operands into the next one. */
INLINE __m512i
settle (__m512i sum)
{
  __asm__(""
          : "+v"(sum));
  return sum;
}

INLINE __m512i
add (__m512i x, __m512i y)
{
  return _mm512_add_epi32 (x, y);
}

/* Round R.  S holds a to h, which move on by one place a round: a is
 * S[-R % 8].  WK is the word of the schedule and of the constants.
 */
INLINE void
do_round (__m512i s[SHA256_WORDS], unsigned r, __m512i wk)
{
  const __m512i a = s[(0 - r) % 8], b = s[(1 - r) % 8], c = s[(2 - r) % 8];
  const __m512i e = s[(4 - r) % 8], f = s[(5 - r) % 8], g = s[(6 - r) % 8];
  __m512i *const d = &s[(3 - r) % 8], *const h = &s[(7 - r) % 8];
  const __m512i choice = _mm512_ternarylogic_epi32 (e, f, g, CHOOSE);
  const __m512i majority = _mm512_ternarylogic_epi32 (a, b, c, MAJORITY);
  const __m512i early = settle (add (*h, wk));
  const __m512i sigma = big_sigma1 (e);
  const __m512i t1 = settle (add (settle (add (early, choice)), sigma));

  *d = add (settle (add (settle (add (*d, early)), choice)), sigma);
  *h = add (settle (add (t1, majority)), big_sigma0 (a));
}

/* The word of round T + 16 takes the place of that of round T. */
INLINE void
extend_schedule (__m512i w[SCHEDULE], unsigned t)
{
  const __m512i sum = add (w[t % 16], w[(t + 9) % 16]);
  const __m512i sigma0 = small_sigma0 (w[(t + 1) % 16]);

  w[t % 16] = add (add (sum, sigma0), small_sigma1 (w[(t + 14) % 16]));
}

/* Row i of 16 words becomes column i. */
INLINE void
transpose (__m512i w[16])
{
  __m512i t[16];

#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32 (w[i], w[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32 (w[i], w[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    w[i] = _mm512_unpacklo_epi64 (t[i], t[i + 2]);
    w[i + 1] = _mm512_unpackhi_epi64 (t[i], t[i + 2]);
    w[i + 2] = _mm512_unpacklo_epi64 (t[i + 1], t[i + 3]);
    w[i + 3] = _mm512_unpackhi_epi64 (t[i + 1], t[i + 3]);
  }
  /* Now w[4 * n + i] has word i, i + 4, i + 8, i + 12 of rows 4 * n and
   * up, a quarter each: transpose the quarters.
   */
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    t[i] = _mm512_shuffle_i32x4 (w[i], w[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4 (w[i], w[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4 (w[i + 8], w[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4 (w[i + 8], w[i + 12], 0xdd);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    w[i] = _mm512_shuffle_i32x4 (t[i], t[i + 8], 0x88);
    w[i + 8] = _mm512_shuffle_i32x4 (t[i], t[i + 8], 0xdd);
  }
}

/* The words of block N of every lane: w[t] holds word t of each. */
INLINE void
load_words (const struct sha256_lanes *lanes, size_t n, __m512i w[SCHEDULE])
{
  const __m512i swap = _mm512_set4_epi32 (0x0c0d0e0f, 0x08090a0b, 0x04050607,
                                          0x00010203);

#pragma GCC unroll 16
  for (int i = 0; i < 16; i++)
    w[i] = _mm512_shuffle_epi8 (
      _mm512_loadu_si512 (lanes->blocks[i] + n * SHA256_BLOCK_SIZE), swap);
  transpose (w);
}

/* COUNT blocks of every lane: of words, or of zeros. */
INLINE void
hash_lanes (struct sha256_lanes *lanes, size_t count, bool has_words)
{
  __m512i before[SHA256_WORDS], s[SHA256_WORDS], w[SCHEDULE];

  for (int i = 0; i < SHA256_WORDS; i++)
    before[i] = _mm512_loadu_si512 (lanes->state[i]);
  for (size_t n = 0; n < count; n++) {
    if (has_words)
      load_words (lanes, n, w);
#pragma GCC unroll 8
    for (int i = 0; i < SHA256_WORDS; i++)
      s[i] = before[i];
    for (unsigned t = 0; t < SHA256_ROUNDS; t += SCHEDULE)
#pragma GCC unroll 16
      for (unsigned i = 0; i < SCHEDULE; i++) {
        __m512i wk = _mm512_set1_epi32 ((int) sha256_k[t + i]);

        if (has_words)
          wk = add (wk, w[i]);
        do_round (s, i, wk);
        if (has_words && t + SCHEDULE < SHA256_ROUNDS)
          extend_schedule (w, i);
      }
#pragma GCC unroll 8
    for (int i = 0; i < SHA256_WORDS; i++)
      before[i] = add (before[i], s[i]);
  }
  for (int i = 0; i < SHA256_WORDS; i++)
    _mm512_storeu_si512 (lanes->state[i], before[i]);
}

TARGET static void
hash_blocks (struct sha256_lanes *lanes, unsigned nr, size_t count)
{
  (void) nr;
  hash_lanes (lanes, count, true);
}

TARGET static void
hash_zeros (struct sha256_lanes *lanes, unsigned nr, size_t count)
{
  (void) nr;
  hash_lanes (lanes, count, false);
}

static bool
is_supported (void)
{
  return __builtin_cpu_supports ("avx512f") &&
         __builtin_cpu_supports ("avx512bw");
}

const struct sha256_kernel sha256_avx512 = {
  .max_lanes = SHA256_MAX_LANES,
  .is_supported = is_supported,
  .hash_blocks = hash_blocks,
  .hash_zeros = hash_zeros,
};

#else

const struct sha256_kernel sha256_avx512 = {
  .is_supported = sha256_never_supported,
};

#endif
