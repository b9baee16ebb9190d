/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* lagsim: a long network path on one machine.
 *
 * A proxy between stream sockets that delays every byte by half of the
 * round-trip time each way and, if asked, lets through at most so many
 * megabits a second: one link, shared by all connections.  Any number of
 * requests may be under way, so pipelining costs what it costs on a real
 * path.
 *
 *            ┌─ reader ─▶ queue of chunks, each with ─▶ writer ─┐
 *   client ──┤            the time at which it is due           ├── target
 *            └─ writer ◀─ queue of chunks ◀──────────── reader ─┘
 *
 * Each direction has two threads.  The reader stamps what it has read
 * with the time at which its last byte leaves the link plus half an RTT;
 * the writer sleeps until then and passes it on.  The end of the stream
 * travels through the queue behind the bytes.  A queue holds at most
 * QUEUE_MAX_BYTES, after which its reader waits; a chunk is never larger
 * than READ_MAX_BYTES.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

enum {
  READ_MAX_BYTES = 64 << 10,
  QUEUE_MAX_BYTES = 64 << 20,
  MAX_CONNECTIONS = 1024,
  MAX_RTT_MS = 60000,
};

/* Read-only once the first connection has been accepted. */
static struct {
  const char *listen;
  const char *target;
  const char *pidfile; /* NULL: none. */
  uint64_t half_rtt_ns;
  double ns_per_byte; /* 0: no cap. */
} options;

/* The link itself, one way each. */
static pthread_mutex_t link_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t link_free_ns[2]; /* When it is next idle; link_lock. */

static atomic_int nr_connections;

struct chunk {
  struct chunk *next;
  uint64_t due_ns; /* Monotonic time at which it may be passed on. */
  size_t len;      /* Bytes; 0: the end of the stream. */
  uint8_t data[];
};

/* One direction of a connection. */
struct flow {
  int from, to; /* Borrowed from the connection. */
  int way;      /* Index into link_free_ns. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct chunk *head, **tail; /* lock */
  size_t queued_bytes;        /* lock */
  bool is_broken;             /* lock: the writer has given up. */
};

struct connection {
  int client, server;
  struct flow up, down;
};

static void
flow_init (struct flow *flow, int from, int to, int way)
{
  flow->from = from;
  flow->to = to;
  flow->way = way;
  pthread_mutex_init (&flow->lock, NULL);
  pthread_cond_init (&flow->changed, NULL);
  flow->tail = &flow->head;
}

static void
flow_done (struct flow *flow)
{
  while (flow->head) {
    struct chunk *chunk = flow->head;

    flow->head = chunk->next;
    free (chunk);
  }
  pthread_cond_destroy (&flow->changed);
  pthread_mutex_destroy (&flow->lock);
}

/* When LEN bytes that enter the link now have all arrived. */
static uint64_t
arrival_ns (int way, size_t len)
{
  LOCKED (&link_lock);
  const uint64_t now = now_ns ();

  if (link_free_ns[way] < now)
    link_free_ns[way] = now;
  link_free_ns[way] += (uint64_t) ((double) len * options.ns_per_byte);
  return link_free_ns[way] + options.half_rtt_ns;
}

/* Takes ownership of CHUNK.  Waits while the queue is full; false once
 * the writer has given up.
 */
static bool
flow_push (struct flow *flow, struct chunk *chunk)
{
  LOCKED (&flow->lock);

  while (flow->queued_bytes >= QUEUE_MAX_BYTES && !flow->is_broken)
    pthread_cond_wait (&flow->changed, &flow->lock);
  if (flow->is_broken) {
    free (chunk);
    return false;
  }
  *flow->tail = chunk;
  flow->tail = &chunk->next;
  flow->queued_bytes += chunk->len;
  pthread_cond_broadcast (&flow->changed);
  return true;
}

/* The next chunk, which the caller frees.  Waits for one. */
static struct chunk *
flow_pop (struct flow *flow)
{
  LOCKED (&flow->lock);
  struct chunk *chunk;

  while (flow->head == NULL)
    pthread_cond_wait (&flow->changed, &flow->lock);
  chunk = flow->head;
  flow->head = chunk->next;
  if (flow->head == NULL)
    flow->tail = &flow->head;
  flow->queued_bytes -= chunk->len;
  pthread_cond_broadcast (&flow->changed);
  return chunk;
}

/* The other side takes no more: wake the reader, and tell the sender. */
static void
flow_break (struct flow *flow)
{
  LOCKED (&flow->lock);

  flow->is_broken = true;
  shutdown (flow->from, SHUT_RDWR);
  pthread_cond_broadcast (&flow->changed);
}

static struct chunk *
new_chunk (int way, const uint8_t *data, size_t len)
{
  struct chunk *chunk = malloc (sizeof *chunk + len);

  if (chunk == NULL) {
    perror ("lagsim: malloc");
    exit (1);
  }
  chunk->next = NULL;
  chunk->len = len;
  chunk->due_ns = arrival_ns (way, len);
  memcpy (chunk->data, data, len);
  return chunk;
}

static void *
flow_read (void *opaque)
{
  struct flow *flow = opaque;
  uint8_t buf[READ_MAX_BYTES];
  ssize_t r;

  do {
    r = read (flow->from, buf, sizeof buf);
    if (r == -1 && errno == EINTR)
      continue;
    if (r == -1)
      r = 0; /* A reset ends the stream, too. */
    if (!flow_push (flow, new_chunk (flow->way, buf, (size_t) r)))
      break;
  } while (r != 0);
  return NULL;
}

static void
sleep_until (uint64_t due_ns)
{
  const struct timespec due = {
    .tv_sec = (time_t) (due_ns / NS_PER_SEC),
    .tv_nsec = (long) (due_ns % NS_PER_SEC),
  };

  while (clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) ==
         EINTR)
    continue;
}

static bool
write_chunk (int fd, const struct chunk *chunk)
{
  size_t done = 0;

  while (done < chunk->len) {
    const ssize_t r = write (fd, chunk->data + done, chunk->len - done);

    if (r >= 0)
      done += (size_t) r;
    else if (errno != EINTR)
      return false;
  }
  return true;
}

static void *
flow_write (void *opaque)
{
  struct flow *flow = opaque;

  for (;;) {
    CLEANUP_FREE struct chunk *chunk = flow_pop (flow);

    sleep_until (chunk->due_ns);
    if (chunk->len == 0) {
      shutdown (flow->to, SHUT_WR);
      return NULL;
    }
    if (!write_chunk (flow->to, chunk)) {
      flow_break (flow);
      return NULL;
    }
  }
}

/* ---- Sockets ---- */

/* PATH, or HOST:PORT. */
static bool
is_unix_path (const char *where)
{
  return strchr (where, '/') != NULL || strchr (where, ':') == NULL;
}

/* Bind (and listen) or connect FD.  0 or -1 with errno. */
static int
attach_socket (int fd, const struct sockaddr *addr, socklen_t len,
               bool is_listening)
{
  if (!is_listening)
    return connect (fd, addr, len);
  return bind (fd, addr, len) == -1 ? -1 : listen (fd, SOMAXCONN);
}

static int
open_unix_socket (const char *path, bool is_listening)
{
  CLEANUP_CLOSE int fd = -1;
  struct sockaddr_un addr = { .sun_family = AF_UNIX };

  if (strlen (path) >= sizeof addr.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy (addr.sun_path, path, strlen (path) + 1);
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd == -1)
    return -1;
  if (is_listening && unlink (path) == -1 && errno != ENOENT)
    return -1;
  if (attach_socket (fd, (struct sockaddr *) &addr, sizeof addr,
                     is_listening) == -1)
    return -1;
  return steal_fd (&fd);
}

static void
set_no_delay (int fd)
{
  const int one = 1;

  /* Fails on a Unix socket, which needs none. */
  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static int
open_addrinfo (const struct addrinfo *ai, bool is_listening)
{
  CLEANUP_CLOSE int fd = -1;
  const int one = 1;

  fd = socket (ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, 0);
  if (fd == -1)
    return -1;
  setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (attach_socket (fd, ai->ai_addr, ai->ai_addrlen, is_listening) == -1)
    return -1;
  set_no_delay (fd);
  return steal_fd (&fd);
}

static int
open_tcp_socket (const char *where, bool is_listening)
{
  const struct addrinfo hints = {
    .ai_socktype = SOCK_STREAM,
    .ai_flags = is_listening ? AI_PASSIVE : 0,
  };
  CLEANUP_FREE char *host = strdup (where);
  struct addrinfo *list;
  char *colon;
  int fd = -1;

  if (host == NULL)
    return -1;
  colon = strrchr (host, ':');
  *colon = '\0';
  if (getaddrinfo (host, colon + 1, &hints, &list) != 0) {
    errno = EADDRNOTAVAIL;
    return -1;
  }
  for (struct addrinfo *ai = list; ai && fd == -1; ai = ai->ai_next)
    fd = open_addrinfo (ai, is_listening);
  freeaddrinfo (list);
  return fd;
}

/* A descriptor, or -1 with errno. */
static int
open_socket (const char *where, bool is_listening)
{
  return is_unix_path (where) ? open_unix_socket (where, is_listening)
                              : open_tcp_socket (where, is_listening);
}

/* ---- Connections ---- */

static void
start_thread (pthread_t *thread, void *(*fn) (void *), void *opaque)
{
  const int r = pthread_create (thread, NULL, fn, opaque);

  if (r != 0) {
    fprintf (stderr, "lagsim: pthread_create: %s\n", strerror (r));
    exit (1);
  }
}

/* Both flows until both have ended. */
static void
run_flows (struct connection *conn)
{
  pthread_t threads[4];

  start_thread (&threads[0], flow_read, &conn->up);
  start_thread (&threads[1], flow_write, &conn->up);
  start_thread (&threads[2], flow_read, &conn->down);
  start_thread (&threads[3], flow_write, &conn->down);
  for (int i = 0; i < 4; i++)
    pthread_join (threads[i], NULL);
}

/* A thread of its own for each connection.  OPAQUE is the client's
 * socket.
 */
static void *
serve_client (void *opaque)
{
  struct connection conn = { .client = (int) (intptr_t) opaque };

  conn.server = open_socket (options.target, false);
  if (conn.server == -1)
    fprintf (stderr, "lagsim: %s: %m\n", options.target);
  else {
    flow_init (&conn.up, conn.client, conn.server, 0);
    flow_init (&conn.down, conn.server, conn.client, 1);
    run_flows (&conn);
    flow_done (&conn.up);
    flow_done (&conn.down);
    close (conn.server);
  }
  close (conn.client);
  atomic_fetch_sub (&nr_connections, 1);
  return NULL;
}

/* Returns false when the listener is of no more use. */
static bool
accept_client (int listener)
{
  const int fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC);
  pthread_t thread;

  if (fd == -1) {
    if (errno == EINTR || errno == ECONNABORTED)
      return true;
    perror ("lagsim: accept");
    return false;
  }
  if (atomic_fetch_add (&nr_connections, 1) >= MAX_CONNECTIONS) {
    fprintf (stderr, "lagsim: more than %d connections: one refused\n",
             MAX_CONNECTIONS);
    atomic_fetch_sub (&nr_connections, 1);
    close (fd);
    return true;
  }
  set_no_delay (fd);
  start_thread (&thread, serve_client, (void *) (intptr_t) fd);
  pthread_detach (thread);
  return true;
}

/* Until SIGTERM or SIGINT (true), or until accept fails (false). */
static bool
accept_clients (int listener, int signals)
{
  for (;;) {
    struct pollfd fds[] = {
      { .fd = signals, .events = POLLIN },
      { .fd = listener, .events = POLLIN },
    };

    if (poll (fds, 2, -1) == -1) {
      if (errno == EINTR)
        continue;
      perror ("lagsim: poll");
      return false;
    }
    if (fds[0].revents)
      return true;
    if (fds[1].revents && !accept_client (listener))
      return false;
  }
}

/* ---- Command line ---- */

static const char usage_text[] =
  "usage: lagsim [--pidfile=PATH] LISTEN TARGET RTT_MS [MBIT]\n"
  "\n"
  "Pass connections to LISTEN on to TARGET, RTT_MS milliseconds away, over\n"
  "a link of MBIT megabits a second each way (no limit if not given).\n"
  "LISTEN and TARGET are the path of a Unix socket, or HOST:PORT.\n"
  "\n"
  "  --pidfile=PATH   written when connections are accepted\n"
  "  --help           print this\n";

/* A number in [MIN, MAX], or exit. */
static double
parse_number (const char *what, const char *text, double min, double max)
{
  char *end;
  const double value = strtod (text, &end);

  if (end == text || *end != '\0' || !isfinite (value) || value < min ||
      value > max) {
    fprintf (stderr, "lagsim: %s: could not parse '%s'\n", what, text);
    exit (2);
  }
  return value;
}

static void
parse_options (int argc, char **argv)
{
  static const struct option long_options[] = {
    { "help", no_argument, NULL, 'h' },
    { "pidfile", required_argument, NULL, 'p' },
    { NULL, 0, NULL, 0 },
  };
  int c;

  while ((c = getopt_long (argc, argv, "", long_options, NULL)) != -1) {
    if (c == 'h') {
      fputs (usage_text, stdout);
      exit (0);
    }
    if (c != 'p') {
      fputs (usage_text, stderr);
      exit (2);
    }
    options.pidfile = optarg;
  }
  if (argc - optind != 3 && argc - optind != 4) {
    fputs (usage_text, stderr);
    exit (2);
  }
  options.listen = argv[optind];
  options.target = argv[optind + 1];
  options.half_rtt_ns =
    (uint64_t) (parse_number ("RTT_MS", argv[optind + 2], 0, MAX_RTT_MS) *
                (double) NS_PER_MS / 2);
  if (argc - optind == 4)
    options.ns_per_byte =
      8000.0 / parse_number ("MBIT", argv[optind + 3], 0.001, 1e6);
}

/* Appears whole: it is written beside and renamed. */
static bool
write_pidfile (const char *path)
{
  CLEANUP_FREE char *tmp = NULL;
  FILE *fp;

  if (asprintf (&tmp, "%s.tmp", path) == -1)
    return false;
  fp = fopen (tmp, "we");
  if (fp == NULL)
    return false;
  fprintf (fp, "%ld\n", (long) getpid ());
  return fclose (fp) == 0 && rename (tmp, path) == 0;
}

/* Blocks SIGTERM and SIGINT in every thread; they are read from the
 * descriptor returned (-1: failed).
 */
static int
open_signals (void)
{
  sigset_t set;

  signal (SIGPIPE, SIG_IGN);
  sigemptyset (&set);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGINT);
  if (pthread_sigmask (SIG_BLOCK, &set, NULL) != 0)
    return -1;
  return signalfd (-1, &set, SFD_CLOEXEC);
}

static void
remove_files (void)
{
  if (is_unix_path (options.listen))
    unlink (options.listen);
  if (options.pidfile)
    unlink (options.pidfile);
}

int
main (int argc, char **argv)
{
  int listener, signals;
  bool is_asked;

  parse_options (argc, argv);
  signals = open_signals ();
  if (signals == -1) {
    perror ("lagsim: signalfd");
    return 1;
  }
  listener = open_socket (options.listen, true);
  if (listener == -1) {
    fprintf (stderr, "lagsim: %s: %m\n", options.listen);
    return 1;
  }
  if (options.pidfile && !write_pidfile (options.pidfile)) {
    fprintf (stderr, "lagsim: %s: %m\n", options.pidfile);
    return 1;
  }
  is_asked = accept_clients (listener, signals);
  remove_files ();
  return is_asked ? 0 : 1;
}
