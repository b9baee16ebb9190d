/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The main of the broken server:
 *
 *   broken-server --list-bugs
 *   broken-server SOCKET [BUG [SIZE]]
 *
 * It prints "ready" when it listens, and runs until it is killed, or the
 * process that started it ends.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/broken.h"
#include "lib/base/range.h"
#include "lib/base/size.h"

#define DEFAULT_SIZE UINT64_C (1049088) /* 1 MiB and a sector. */

enum {
  MAX_FEW_CLIENTS = 8, /* With the bug. */
};

struct bug_row {
  const char *name;
  char kind; /* Exactly these checks fail (=), or these and more (+). */
  const char *checks;
};

static const struct bug_row rows[] = {
#define X(id, name, kind, checks) { name, kind, checks },
  BROKEN_BUGS (X)
#undef X
};

static size_t current_bug; /* A row; the first is none. */

bool
has_bug (enum bug bug)
{
  return bug == current_bug;
}

static void
list_bugs (void)
{
  for (size_t i = 0; i < ARRAY_LEN (rows); i++)
    printf ("%s %c %s\n", rows[i].name, rows[i].kind, rows[i].checks);
}

static size_t
find_bug (const char *name)
{
  for (size_t i = 0; i < ARRAY_LEN (rows); i++)
    if (strcmp (rows[i].name, name) == 0)
      return i;
  fprintf (stderr, "broken-server: '%s': no such bug\n", name);
  exit (2);
}

static int
listen_on (const char *path)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  const int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (strlen (path) >= sizeof addr.sun_path) {
    fprintf (stderr, "broken-server: '%s': too long\n", path);
    exit (2);
  }
  strcpy (addr.sun_path, path);
  if (fd < 0 || bind (fd, (struct sockaddr *) &addr, sizeof addr) < 0 ||
      listen (fd, SOMAXCONN) < 0) {
    perror ("broken-server: listen");
    exit (1);
  }
  return fd;
}

static void __attribute__ ((noreturn))
stop (int signal)
{
  (void) signal;
  _exit (0);
}

/* With a bug: greet, and let nobody else in until the client speaks. */
static void
wait_for_client (struct client *client)
{
  struct pollfd pollfd = { .fd = client->fd, .events = POLLIN };
  const pid_t pid = fork ();

  if (pid == 0) {
    send_greeting (client);
    poll (&pollfd, 1, -1);
    client_leave ();
  }
  waitpid (pid, NULL, 0);
}

static void __attribute__ ((noreturn))
run_client (struct client *client)
{
  if (!has_bug (BUG_WAITS_FOR_SILENT))
    send_greeting (client);
  negotiate (client);
  serve_requests (client);
}

static void
accept_clients (int listener, uint64_t size)
{
  const int lock_fd = memfd_create ("lock", MFD_CLOEXEC);
  unsigned nr_running = 0;

  for (unsigned number = 0;; number++) {
    struct client client = {
      .fd = accept (listener, NULL, NULL),
      .number = number,
      .server = getpid (),
      .lock_fd = lock_fd,
      .size = size,
    };

    while (nr_running > 0 && waitpid (-1, NULL, WNOHANG) > 0)
      nr_running--;
    if (client.fd < 0)
      continue;
    if (has_bug (BUG_WAITS_FOR_SILENT))
      wait_for_client (&client);
    if (has_bug (BUG_FEW_CLIENTS) && nr_running >= MAX_FEW_CLIENTS) {
      close (client.fd);
      continue;
    }
    if (fork () == 0) {
      close (listener);
      run_client (&client);
    }
    nr_running++;
    close (client.fd);
  }
}

int
main (int argc, char *argv[])
{
  uint64_t size = DEFAULT_SIZE;

  if (argc == 2 && strcmp (argv[1], "--list-bugs") == 0) {
    list_bugs ();
    return 0;
  }
  if (argc < 2 || argc > 4 ||
      (argc == 4 && bp_size_parse (argv[3], &size) < 0)) {
    fprintf (stderr, "usage: broken-server --list-bugs | "
                     "SOCKET [BUG [SIZE]]\n");
    return 2;
  }
  signal (SIGPIPE, SIG_IGN);
  signal (SIGTERM, stop);
  prctl (PR_SET_PDEATHSIG, SIGTERM);
  if (argc > 2)
    current_bug = find_bug (argv[2]);
  const int listener = listen_on (argv[1]);

  puts ("ready");
  fflush (stdout);
  accept_clients (listener, size);
  return 0;
}
