/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* storm: a crowd of clients against a server that is not to notice it.
 *
 *   storm SOCKET EXPORT IMAGE PID [--NAME=N...]
 *
 * Good clients read at random and compare every byte with IMAGE, while
 * others stall and others break the protocol; all come and go for so many
 * seconds.  Meanwhile the memory (VmRSS) and the descriptors of the
 * server, process PID, are looked at four times a second:
 *
 *   0 %          20 %          60 %          100 %
 *   ├────────────┼─────────────┼─────────────┤
 *     warming up     early         late
 *
 * Flat means: the most that it had late is at most --growth-mib more than
 * the most that it had early; and when all have left, it has no more
 * descriptors than before.
 *
 * Prints its figures.  Exit status 0 if all is well, 1 if not, 2: usage.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "harness/check.h"
#include "harness/nbd-client.h"
#include "torture/storm.h"

enum {
  MAX_CLIENTS = 4096,
  SAMPLE_MS = 250,
  LEAVE_S = 30, /* For the server to notice that all have left. */
};

/* The kinds of clients. */
struct kind {
  const char *name;
  storm_client_fn fn;
  uint64_t nr_clients;       /* At any time. */
  _Atomic uint64_t nr_conns; /* That have been. */
};

static struct storm storm;
static struct kind kinds[] = {
  { .name = "good", .fn = storm_good_client, .nr_clients = 200 },
  { .name = "stalled", .fn = storm_stalled_client, .nr_clients = 50 },
  { .name = "malformed", .fn = storm_malformed_client, .nr_clients = 50 },
};

/* Set by options. */
static uint64_t seconds = 60;
static uint64_t seed = 1;
static uint64_t growth_mib = 16;
static uint64_t hot_mib = 16;

/* The server's use of the machine. */
struct usage {
  uint64_t rss_bytes;
  uint64_t nr_fds;
};

static uint64_t
rss_of (const char *pid)
{
  CLEANUP_FCLOSE FILE *fp = NULL;
  char path[64], line[256];
  uint64_t kib;

  snprintf (path, sizeof path, "/proc/%s/status", pid);
  fp = fopen (path, "re");
  CHECK (fp != NULL);
  do
    CHECK (fgets (line, sizeof line, fp) != NULL);
  while (sscanf (line, "VmRSS: %" SCNu64, &kib) != 1);
  return kib << 10;
}

static uint64_t
fds_of (const char *pid)
{
  CLEANUP_CLOSEDIR DIR *dir = NULL;
  char path[64];
  uint64_t count = 0;

  snprintf (path, sizeof path, "/proc/%s/fd", pid);
  dir = opendir (path);
  CHECK (dir != NULL);
  while (readdir (dir) != NULL)
    count++;
  return count;
}

static struct usage
usage_of (const char *pid)
{
  return (struct usage){ .rss_bytes = rss_of (pid), .nr_fds = fds_of (pid) };
}

static void
keep_most (struct usage *most, const struct usage *usage)
{
  most->rss_bytes = MAX (most->rss_bytes, usage->rss_bytes);
  most->nr_fds = MAX (most->nr_fds, usage->nr_fds);
}

/* ---- Clients ---- */

struct client {
  pthread_t thread;
  struct kind *kind;
  uint64_t chance;
};

static void *
live (void *opaque)
{
  struct client *client = opaque;

  while (!atomic_load (&storm.is_over)) {
    client->kind->fn (&storm, &client->chance);
    atomic_fetch_add (&client->kind->nr_conns, 1);
  }
  return NULL;
}

/* Returns how many. */
static size_t
start_clients (struct client *clients)
{
  size_t count = 0;
  uint64_t state = seed;

  for (size_t k = 0; k < ARRAY_LEN (kinds); k++)
    for (uint64_t i = 0; i < kinds[k].nr_clients; i++, count++) {
      CHECK (count < MAX_CLIENTS);
      clients[count].kind = &kinds[k];
      clients[count].chance = splitmix64 (&state);
      CHECK_EQ (pthread_create (&clients[count].thread, NULL, live,
                                &clients[count]),
                0);
    }
  return count;
}

/* ---- The storm ---- */

/* For SECONDS; sets the most that was used early and late. */
static void
watch (const char *pid, struct usage *early, struct usage *late)
{
  const uint64_t start = now_ns (), length = seconds * NS_PER_SEC;
  uint64_t at;

  while ((at = now_ns () - start) < length) {
    const struct usage usage = usage_of (pid);

    if (at >= length * 6 / 10)
      keep_most (late, &usage);
    else if (at >= length * 2 / 10)
      keep_most (early, &usage);
    poll (NULL, 0, SAMPLE_MS);
  }
}

/* Returns its descriptors when all clients have left, or are overdue. */
static uint64_t
wait_until_quiet (const char *pid, uint64_t before)
{
  const uint64_t end = now_ns () + LEAVE_S * NS_PER_SEC;
  uint64_t count;

  while ((count = fds_of (pid)) > before && now_ns () < end)
    poll (NULL, 0, SAMPLE_MS);
  return count;
}

static void
print_figures (const struct usage *before, const struct usage *early,
               const struct usage *late, uint64_t fds_after)
{
  for (size_t k = 0; k < ARRAY_LEN (kinds); k++)
    printf ("%s: %" PRIu64 " clients, %" PRIu64 " connections\n",
            kinds[k].name, kinds[k].nr_clients, kinds[k].nr_conns);
  printf ("reads compared: %" PRIu64 ", %.1f MiB in %" PRIu64
          " s; longest wait for a batch: %.2f s\n",
          storm.nr_reads, (double) storm.bytes / (1 << 20), seconds,
          (double) storm.longest_ns / NS_PER_SEC);
  printf ("RSS: %.1f MiB before, at most %.1f early, %.1f late\n",
          (double) before->rss_bytes / (1 << 20),
          (double) early->rss_bytes / (1 << 20),
          (double) late->rss_bytes / (1 << 20));
  printf ("descriptors: %" PRIu64 " before, at most %" PRIu64
          " early, %" PRIu64 " late, %" PRIu64 " after\n",
          before->nr_fds, early->nr_fds, late->nr_fds, fds_after);
  fflush (stdout);
}

static void
run_storm (const char *pid)
{
  static struct client clients[MAX_CLIENTS];
  struct usage before, early = { 0 }, late = { 0 };
  uint64_t chance = seed, fds_after;
  size_t count, i;

  /* Whatever the server opens once is open from here on. */
  storm_good_client (&storm, &chance);
  before = usage_of (pid);
  count = start_clients (clients);
  watch (pid, &early, &late);
  atomic_store (&storm.is_over, true);
  for (i = 0; i < count; i++)
    CHECK_EQ (pthread_join (clients[i].thread, NULL), 0);
  fds_after = wait_until_quiet (pid, before.nr_fds);
  print_figures (&before, &early, &late, fds_after);
  CHECK (late.rss_bytes <= early.rss_bytes + (growth_mib << 20));
  CHECK (fds_after <= before.nr_fds);
  for (i = 0; i < ARRAY_LEN (kinds); i++)
    CHECK (kinds[i].nr_conns >= kinds[i].nr_clients);
}

/* ---- Command line ---- */

static const struct option long_options[] = {
  { "good", required_argument, NULL, 'g' },
  { "stalled", required_argument, NULL, 's' },
  { "malformed", required_argument, NULL, 'm' },
  { "seconds", required_argument, NULL, 't' },
  { "seed", required_argument, NULL, 'r' },
  { "growth-mib", required_argument, NULL, 'M' },
  { "hot-mib", required_argument, NULL, 'h' },
  { NULL, 0, NULL, 0 },
};

static void __attribute__ ((noreturn))
usage_error (void)
{
  fprintf (stderr, "usage: storm SOCKET EXPORT IMAGE PID [--NAME=N...]\n");
  for (const struct option *o = long_options; o->name; o++)
    fprintf (stderr, "  --%s=N\n", o->name);
  exit (2);
}

/* Where the value of option C goes. */
static uint64_t *
option_value (int c)
{
  switch (c) {
  case 'g': return &kinds[0].nr_clients;
  case 's': return &kinds[1].nr_clients;
  case 'm': return &kinds[2].nr_clients;
  case 't': return &seconds;
  case 'r': return &seed;
  case 'M': return &growth_mib;
  case 'h': return &hot_mib;
  default: usage_error ();
  }
}

static void
parse_options (int argc, char *argv[])
{
  int c;

  while ((c = getopt_long (argc, argv, "", long_options, NULL)) != -1) {
    uint64_t *value = option_value (c);
    char end;

    if (sscanf (optarg, "%" SCNu64 "%c", value, &end) != 1)
      usage_error ();
  }
  if (argc - optind != 4 || seconds == 0)
    usage_error ();
}

static void
map_image (const char *path)
{
  CLEANUP_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC);
  struct stat st;

  CHECK (fd >= 0 && fstat (fd, &st) == 0);
  storm.size = (uint64_t) st.st_size;
  CHECK (storm.size > hot_mib << 20);
  storm.hot_bytes = hot_mib << 20;
  storm.image = mmap (NULL, storm.size, PROT_READ, MAP_SHARED, fd, 0);
  CHECK (storm.image != MAP_FAILED);
}

int
main (int argc, char *argv[])
{
  parse_options (argc, argv);
  storm.path = argv[optind];
  storm.export = argv[optind + 1];
  map_image (argv[optind + 2]);
  run_storm (argv[optind + 3]);
  return EXIT_SUCCESS;
}
