/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A client that is killed while sixteen of its reads wait, one for each
 * of nbdkit's workers, leaves no session behind, and the driver lives: a
 * session's id can be joined until it ends, and then the next client
 * comes.
 */
#include <config.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "harness/test-driver.h"
#include "harness/test-session.h"

enum {
  NR_WAITING = 16,
  GONE_SECONDS = 40
};

/* Never returns: tells the id of its session through FD, with its reads
 * on their way, and goes on waiting.
 */
static void
be_a_client (const char *socket, const struct bp_root *root, int fd)
{
  struct lane lane = lane_connect (socket, "session");
  static uint8_t bytes[NR_WAITING];
  char id[BP_SESSION_ID_SIZE];
  int64_t last = 0;

  EXPECT_EQ (lane_hello (&lane, id), 0);
  EXPECT_EQ (lane_open (&lane, 1, root, NULL), 0);
  for (uint64_t i = 0; i < NR_WAITING; i++)
    last =
      lane_send_read (&lane, &bytes[i], 1, bp_data_offset (2 + i, 0, false));
  EXPECT_EQ (write (fd, id, sizeof id), sizeof id);
  lane_wait (&lane, last);
  pause ();
}

static void
expect_session_ends (const char *socket, const char *id)
{
  const uint64_t deadline = now_ns () + GONE_SECONDS * NS_PER_SEC;
  char name[64] = "session/";
  useconds_t slice_us = 5000;
  struct lane lane;

  /* Each look is a connection to the session and keeps it for a moment:
   * there has to be time in between.
   */
  strcat (name, id);
  while (lane_try (socket, name, &lane)) {
    lane_close (&lane);
    if (now_ns () > deadline)
      FAIL ("session %s is still there", id);
    usleep (slice_us);
    slice_us *= 2;
  }
}

int
main (void)
{
  static const uint8_t data[] = "bytes";
  struct bp_root root;
  const char *socket;

  test_begin ();
  root = test_add_blob (BP_CODEC_RAW, data, sizeof data);
  socket = test_start_driver (NULL, NULL);

  for (int i = 0; i < 3; i++) {
    char id[BP_SESSION_ID_SIZE];
    int fds[2];
    pid_t pid;

    EXPECT_EQ (pipe (fds), 0);
    pid = fork ();
    EXPECT (pid != -1);
    if (pid == 0)
      be_a_client (socket, &root, fds[1]);
    EXPECT_EQ (read (fds[0], id, sizeof id), sizeof id);
    kill (pid, SIGKILL);
    waitpid (pid, NULL, 0);
    close (fds[0]);
    close (fds[1]);
    expect_session_ends (socket, id);
  }
  return 0;
}
