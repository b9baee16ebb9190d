/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A session works behind filters that pass requests through unchanged,
 * and is refused behind those that do not; direct exports work behind
 * both.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>

#include "lib/base/range.h"
#include "harness/test-driver.h"
#include "harness/test-session.h"

struct filter {
  const char *option;
  const char *parameter; /* NULL: none. */
};

static char blob_export[128];

static void
start_behind (const struct filter *filter, const char **ret_socket)
{
  const char *const options[] = { filter->option, NULL };
  const char *const parameters[] = { filter->parameter, NULL };

  *ret_socket = test_start_driver (options, parameters);
}

/* The status of HELLO, or -EPERM if the export cannot even be opened. */
static int
say_hello (const char *socket)
{
  char id[BP_SESSION_ID_SIZE];
  struct lane lane;
  int status;

  if (!lane_try (socket, "session", &lane))
    return -EPERM;
  status = lane_hello (&lane, id);
  lane_close (&lane);
  return status;
}

static void
expect_direct_read (const char *socket)
{
  struct lane lane = lane_connect (socket, blob_export);
  uint8_t byte;

  EXPECT_EQ (lane_read (&lane, &byte, 1, 3), 0);
  EXPECT_EQ (byte, ' ');
  lane_close (&lane);
}

static void
filters_that_pass_requests_on_are_accepted (void)
{
  static const struct filter filters[] = {
    { "--filter=log", "logfile=log" },
    { "--filter=stats", "statsfile=stats" },
    { "--filter=delay", "rdelay=1ms" },
    { "--filter=error", "error-pread-rate=0" },
    { "--filter=rate", "rate=1G" },
    { "--filter=pause", "pause-control=pause" },
    { "--filter=ip", "allow=all" },
    { "--filter=limit", "limit=10" },
  };

  for (size_t i = 0; i < ARRAY_LEN (filters); i++) {
    const char *socket;

    start_behind (&filters[i], &socket);
    if (say_hello (socket) != 0)
      FAIL ("%s: HELLO is refused", filters[i].option);
    test_stop ();
  }
}

static void
filters_that_change_requests_are_refused (void)
{
  static const struct filter filters[] = {
    { "--filter=blocksize", "minblock=512" },
    { "--filter=readahead", NULL },
    { "--filter=retry", NULL },
    { "--filter=retry-request", NULL },
    { "--filter=swab", NULL },
  };

  for (size_t i = 0; i < ARRAY_LEN (filters); i++) {
    const char *socket;

    start_behind (&filters[i], &socket);
    if (say_hello (socket) == 0)
      FAIL ("%s: HELLO is accepted", filters[i].option);
    test_stop ();
  }
}

/* These would answer HELLO themselves: `session` cannot be opened. */
static void
filters_that_keep_writes_have_no_session (void)
{
  static const struct filter filters[] = {
    { "--filter=cow", NULL },
    { "--filter=cache", NULL },
  };

  for (size_t i = 0; i < ARRAY_LEN (filters); i++) {
    const char *socket;

    start_behind (&filters[i], &socket);
    EXPECT_EQ (say_hello (socket), -EPERM);
    expect_direct_read (socket);
    test_stop ();
  }
}

int
main (void)
{
  static const uint8_t data[] = "the bytes";
  char hex[BP_ROOT_HEX_SIZE];
  struct bp_root root;

  test_begin ();
  root = test_add_blob (BP_CODEC_RAW, data, sizeof data);
  snprintf (blob_export, sizeof blob_export, "blob/%s",
            bp_root_format (&root, hex));

  filters_that_pass_requests_on_are_accepted ();
  filters_that_change_requests_are_refused ();
  filters_that_keep_writes_have_no_session ();
  return 0;
}
