/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a check needs of its target before it can ask anything. */
#include <config.h>

#include "conform/check.h"
#include "conform/target.h"

void
skip_if_tls_is_missing (const struct target *target)
{
  if (target->facts->needs_tls && !target->uri->is_tls)
    skip ("the server demands TLS: give the nbds form of the URI");
}

void
expect_export (const struct target *target)
{
  skip_if_tls_is_missing (target);
  if (!target->facts->is_opened)
    fail ("the export could not be opened before the checks began: %s",
          target->facts->why);
}

void
skip_if_one_client (const struct target *target)
{
  if (target->facts->takes_one_client)
    skip ("the server takes one client at a time");
}
