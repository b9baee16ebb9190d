/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A store and an nbdkit of the test's own. */
#include <config.h>

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "lib/store.h"
#include "harness/test-driver.h"

enum {
  MAX_ARGS = 32,
  MAX_CHILDREN = 4,
  READY_SECONDS = 30
};

static pid_t owner; /* The process that cleans up. */
static char dir[] = "/tmp/bp.XXXXXX";
static pid_t children[MAX_CHILDREN];
static size_t nr_children;

void
test_fail (const char *file, int line, const char *fmt, ...)
{
  va_list args;

  printf ("FAILED: %s:%d: ", file, line);
  va_start (args, fmt);
  vprintf (fmt, args);
  va_end (args);
  printf ("\n");
  fflush (stdout);
  /* Asked politely, nbdkit would wait for our connections to end. */
  for (size_t i = 0; getpid () == owner && i < nr_children; i++)
    kill (children[i], SIGKILL);
  exit (1);
}

static int
remove_one (const char *path, const struct stat *st, int type,
            struct FTW *ftw)
{
  (void) st;
  (void) type;
  (void) ftw;
  return remove (path);
}

void
test_stop (void)
{
  const pid_t pid = children[--nr_children];

  kill (pid, SIGTERM);
  waitpid (pid, NULL, 0);
}

static void
clean_up (void)
{
  if (getpid () != owner)
    return;
  while (nr_children > 0)
    test_stop ();
  if (chdir ("/") == 0)
    nftw (dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void
test_begin (void)
{
  struct bp_store *store;
  struct bp_error err;

  owner = getpid ();
  if (mkdtemp (dir) == NULL || chdir (dir) == -1)
    FAIL ("%s: %s", dir, strerror (errno));
  atexit (clean_up);
  if (bp_store_open (&store, "store", BP_STORE_CREATE, &err) < 0)
    FAIL ("%s", err.msg);
  bp_store_close (store);
}

void
test_fill_noise (uint8_t *buf, size_t len, uint64_t seed)
{
  uint64_t x = seed * UINT64_C (0x9e3779b97f4a7c15) + 1;

  for (size_t i = 0; i < len; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    buf[i] = (uint8_t) (x >> 32);
  }
}

void
test_fill_text (uint8_t *buf, size_t len, uint64_t seed)
{
  size_t done = 0;

  while (done < len) {
    char line[32];
    const int n = snprintf (line, sizeof line, "line %llu\n",
                            (unsigned long long) seed++);
    const size_t part = MIN ((size_t) n, len - done);

    memcpy (buf + done, line, part);
    done += part;
  }
}

static int
give_bytes (void *opaque, uint64_t offset, void *buf, size_t len,
            struct bp_error *err)
{
  (void) err;
  memcpy (buf, (const uint8_t *) opaque + offset, len);
  return 0;
}

struct bp_root
test_add_blob (enum bp_codec codec, const uint8_t *data, size_t len)
{
  struct bp_store *store;
  struct bp_import *import;
  struct bp_root root;
  struct bp_error err;
  bool is_new;

  if (bp_store_open (&store, "store", BP_STORE_WRITE, &err) < 0 ||
      bp_import_begin (&import, store, codec, &err) < 0 ||
      bp_import_add_blob (import, len, give_bytes, (void *) data, &root,
                          &is_new, &err) < 0 ||
      bp_import_commit (import, NULL, &err) < 0)
    FAIL ("%s", err.msg);
  bp_import_free (import);
  bp_store_close (store);
  return root;
}

static void
start_child (const char *const *argv)
{
  const pid_t pid = fork ();

  EXPECT (pid != -1);
  if (pid == 0) {
    prctl (PR_SET_PDEATHSIG, SIGTERM);
    execvp (argv[0], (char *const *) argv);
    fprintf (stderr, "%s: %m\n", argv[0]);
    _exit (127);
  }
  EXPECT (nr_children < MAX_CHILDREN);
  children[nr_children++] = pid;
}

static void
wait_for_file (const char *path)
{
  const uint64_t deadline = now_ns () + READY_SECONDS * NS_PER_SEC;

  while (access (path, F_OK) == -1) {
    const struct timespec slice = { .tv_nsec = 10 * 1000 * 1000 };

    if (now_ns () > deadline)
      FAIL ("'%s' did not appear", path);
    nanosleep (&slice, NULL);
  }
}

/* Append a NULL-terminated LIST (may be NULL). */
static void
append_args (const char **argv, size_t *argc, const char *const *list)
{
  for (; list && *list; list++) {
    EXPECT (*argc < MAX_ARGS - 1);
    argv[(*argc)++] = *list;
  }
}

static const char *
or_default (const char *variable, const char *value)
{
  const char *found = getenv (variable);

  return found ? found : value;
}

const char *
test_start_driver (const char *const *options,
                   const char *const *parameters)
{
  static char socket_path[64];
  const char *const start[] = {
    or_default ("BLOBPAGER_NBDKIT", "nbdkit"), "-f", "-U", "driver",
    "-P", "driver.pid", NULL
  };
  const char *const middle[] = {
    or_default ("BLOBPAGER_PLUGIN", "blobpager"), "store=store", NULL
  };
  const char *argv[MAX_ARGS] = { NULL };
  size_t argc = 0;

  append_args (argv, &argc, start);
  append_args (argv, &argc, options);
  append_args (argv, &argc, middle);
  append_args (argv, &argc, parameters);
  unlink ("driver.pid");
  unlink ("driver");
  start_child (argv);
  wait_for_file ("driver.pid");
  snprintf (socket_path, sizeof socket_path, "%s/driver", dir);
  return socket_path;
}

const char *
test_start_lagsim (const char *target, unsigned rtt_ms)
{
  static char socket_path[64];
  char rtt[16];
  const char *const argv[] = { "lagsim", "--pidfile=lagsim.pid", "lagsim",
                               target, rtt, NULL };

  snprintf (rtt, sizeof rtt, "%u", rtt_ms);
  start_child (argv);
  wait_for_file ("lagsim.pid");
  snprintf (socket_path, sizeof socket_path, "%s/lagsim", dir);
  return socket_path;
}
