/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Clients that stall: they hold what they can get for a while, and vanish
 * in the middle of it.
 */
#include <config.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "harness/check.h"
#include "harness/nbd-client.h"
#include "torture/storm.h"

enum {
  READS = 40, /* More than a client may have under way. */
  READ_LEN = 1 << 20,
  SLICE_MS = 100,
};

/* For MS, or until the storm is over. */
static void
hold (const struct storm *storm, uint64_t ms)
{
  const uint64_t end = now_ns () + ms * NS_PER_MS;

  while (now_ns () < end && !atomic_load (&storm->is_over))
    poll (NULL, 0, SLICE_MS);
}

/* Mostly short; sometimes longer than the time for a handshake. */
static uint64_t
choose_hold_ms (uint64_t *chance)
{
  return roll (chance, roll (chance, 8) == 0 ? 12000 : 3000);
}

/* Attached, with more asked for than the socket holds. */
static int
ask_for_much (const struct storm *storm, uint64_t *chance)
{
  const int fd = client_connect_to (storm->path, STORM_TIMEOUT_S);
  uint64_t i;

  client_negotiate (fd, storm->export, roll (chance, 2));
  for (i = 0; i < READS; i++)
    client_send_request (fd, 0, NBD_CMD_READ, i,
                         roll (chance, storm->size - READ_LEN), READ_LEN);
  return fd;
}

static void
never_read (const struct storm *storm, uint64_t *chance)
{
  const int fd = ask_for_much (storm, chance);

  hold (storm, choose_hold_ms (chance));
  close (fd);
}

static void
read_a_byte_a_second (const struct storm *storm, uint64_t *chance)
{
  const int fd = ask_for_much (storm, chance);
  const uint64_t seconds = choose_hold_ms (chance) / 1000;
  uint8_t byte;
  uint64_t i;

  for (i = 0; i <= seconds && !atomic_load (&storm->is_over); i++) {
    client_recv (fd, &byte, 1);
    hold (storm, 1000);
  }
  close (fd);
}

static void
stop_in_the_handshake (const struct storm *storm, uint64_t *chance)
{
  /* Flags, and half an option that says 256 bytes. */
  static const uint8_t words[] = "\0\0\0\3IHAVEOPT\0\0\0\7\0\0\1\0\0\0\0\2";
  const int fd = client_connect_to (storm->path, STORM_TIMEOUT_S);

  client_send (fd, words, roll (chance, sizeof words));
  hold (storm, choose_hold_ms (chance));
  close (fd);
}

static void
stop_in_a_request (const struct storm *storm, uint64_t *chance)
{
  static const uint8_t words[] = "\x25\x60\x95\x13\0\0\0\0cookie..offset..";
  const int fd = client_connect_to (storm->path, STORM_TIMEOUT_S);

  client_negotiate (fd, storm->export, roll (chance, 2));
  client_send (fd, words, roll (chance, sizeof words));
  hold (storm, choose_hold_ms (chance));
  close (fd);
}

void
storm_stalled_client (struct storm *storm, uint64_t *chance)
{
  switch (roll (chance, 4)) {
  case 0: never_read (storm, chance); break;
  case 1: read_a_byte_a_second (storm, chance); break;
  case 2: stop_in_the_handshake (storm, chance); break;
  default: stop_in_a_request (storm, chance);
  }
}
