/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* NBD_INFO_BLOCK_SIZE: are the sizes that a server advertises sane? */
#include <config.h>

#include <inttypes.h>

#include "conform/check.h"
#include "conform/info.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "lib/base/range.h"

#define MAX_MINIMUM UINT32_C (65536)
#define MIN_PREFERRED UINT32_C (512)
#define USUAL_MAXIMUM UINT64_C (1048576)
#define NO_LIMIT UINT32_MAX

static void
ask_block_sizes (const struct target *target, struct info *info)
{
  struct session *session = begin_info (target);

  ask_info (session, OPT_INFO, info);
  expect_info_ack (info, OPT_INFO);
  if (info_find (info, INFO_BLOCK_SIZE) == NULL)
    skip ("the server advertises no block sizes");
}

static bool
is_power_of_two (uint32_t value)
{
  return value != 0 && (value & (value - 1)) == 0;
}

static void
item_has_14_bytes (const struct target *target)
{
  struct info info;

  ask_block_sizes (target, &info);
  expect_u64 ("length of NBD_INFO_BLOCK_SIZE", 14,
              info_find (&info, INFO_BLOCK_SIZE)->len);
}

static void
minimum_is_sane (const struct target *target)
{
  struct info info;

  ask_block_sizes (target, &info);
  expect (is_power_of_two (info.min_block) && info.min_block <= MAX_MINIMUM,
          "minimum block size: expected a power of 2 of at most %" PRIu32
          ", got %" PRIu32,
          MAX_MINIMUM, info.min_block);
}

static void
preferred_is_sane (const struct target *target)
{
  struct info info;
  uint32_t least;

  ask_block_sizes (target, &info);
  least = MAX (info.min_block, MIN_PREFERRED);
  expect (is_power_of_two (info.preferred_block) &&
            info.preferred_block >= least,
          "preferred block size: expected a power of 2 of at least %" PRIu32
          ", got %" PRIu32,
          least, info.preferred_block);
}

static void
maximum_is_sane (const struct target *target)
{
  struct info info;
  uint64_t least;

  ask_block_sizes (target, &info);
  least = MIN (info.preferred_block, info.size);
  expect (info.max_block == NO_LIMIT ||
            (info.min_block > 0 && info.max_block % info.min_block == 0),
          "maximum block size: expected a multiple of %" PRIu32
          " or 0xffffffff, got %" PRIu32,
          info.min_block, info.max_block);
  expect (info.max_block >= least,
          "maximum block size: expected at least %" PRIu64 ", got %" PRIu32,
          least, info.max_block);
  should (info.max_block >= MIN (USUAL_MAXIMUM, info.size),
          "maximum block size: expected at least %" PRIu64 ", got %" PRIu32,
          MIN (USUAL_MAXIMUM, info.size), info.max_block);
}

static void
size_is_a_multiple (const struct target *target)
{
  struct info info;

  ask_block_sizes (target, &info);
  should (info.min_block == 0 || info.size % info.min_block == 0,
          "size of the export: expected a multiple of %" PRIu32
          ", got %" PRIu64,
          info.min_block, info.size);
}

/* clang-format off */
const struct check block_size_checks[] = {
  { "block-size/the-item-has-14-bytes", LEVEL_MUST, "Option reply types",
    "`NBD_INFO_BLOCK_SIZE` (3) [...] The *length* MUST be 14",
    item_has_14_bytes },
  { "block-size/the-minimum-is-sane", LEVEL_MUST, "Block size constraints",
    "The minimum block size [...] MUST be a power of 2, MUST NOT be larger "
    "than 2^16 (65,536)",
    minimum_is_sane },
  { "block-size/the-preferred-is-sane", LEVEL_MUST,
    "Block size constraints",
    "The preferred block size [...] MUST be a power of 2 at least as large "
    "as the maximum of the minimum block size and 2^9 (512)",
    preferred_is_sane },
  { "block-size/the-maximum-is-sane", LEVEL_MUST, "Block size constraints",
    "The maximum block size [...] MUST be either an integer multiple of the "
    "minimum block size or the value 0xffffffff for no inherent limit, MUST "
    "be at least as large as the smaller of the preferred block size or "
    "export size, and SHOULD be at least 2^20 (1,048,576) if the export is "
    "that large",
    maximum_is_sane },
  { "block-size/the-size-is-a-multiple-of-the-minimum", LEVEL_SHOULD,
    "Block size constraints",
    "If a server advertises a minimum block size, the advertised export "
    "size SHOULD be an integer multiple of that block size",
    size_is_a_multiple },
  { 0 },
};
/* clang-format on */
