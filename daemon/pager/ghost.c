/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The table of ghosts. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "daemon/pager/ghost.h"

int
ghost_init (struct ghost_table *ghosts, uint64_t windows)
{
  uint64_t places = 64;

  while (places < windows && places < (UINT64_C (1) << 24))
    places *= 2;
  ghosts->places = calloc (places, sizeof ghosts->places[0]);
  if (ghosts->places == NULL)
    return -ENOMEM;
  ghosts->mask = (uint32_t) (places - 1);
  ghosts->now = 0;
  return 0;
}

void
ghost_done (struct ghost_table *ghosts)
{
  free (ghosts->places);
  ghosts->places = NULL;
}

/* Never 0, so that no ghost looks like an empty place. */
static uint32_t
fingerprint (uint64_t hash)
{
  return (uint32_t) (hash >> 32) | 1;
}

void
ghost_remember (struct ghost_table *ghosts, uint64_t hash)
{
  ghosts->now++;
  ghosts->places[hash & ghosts->mask] =
    (uint64_t) fingerprint (hash) << 32 | ghosts->now;
}

bool
ghost_recall (struct ghost_table *ghosts, uint64_t hash)
{
  uint64_t *place = &ghosts->places[hash & ghosts->mask];
  const uint32_t age = ghosts->now - (uint32_t) *place;
  const bool is_ghost =
    *place >> 32 == fingerprint (hash) && age <= ghosts->mask;

  if (is_ghost)
    *place = 0;
  return is_ghost;
}

uint64_t
ghost_table_bytes (const struct ghost_table *ghosts)
{
  return ((uint64_t) ghosts->mask + 1) * sizeof ghosts->places[0];
}
