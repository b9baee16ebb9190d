/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Clients that stall, vanish, or come in crowds: each costs a bounded
 * amount of memory, and the others nothing.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "harness/check.h"
#include "harness/front-client.h"

enum {
  HANDSHAKE_MS = 300,
  STALL_MS = 10,
  MAX_CLIENTS = 20,
  MAX_OPTIONS = 50,
};

static struct front_fixture fixture;

static struct fake_counts
counts (void)
{
  return fake_pager_counts (fixture.pager);
}

/* FD is closed by the server, not before the handshake's deadline and not
 * long after it.
 */
static void
expect_dropped (int fd, uint64_t started_ns)
{
  uint64_t took_ns;

  client_expect_closed (fd);
  took_ns = now_ns () - started_ns;
  CHECK (took_ns >= (HANDSHAKE_MS - 1) * NS_PER_MS);
  CHECK (took_ns < (HANDSHAKE_MS + 5000) * NS_PER_MS);
}

static void
half_an_option_is_dropped_and_others_do_not_notice (void)
{
  const int other = client_attach (&fixture, "fast");
  uint64_t started_ns = now_ns ();
  uint8_t greeting[NBD_GREETING_SIZE];
  int fd = client_connect (&fixture);

  client_recv (fd, greeting, sizeof greeting);
  expect_dropped (fd, started_ns); /* Said nothing at all. */

  started_ns = now_ns ();
  fd = client_connect (&fixture);
  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE);
  client_send (fd, "IHAVEOPT\0\0", 10);
  expect_dropped (fd, started_ns); /* Half a header. */

  started_ns = now_ns ();
  fd = client_connect (&fixture);
  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE);
  client_send_option (fd, NBD_OPT_GO, NULL, 100);
  client_send (fd, "\0\0", 2);
  expect_dropped (fd, started_ns); /* Half its data. */

  /* OTHER was idle in transmission all the time. */
  client_expect_bytes (&fixture, other, 0, 100000);
  close (other);
}

/* Receive all that there is; true if the server has closed FD. */
static bool
has_been_closed (int fd)
{
  uint8_t buf[4096];
  ssize_t n;

  while ((n = recv (fd, buf, sizeof buf, MSG_DONTWAIT)) > 0)
    ;
  return n == 0 || errno == ECONNRESET;
}

static void
a_client_that_keeps_us_waiting_is_dropped_however_often_it_asks (void)
{
  enum {
    MOST_QUESTIONS = 30
  };
  const int fd = client_connect (&fixture);
  uint8_t list[NBD_OPTION_HEADER_SIZE] = { 0 };
  int i;

  put_be64 (list, NBD_OPTION_MAGIC);
  put_be32 (list + 8, NBD_OPT_LIST);
  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE);
  for (i = 0; i < MOST_QUESTIONS && !has_been_closed (fd); i++) {
    /* It may be closed just now. */
    (void) !send (fd, list, sizeof list, MSG_NOSIGNAL);
    poll (NULL, 0, HANDSHAKE_MS * 4 / 10);
  }
  CHECK (i < MOST_QUESTIONS);
  close (fd);
}

static void
a_client_that_asks_without_end_is_dropped (void)
{
  const int fd = client_connect (&fixture);
  int i;

  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE);
  for (i = 0; i < MAX_OPTIONS; i++) {
    client_send_option (fd, 99, NULL, 0);
    CHECK_EQ (client_end_option (fd, 99), NBD_REP_ERR_UNSUP);
  }
  client_send_option (fd, 99, NULL, 0);
  client_expect_closed (fd);
}

static void
the_time_to_open_an_export_is_not_the_clients (void)
{
  const int fd = client_connect (&fixture);
  struct pollfd pfd = { .fd = fd, .events = POLLIN };

  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE);
  client_send_info (fd, NBD_OPT_GO, "late");
  CHECK_EQ (poll (&pfd, 1, 2 * HANDSHAKE_MS), 0);
  fake_pager_let_go (fixture.pager);
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
  client_expect_bytes (&fixture, fd, 0, 4096);
  fake_pager_hold_again (fixture.pager);
  close (fd);
}

/* ---- Clients that do not read ---- */

/* COUNT reads of LEN bytes each, as fast as FD takes them. */
static void
ask (int fd, unsigned count, uint32_t len)
{
  uint64_t i;

  for (i = 0; i < count; i++)
    client_send_request (fd, 0, NBD_CMD_READ, i, i * 4097, len);
}

/* Receive the answers to ask, PAUSE_MS after every PIECE bytes. */
static void
take_slowly (int fd, unsigned count, uint32_t len, uint32_t piece,
             int pause_ms)
{
  uint32_t pos, n;
  uint64_t cookie;

  for (; count > 0; count--) {
    CHECK_EQ (client_recv_reply (fd, &cookie), 0);
    for (pos = 0; pos < len; pos += n) {
      n = MIN (piece, len - pos);
      client_recv_bytes (&fixture, fd, cookie * 4097 + pos, n);
      poll (NULL, 0, pause_ms);
    }
  }
}

/* All of COUNT reads have been seen by the server when it refuses what
 * came after them.
 */
static void
ask_and_be_heard (int fd, unsigned count, uint32_t len)
{
  ask (fd, count, len);
  CHECK_EQ (client_request (fd, 0, NBD_CMD_TRIM, 0, 512), NBD_EPERM);
}

static void
a_client_has_under_way_what_it_has_shown_to_read (void)
{
  enum {
    LEN = 64 << 10
  };
  const int fd = client_attach (&fixture, "held");

  ask_and_be_heard (fd, 60, LEN);
  CHECK_EQ (counts ().waiting, fixture.limits.max_resume / LEN);
  fake_pager_let_go (fixture.pager);
  take_slowly (fd, 60, LEN, LEN, 0);
  fake_pager_hold_again (fixture.pager);
  ask_and_be_heard (fd, 60, LEN);
  CHECK_EQ (counts ().waiting, 60);
  close (fd);
}

static void
expect_bounded_while_not_reading (const char *export)
{
  const int fd = client_attach (&fixture, export);
  const int other = client_attach (&fixture, "fast");
  const uint64_t limit = fixture.limits.max_bytes;
  int i;

  ask (fd, 200, 1 << 20);
  for (i = 0; i < 20; i++)
    client_expect_bytes (&fixture, other, (uint64_t) i << 20, 1 << 20);
  CHECK (counts ().max_unreleased <= limit + (2 << 20));
  /* Then it holds nothing of the cache at all. */
  WAIT_UNTIL (counts ().unreleased == 0);
  client_expect_bytes (&fixture, other, 0, 1 << 20);
  take_slowly (fd, 200, 1 << 20, 1 << 20, 0);
  close (fd);
  close (other);
}

static void
a_client_that_does_not_read_holds_nothing_and_loses_nothing (void)
{
  expect_bounded_while_not_reading ("fast");
  expect_bounded_while_not_reading ("slow");
}

/* Slower than the stall time again and again: a reply of 4 MiB is parked
 * and resumed in the middle.
 */
static void
a_client_that_reads_slowly_gets_every_byte (void)
{
  int fd = client_attach (&fixture, "mixed");

  ask (fd, 4, 4 << 20);
  take_slowly (fd, 4, 4 << 20, 256 << 10, 2 * STALL_MS);
  client_expect_bytes (&fixture, fd, 77, 7777);
  close (fd);
  fd = client_attach (&fixture, "slow");
  ask (fd, 100, 40000);
  take_slowly (fd, 100, 40000, 40000, STALL_MS / 2);
  close (fd);
  fd = client_attach (&fixture, "slow");
  ask (fd, 12, 1 << 20);
  take_slowly (fd, 12, 1 << 20, 256 << 10, 2 * STALL_MS);
  close (fd);
}

/* The first reply is begun and parked when others are ready to be sent. */
static void
expect_whole_replies (const char *export)
{
  enum {
    READS = 3,
    REFUSED = 50,
    LEN = 1 << 20
  };
  const int fd = client_attach (&fixture, export);
  const uint64_t before = counts ().completed;
  uint64_t cookie;
  uint32_t error;
  int i;

  ask (fd, READS, LEN);
  WAIT_UNTIL (counts ().completed > before);
  WAIT_UNTIL (counts ().unreleased == 0);
  for (i = 0; i < REFUSED; i++)
    client_send_request (fd, 0, NBD_CMD_TRIM, 99, 0, 512);
  poll (NULL, 0, 2 * STALL_MS);
  for (i = 0; i < READS + REFUSED; i++) {
    error = client_recv_reply (fd, &cookie);
    CHECK_EQ (error, cookie == 99 ? NBD_EPERM : 0);
    if (error == 0)
      client_recv_bytes (&fixture, fd, cookie * 4097, LEN);
  }
  close (fd);
}

static void
a_parked_reply_is_not_split_by_another (void)
{
  expect_whole_replies ("fast");
  expect_whole_replies ("slow");
}

/* ---- Clients that vanish ---- */

static void
reads_of_a_vanished_client_are_cancelled (void)
{
  const unsigned before = counts ().cancelled;
  const int fd = client_attach (&fixture, "held");

  ask (fd, 30, 8192);
  WAIT_UNTIL (counts ().waiting == 30);
  close (fd);
  CHECK (fake_pager_wait_idle (fixture.pager));
  CHECK_EQ (counts ().cancelled - before, 30);
  CHECK_EQ (counts ().clients, 0);
}

static void
an_export_that_opens_too_late_is_given_back (void)
{
  const int fd = client_connect (&fixture);

  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE);
  client_send_info (fd, NBD_OPT_GO, "late");
  WAIT_UNTIL (counts ().waiting == 1);
  close (fd);
  poll (NULL, 0, 20); /* Most likely it is noticed before the answer. */
  fake_pager_let_go (fixture.pager);
  CHECK (fake_pager_wait_idle (fixture.pager));
  fake_pager_hold_again (fixture.pager);
}

/* At any moment: after each number of bytes of a dialogue, with replies of
 * megabytes under way.
 */
static void
a_client_may_vanish_at_any_moment (void)
{
  static const char *const exports[] = { "fast", "slow", "mixed" };
  unsigned i;
  int fd;

  for (i = 0; i < 150; i++) {
    fd = client_attach (&fixture, exports[i % 3]);
    ask (fd, i % 20, 1 << 20);
    if (i % 4 == 0)
      client_send (fd, "\x25\x60\x95\x13 and no more", 8);
    if (i % 5 == 0)
      shutdown (fd, SHUT_WR);
    close (fd);
  }
  CHECK (fake_pager_wait_idle (fixture.pager));
}

/* ---- Crowds ---- */

static void
one_client_too_many_is_turned_away (void)
{
  int fds[MAX_CLIENTS], i, fd;

  WAIT_UNTIL (counts ().clients == 0);
  for (i = 0; i < MAX_CLIENTS; i++)
    fds[i] = client_attach (&fixture, "fast");
  client_expect_closed (client_connect (&fixture));
  close (fds[0]);
  WAIT_UNTIL (counts ().clients == MAX_CLIENTS - 1);
  fd = client_attach (&fixture, "fast");
  client_expect_bytes (&fixture, fd, 0, 512);
  close (fd);
  for (i = 1; i < MAX_CLIENTS; i++)
    close (fds[i]);
}

/* CPU time of all our threads. */
static uint64_t
cpu_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (uint64_t) t.tv_sec * NS_PER_SEC + (uint64_t) t.tv_nsec;
}

static void
running_out_of_descriptors_delays_clients_and_costs_nothing (void)
{
  enum {
    SPARE = 200
  };
  const int served = client_attach (&fixture, "fast");
  struct rlimit before, few;
  int hogs[SPARE], nr_hogs = 0, late;
  struct pollfd pfd = { .events = POLLIN };
  uint64_t started_ns;

  CHECK_EQ (getrlimit (RLIMIT_NOFILE, &before), 0);
  few = before;
  few.rlim_cur = SPARE;
  CHECK_EQ (setrlimit (RLIMIT_NOFILE, &few), 0);
  while (nr_hogs < SPARE &&
         (hogs[nr_hogs] = open ("/dev/null", O_RDONLY)) >= 0)
    nr_hogs++;
  CHECK (nr_hogs > 0 && nr_hogs < SPARE);
  close (hogs[--nr_hogs]);
  late = client_connect (&fixture); /* Takes the last descriptor. */

  started_ns = cpu_ns ();
  pfd.fd = late;
  CHECK_EQ (poll (&pfd, 1, 300), 0);
  CHECK (cpu_ns () - started_ns < 100 * NS_PER_MS);
  client_expect_bytes (&fixture, served, 0, 4096);

  while (nr_hogs > 0)
    close (hogs[--nr_hogs]);
  client_greet (late, NBD_FLAG_FIXED_NEWSTYLE);
  close (late);
  close (served);
  CHECK_EQ (setrlimit (RLIMIT_NOFILE, &before), 0);
}

int
main (void)
{
  fixture.limits = default_front_limits;
  fixture.limits.handshake_ns = HANDSHAKE_MS * NS_PER_MS;
  fixture.limits.max_options = MAX_OPTIONS;
  fixture.limits.stall_ns = STALL_MS * NS_PER_MS;
  fixture.limits.max_clients = MAX_CLIENTS;
  fixture.limits.max_bytes = 4 << 20;
  fixture.limits.max_resume = 256 << 10;
  fixture_start (&fixture);
  RUN (half_an_option_is_dropped_and_others_do_not_notice);
  RUN (a_client_that_keeps_us_waiting_is_dropped_however_often_it_asks);
  RUN (a_client_that_asks_without_end_is_dropped);
  RUN (the_time_to_open_an_export_is_not_the_clients);
  RUN (a_client_has_under_way_what_it_has_shown_to_read);
  RUN (a_client_that_does_not_read_holds_nothing_and_loses_nothing);
  RUN (a_client_that_reads_slowly_gets_every_byte);
  RUN (a_parked_reply_is_not_split_by_another);
  RUN (reads_of_a_vanished_client_are_cancelled);
  RUN (an_export_that_opens_too_late_is_given_back);
  RUN (a_client_may_vanish_at_any_moment);
  RUN (one_client_too_many_is_turned_away);
  RUN (running_out_of_descriptors_delays_clients_and_costs_nothing);
  fixture_stop (&fixture);
  return EXIT_SUCCESS;
}
