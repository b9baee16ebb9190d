/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The root of bytes in memory: of one window, as such; of more, by way of
 * a builder.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>

#include "lib/merkle.h"

/* A blob of more than one window. */
static int
root_of_large (const void *data, size_t len, struct bp_root *ret_root)
{
  struct bp_merkle_builder *builder;
  int r;

  r = bp_merkle_builder_new (&builder, false);
  if (r < 0)
    return r;
  r = bp_merkle_builder_add (builder, data, len);
  if (r == 0)
    r = bp_merkle_builder_finish (builder, ret_root, NULL, NULL, NULL);
  bp_merkle_builder_free (builder);
  return r;
}

int
bp_merkle_root (const void *data, size_t len, struct bp_root *ret_root)
{
  struct bp_window window = { .size = len, .data = data, .len = len };

  if (len > BP_WINDOW_SIZE)
    return root_of_large (data, len, ret_root);
  bp_hash_windows (&window, 1);
  assert (window.status == 0);
  *ret_root = window.computed;
  return 0;
}
