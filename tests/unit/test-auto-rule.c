/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What the automatic mode writes, and what it leaves. */
#include <config.h>

#include <stdint.h>

#include <criterion/criterion.h>

#include "lib/base/range.h"
#include "daemon/profile/auto-rule.h"

/* Reads of a boot: short runs all over the disk. */
static struct copy_detector boot;
/* What is written: a boot of an image of 1 GB, 30 MB touched. */
static struct auto_facts facts;

static void
setup (void)
{
  boot = (struct copy_detector){ 0 };
  for (unsigned i = 0; i < 1000; i++) {
    copy_detector_add (&boot, i * UINT64_C (7919) % 1000 * 1000000, 4096);
    copy_detector_add (&boot, i * UINT64_C (7919) % 1000 * 1000000 + 4096,
                       4096);
  }
  facts = (struct auto_facts){
    .is_complete = true,
    .roots = 500,
    .old_roots = 600,
    .bytes_touched = 30000000,
    .bytes_placed = 1000000000,
    .reads = &boot,
  };
}

TestSuite (auto_rule, .init = setup);

Test (auto_rule, writes_a_boot)
{
  cr_assert_null (auto_refuses (&facts));
}

Test (auto_rule, writes_the_first_profile)
{
  facts.old_roots = 0;
  facts.roots = 1;
  cr_assert_null (auto_refuses (&facts));
}

Test (auto_rule, leaves_what_is_not_complete)
{
  facts.is_complete = false;
  cr_assert_not_null (auto_refuses (&facts));
}

Test (auto_rule, leaves_an_empty_one)
{
  facts.roots = 0;
  facts.old_roots = 0;
  cr_assert_not_null (auto_refuses (&facts));
}

Test (auto_rule, wants_a_tenth_of_the_roots_of_the_old_one)
{
  facts.old_roots = 601;
  facts.roots = 60;
  cr_assert_not_null (auto_refuses (&facts));
  facts.roots = 61;
  cr_assert_null (auto_refuses (&facts));
  facts.old_roots = 600;
  facts.roots = 60;
  cr_assert_null (auto_refuses (&facts));
  facts.roots = 59;
  cr_assert_not_null (auto_refuses (&facts));
}

Test (auto_rule, takes_at_most_a_quarter_of_the_image)
{
  facts.bytes_touched = 250000000;
  cr_assert_null (auto_refuses (&facts));
  facts.bytes_touched++;
  cr_assert_not_null (auto_refuses (&facts));
  facts.bytes_placed = 0;
  cr_assert_null (auto_refuses (&facts), "an unknown size refuses nothing");
}

Test (auto_rule, leaves_a_copy)
{
  struct copy_detector copy = { 0 };

  for (uint64_t at = 0; at < 64 << 20; at += 256 << 10)
    copy_detector_add (&copy, at, 256 << 10);
  facts.reads = &copy;
  cr_assert_not_null (auto_refuses (&facts));
}

/* nbdcopy: four connections, each with a part of its own. */
Test (auto_rule, leaves_a_copy_in_four_streams)
{
  struct copy_detector copy = { 0 };

  for (uint64_t at = 0; at < 16 << 20; at += 256 << 10) {
    for (uint64_t part = 0; part < 4; part++)
      copy_detector_add (&copy, (part << 30) + at, 256 << 10);
  }
  facts.reads = &copy;
  cr_assert_not_null (auto_refuses (&facts));
}

Test (auto_rule, nine_tenths_in_line_is_the_limit)
{
  struct copy_detector reads = { 0 };

  /* One read of ten that begins a stream, nine that go on with it. */
  for (uint64_t i = 0; i < 1000; i++)
    copy_detector_add (&reads, i / 10 * (1 << 20) + i % 10 * 4096, 4096);
  cr_assert_eq (reads.bytes_in_line, reads.bytes / 10 * 9);
  facts.reads = &reads;
  cr_assert_not_null (auto_refuses (&facts));
  copy_detector_add (&reads, UINT64_C (1) << 40, 4096);
  cr_assert_null (auto_refuses (&facts));
}

Test (auto_rule, a_stream_survives_fifteen_others)
{
  struct copy_detector reads = { 0 };

  copy_detector_add (&reads, 0, 4096);
  for (uint64_t i = 1; i < COPY_STREAMS; i++)
    copy_detector_add (&reads, i << 30, 4096);
  copy_detector_add (&reads, 4096, 4096);
  cr_assert_eq (reads.bytes_in_line, 4096);
  for (uint64_t i = 0; i < COPY_STREAMS; i++)
    copy_detector_add (&reads, (i + 100) << 30, 4096);
  copy_detector_add (&reads, 8192, 4096);
  cr_assert_eq (reads.bytes_in_line, 4096);
}
