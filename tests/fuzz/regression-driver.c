/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Runs a fuzz target over its corpus, without a fuzzing compiler.
 *
 *   fuzz-NAME          the corpus, each file also cut short and mutated
 *   fuzz-NAME FILE...  these files, as they are
 *
 * Of the corpus, should-fail-* must be refused, found-* may be and are run
 * as they are, and all others decode.
 *
 * Mutations are reproducible; an input that ends the process is left in
 * the file fuzz-NAME.crash of the working directory.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "harness/vectors.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/range.h"

enum {
  MAX_FILE = 64 << 20,   /* Bytes of a file. */
  CUTS = 200,            /* Lengths tried of a file. */
  MUTATIONS = 300,       /* Of a file. */
  MUTATION_BYTES = 4096, /* Most of them hit the first ones: headers. */
};

/* What the target is looking at, for the crash handler. */
static const uint8_t *current;
static size_t current_size;

static void
die (const char *what, const char *why)
{
  fprintf (stderr, "fuzz-%s: %s: %s\n", fuzz_target, what, why);
  exit (1);
}

/* Keep the input; then die of the signal, whose default is restored. */
static void
on_crash (int sig)
{
  char path[128];
  int fd;

  snprintf (path, sizeof path, "fuzz-%s.crash", fuzz_target);
  fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd >= 0 && bp_write_all (fd, current, current_size) == 0)
    fprintf (stderr, "the input is in %s\n", path);
  raise (sig);
}

static void
run_input (const uint8_t *data, size_t size)
{
  /* In memory of exactly this size, so that a sanitizer sees a byte too
   * far.
   */
  CLEANUP_FREE uint8_t *copy = malloc (size > 0 ? size : 1);

  if (copy == NULL)
    die ("malloc", strerror (ENOMEM));
  if (size > 0)
    memcpy (copy, data, size);
  current = copy;
  current_size = size;
  LLVMFuzzerTestOneInput (copy, size);
}

static void
run_cut_short (const uint8_t *data, size_t size)
{
  const size_t step = MAX (size / CUTS, 1);

  for (size_t cut = 0; cut < size; cut += step)
    run_input (data, cut);
}

/* Set one to four bytes to something else, a round at a time. */
static void
run_mutated (const uint8_t *data, size_t size)
{
  CLEANUP_FREE uint8_t *copy = malloc (size);
  uint64_t state = size;

  if (copy == NULL)
    die ("malloc", strerror (ENOMEM));
  for (int round = 0; round < MUTATIONS; round++) {
    const size_t reach = round % 4 > 0 ? MIN (size, MUTATION_BYTES) : size;
    const unsigned count = 1 + splitmix64 (&state) % 4;

    memcpy (copy, data, size);
    for (unsigned i = 0; i < count; i++)
      copy[splitmix64 (&state) % reach] ^=
        (uint8_t) (1u << splitmix64 (&state) % 8);
    run_input (copy, size);
  }
}

static uint8_t *
read_input (int dirfd, const char *path, size_t *ret_size)
{
  uint8_t *data;
  const int r = bp_read_file (dirfd, path, MAX_FILE, &data, ret_size);

  if (r < 0)
    die (path, strerror (-r));
  return data;
}

static void
run_seed (int dirfd, const char *name)
{
  const bool should_fail = strncmp (name, "should-fail-", 12) == 0;
  const bool is_found = strncmp (name, "found-", 6) == 0;
  size_t size;
  CLEANUP_FREE uint8_t *data = read_input (dirfd, name, &size);

  fuzz_decoded = false;
  run_input (data, size);
  if (is_found)
    return;
  if (fuzz_decoded == should_fail)
    die (name, should_fail ? "decodes, but should not"
                           : "does not decode");
  if (size > 0) {
    run_cut_short (data, size);
    run_mutated (data, size);
  }
}

/* Returns how many files there were. */
static size_t
run_corpus (void)
{
  CLEANUP_CLOSEDIR DIR *dir = NULL;
  char path[4096];
  const struct dirent *entry;
  size_t count = 0;

  snprintf (path, sizeof path, "%s/fuzz/corpus/%s", SRCDIR, fuzz_target);
  dir = opendir (path);
  if (dir == NULL)
    die (path, strerror (errno));
  while ((entry = readdir (dir)) != NULL)
    if (entry->d_name[0] != '.') {
      run_seed (dirfd (dir), entry->d_name);
      count++;
    }
  return count;
}

/* Files given by a person may be links, or lie anywhere. */
static void
run_given (const char *path)
{
  CLEANUP_FREE char *real = realpath (path, NULL);
  CLEANUP_CLOSE int root = open ("/", O_PATH | O_CLOEXEC);

  CLEANUP_FREE uint8_t *data = NULL;
  size_t size;

  if (real == NULL || root == -1)
    die (path, strerror (errno));
  data = read_input (root, real + 1, &size);
  run_input (data, size);
}

int
main (int argc, char *argv[])
{
  const struct sigaction action = {
    .sa_handler = on_crash,
    .sa_flags = (int) SA_RESETHAND,
  };

  sigaction (SIGABRT, &action, NULL);
  sigaction (SIGSEGV, &action, NULL);
  for (int i = 1; i < argc; i++)
    run_given (argv[i]);
  if (argc == 1 && run_corpus () == 0)
    die (fuzz_target, "the corpus is empty");
  return 0;
}
