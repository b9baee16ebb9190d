/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a replay has to do. */
#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "daemon/profile/replay-plan.h"

static struct bp_blob_message
message (uint32_t n, uint64_t offset)
{
  struct bp_blob_message m = { .offset = offset };

  memcpy (m.root.bytes, &n, sizeof n);
  return m;
}

Test (replay_plan, names_each_root_and_each_window_once_in_order)
{
  const struct bp_blob_message messages[] = {
    message (7, 0),
    message (3, 4096),
    message (7, 131072),
    message (3, 0),
    message (9, 0),
  };
  static const uint32_t blobs[] = { 0, 1, 0, 2 };
  static const uint64_t offsets[] = { 0, 0, 131072, 0 };
  struct replay_plan plan;

  cr_assert_eq (replay_plan_make (&plan, messages, 5), 0);
  cr_assert_eq (plan.nr_roots, 3);
  cr_assert_eq (plan.roots[0].bytes[0], 7);
  cr_assert_eq (plan.roots[1].bytes[0], 3);
  cr_assert_eq (plan.roots[2].bytes[0], 9);
  cr_assert_eq (plan.nr_items, 4);
  for (size_t i = 0; i < 4; i++) {
    cr_assert_eq (plan.items[i].blob, blobs[i], "item %zu", i);
    cr_assert_eq (plan.items[i].offset, offsets[i], "item %zu", i);
  }
  replay_plan_done (&plan);
}

Test (replay_plan, opens_but_does_not_page_in_an_open_marker)
{
  const struct bp_blob_message messages[] = {
    message (1, BP_OPEN_MARKER),
    message (2, 0),
  };
  struct replay_plan plan;

  cr_assert_eq (replay_plan_make (&plan, messages, 2), 0);
  cr_assert_eq (plan.nr_roots, 2);
  cr_assert_eq (plan.nr_items, 1);
  cr_assert_eq (plan.items[0].blob, 1);
  replay_plan_done (&plan);
}

Test (replay_plan, of_nothing_is_empty)
{
  struct replay_plan plan;

  cr_assert_eq (replay_plan_make (&plan, NULL, 0), 0);
  cr_assert_eq (plan.nr_roots, 0);
  cr_assert_eq (plan.nr_items, 0);
  replay_plan_done (&plan);
}

Test (replay_plan, tells_a_hundred_thousand_roots_apart)
{
  enum {
    N = 100000
  };
  struct bp_blob_message *messages = malloc (2 * N * sizeof *messages);
  struct replay_plan plan;

  for (uint32_t i = 0; i < 2 * N; i++)
    messages[i] = message (i % N, i / N * 131072);
  cr_assert_eq (replay_plan_make (&plan, messages, 2 * N), 0);
  cr_assert_eq (plan.nr_roots, N);
  for (uint32_t i = 0; i < 2 * N; i++)
    cr_assert_eq (plan.items[i].blob, i % N, "item %u", i);
  replay_plan_done (&plan);
  free (messages);
}
