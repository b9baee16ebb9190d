/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Stores, drivers and fetches for the tests of the fetcher. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/store.h"
#include "tests/harness/fetching.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void __attribute__ ((noreturn))
fail (const char *what)
{
  fprintf (stderr, "FAILED: %s\n", what);
  exit (EXIT_FAILURE);
}

void
test_requires_plugin (void)
{
  const char *plugin = getenv ("BLOBPAGER_PLUGIN");

  if (plugin && access (plugin, R_OK) == 0)
    return;
  printf ("skipped: needs the plugin\n");
  exit (77);
}

/* ---- Stores ---- */

void
test_store_init (struct test_store *store)
{
  memset (store, 0, sizeof *store);
  strcpy (store->dir, "/tmp/bp.XXXXXX");
  CHECK (mkdtemp (store->dir) != NULL);
  snprintf (store->path, sizeof store->path, "%s/store", store->dir);
}

/* xorshift64*: reproducible and incompressible. */
static void
fill (uint8_t *data, size_t len, uint64_t seed)
{
  uint64_t x = seed * UINT64_C (0x9e3779b97f4a7c15) + 1;

  for (size_t i = 0; i < len; i++) {
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    data[i] = (uint8_t) ((x * UINT64_C (0x2545f4914f6cdd1d)) >> 56);
  }
}

static int
read_blob (void *opaque, uint64_t offset, void *buf, size_t len,
           struct bp_error *err)
{
  const struct test_blob *blob = opaque;

  (void) err;
  memcpy (buf, blob->data + offset, len);
  return 0;
}

static void
import_blob (struct bp_import *import, struct test_blob *blob)
{
  struct bp_error err;
  bool is_new;
  int r;

  if (blob->size <= BP_WINDOW_SIZE)
    r = bp_import_add_segment (import, blob->data, (uint32_t) blob->size,
                               &blob->root, &is_new, &err);
  else
    r = bp_import_add_blob (import, blob->size, read_blob, blob,
                            &blob->root, &is_new, &err);
  CHECK_EQ (r, 0);
}

void
test_store_add (struct test_store *store, size_t count, uint64_t size,
                uint64_t seed)
{
  struct bp_import *import = NULL;
  struct bp_store *bp_store = NULL;
  struct bp_error err;

  CHECK_EQ (bp_store_open (&bp_store, store->path, BP_STORE_CREATE, &err),
            0);
  CHECK_EQ (bp_import_begin (&import, bp_store, BP_CODEC_RAW, &err), 0);
  store->blobs = realloc (store->blobs,
                          (store->nr_blobs + count) * sizeof *store->blobs);
  CHECK (store->blobs != NULL);
  for (size_t i = 0; i < count; i++) {
    struct test_blob *blob = &store->blobs[store->nr_blobs++];

    blob->size = size;
    blob->data = malloc (size + 1);
    CHECK (blob->data != NULL);
    fill (blob->data, size, seed * 1000003 + i);
    import_blob (import, blob);
  }
  CHECK_EQ (bp_import_commit (import, NULL, &err), 0);
  bp_import_free (import);
  bp_store_close (bp_store);
}

static int
remove_entry (const char *path, const struct stat *st, int type,
              struct FTW *ftw)
{
  (void) st;
  (void) type;
  (void) ftw;
  return remove (path);
}

void
test_store_done (struct test_store *store)
{
  for (size_t i = 0; i < store->nr_blobs; i++)
    free (store->blobs[i].data);
  free (store->blobs);
  nftw (store->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Change a bit of FILE where the first bytes of NEEDLE stand. */
static bool
corrupt_file (const char *file, const uint8_t *needle, size_t len)
{
  CLEANUP_CLOSE int fd = open (file, O_RDWR | O_CLOEXEC);
  struct stat st;
  uint8_t *map, *found, byte;

  CHECK (fd >= 0 && fstat (fd, &st) == 0);
  map = mmap (NULL, (size_t) st.st_size, PROT_READ, MAP_SHARED, fd, 0);
  CHECK (map != MAP_FAILED);
  found = memmem (map, (size_t) st.st_size, needle, len);
  if (found) {
    byte = *found ^ 1;
    CHECK (pwrite (fd, &byte, 1, found - map) == 1);
  }
  munmap (map, (size_t) st.st_size);
  return found != NULL;
}

void
test_corrupt (const struct test_store *store, const struct test_blob *blob,
              uint64_t offset)
{
  CLEANUP_CLOSEDIR DIR *dir = NULL;
  char path[512];
  struct dirent *entry;

  snprintf (path, sizeof path, "%s/packs", store->path);
  dir = opendir (path);
  CHECK (dir != NULL);
  while ((entry = readdir (dir)) != NULL) {
    snprintf (path, sizeof path, "%s/packs/%s", store->path, entry->d_name);
    if (entry->d_name[0] != '.' &&
        corrupt_file (path, blob->data + offset, 64))
      return;
  }
  fail ("no pack holds the blob");
}

/* ---- Drivers ---- */

struct driver *
test_driver (const struct test_store *store, unsigned timeout_s)
{
  static struct driver_config config;
  struct driver *driver;
  struct bp_error err;

  config.store = store->path;
  config.timeout_s = timeout_s;
  CHECK_EQ (driver_new (&driver, &config, &err), 0);
  CHECK_EQ (driver_wait_ready (driver, 20, &err), 0);
  return driver;
}

struct driver *
test_driver_at (const struct test_store *store, const char *name,
                unsigned timeout_s)
{
  static char uri[256];
  static struct driver_config config;
  struct driver *driver;
  struct bp_error err;

  snprintf (uri, sizeof uri, "nbd+unix:///?socket=%s/%s", store->dir, name);
  config.uri = uri;
  config.timeout_s = timeout_s;
  CHECK_EQ (driver_new (&driver, &config, &err), 0);
  return driver;
}

static bool
listens (void *opaque)
{
  CLEANUP_CLOSE int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un addr = { .sun_family = AF_UNIX };

  CHECK (fd >= 0);
  strcpy (addr.sun_path, opaque);
  return connect (fd, (struct sockaddr *) &addr, sizeof addr) == 0;
}

/* The directory of the plugin just built leads to that of the tests.  A
 * sanitizer's runtime has to come first: ../run has said which, and the
 * wrapper around nbdkit preloads it.
 */
void
test_nbdkit_preload (const char *library)
{
  const char *plugin = getenv ("BLOBPAGER_PLUGIN");
  const char *runtime = getenv ("BLOBPAGER_SANITIZER_RUNTIME");
  const char *end = strstr (plugin, "/nbdkit-plugin/");
  char path[512], all[1024];

  CHECK (end != NULL);
  snprintf (path, sizeof path, "%.*s/tests/harness/%s",
            (int) (end - plugin), plugin, library);
  CHECK_EQ (access (path, R_OK), 0);
  if (runtime == NULL) {
    setenv ("LD_PRELOAD", path, 1);
    return;
  }
  snprintf (all, sizeof all, "%s:%s", runtime, path);
  setenv ("BLOBPAGER_SANITIZER_RUNTIME", all, 1);
}

/* Start ARGV, and wait until it listens on SOCKET_PATH. */
static pid_t
start (char *const argv[], char *socket_path)
{
  pid_t pid;

  unlink (socket_path);
  pid = fork ();
  CHECK (pid >= 0);
  if (pid == 0) {
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    execvp (argv[0], argv);
    _exit (127);
  }
  test_wait_until (listens, socket_path);
  return pid;
}

pid_t
test_nbdkit_start (const struct test_store *store, const char *filter,
                   const char *param)
{
  char socket_path[96], store_arg[128], filter_arg[64] = "--filter=log";
  const char *nbdkit = getenv ("BLOBPAGER_NBDKIT");

  snprintf (socket_path, sizeof socket_path, "%s/socket", store->dir);
  snprintf (store_arg, sizeof store_arg, "store=%s", store->path);
  if (filter)
    snprintf (filter_arg, sizeof filter_arg, "--filter=%s", filter);
  return start (
    (char *[]){ (char *) (nbdkit ? nbdkit : "nbdkit"), (char *) "-f",
                (char *) "-U", socket_path, filter_arg,
                getenv ("BLOBPAGER_PLUGIN"), store_arg,
                (char *) (param ? param : "logfile=/dev/null"), NULL },
    socket_path);
}

pid_t
test_lagsim_start (const struct test_store *store, unsigned rtt_ms)
{
  char near[96], far[96], rtt[16];

  snprintf (near, sizeof near, "%s/socket", store->dir);
  snprintf (far, sizeof far, "%s/far", store->dir);
  snprintf (rtt, sizeof rtt, "%u", rtt_ms);
  return start ((char *[]){ (char *) "lagsim", far, near, rtt, NULL }, far);
}

/* State of the thread at PATH/stat: the letter behind its name. */
static char
thread_state (const char *path)
{
  char name[300], line[512] = "";
  const char *end;
  FILE *fp;

  snprintf (name, sizeof name, "%s/stat", path);
  fp = fopen (name, "re");
  if (fp == NULL)
    return '?';
  if (fgets (line, sizeof line, fp) == NULL)
    line[0] = '\0';
  fclose (fp);
  end = strrchr (line, ')');
  return end && end[1] ? end[2] : '?';
}

static bool
is_frozen (void *opaque)
{
  const pid_t pid = *(const pid_t *) opaque;
  CLEANUP_CLOSEDIR DIR *tasks = NULL;
  const struct dirent *entry;
  char path[280];

  snprintf (path, sizeof path, "/proc/%d/task", (int) pid);
  tasks = opendir (path);
  CHECK (tasks != NULL);
  while ((entry = readdir (tasks)) != NULL) {
    snprintf (path, sizeof path, "/proc/%d/task/%.250s", (int) pid,
              entry->d_name);
    if (entry->d_name[0] != '.' && thread_state (path) != 'T')
      return false;
  }
  return true;
}

void
test_freeze (pid_t pid)
{
  CHECK_EQ (kill (pid, SIGSTOP), 0);
  test_wait_until (is_frozen, &pid);
}

void
test_kill (pid_t pid, int signal)
{
  CHECK (kill (pid, signal) == 0);
  CHECK (waitpid (pid, NULL, 0) == pid);
}

pid_t
test_captive_pid (void)
{
  char path[64];
  FILE *fp;
  int pid = 0, r = 0;
  DIR *tasks = opendir ("/proc/self/task");
  struct dirent *entry;

  CHECK (tasks != NULL);
  while (r != 1 && (entry = readdir (tasks)) != NULL) {
    snprintf (path, sizeof path, "/proc/self/task/%.20s/children",
              entry->d_name);
    fp = fopen (path, "re");
    if (fp == NULL)
      continue;
    r = fscanf (fp, "%d", &pid);
    fclose (fp);
  }
  closedir (tasks);
  return r == 1 ? pid : 0;
}

/* ---- Fetches ---- */

static void
fetch_done (struct fetch *fetch, int status)
{
  struct test_fetch *test = (struct test_fetch *) fetch;

  pthread_mutex_lock (&lock);
  CHECK (!test->is_done);
  test->is_done = true;
  test->status = status;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
}

static void
fetch_retired (struct fetch *fetch)
{
  struct test_fetch *test = (struct test_fetch *) fetch;

  pthread_mutex_lock (&lock);
  CHECK (test->is_done && test->status == -ETIMEDOUT && !test->is_retired);
  test->is_retired = true;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
}

struct test_fetch *
test_fetches (size_t count)
{
  struct test_fetch *fetches = calloc (count, sizeof *fetches);

  CHECK (fetches != NULL);
  for (size_t i = 0; i < count; i++) {
    fetches[i].fetch.buf = malloc (BP_WINDOW_SIZE);
    CHECK (fetches[i].fetch.buf != NULL);
  }
  return fetches;
}

void
test_fetches_free (struct test_fetch *fetches, size_t count)
{
  for (size_t i = 0; i < count; i++)
    free (fetches[i].fetch.buf);
  free (fetches);
}

void
test_fetch_set (struct test_fetch *fetch, const struct test_blob *blob,
                uint64_t offset, enum fetch_class class,
                struct fetch_user *user)
{
  const uint64_t left = blob->size - offset;

  memset (fetch->fetch.buf, 0xa5, BP_WINDOW_SIZE);
  fetch->blob = blob;
  fetch->is_done = false;
  fetch->is_retired = false;
  fetch->fetch.root = blob->root;
  fetch->fetch.offset = offset;
  fetch->fetch.blob_size = blob->size;
  fetch->fetch.len = (uint32_t) (left < BP_WINDOW_SIZE ? left
                                                       : BP_WINDOW_SIZE);
  fetch->fetch.class = class;
  fetch->fetch.user = user;
  fetch->fetch.done = fetch_done;
  fetch->fetch.retired = fetch_retired;
}

void
test_submit (struct fetcher *fetcher, struct test_fetch *fetches,
             size_t count)
{
  struct fetch **list = calloc (count, sizeof *list);

  CHECK (list != NULL);
  for (size_t i = 0; i < count; i++)
    list[i] = &fetches[i].fetch;
  fetcher_submit (fetcher, list, count);
  free (list);
}

void
test_wait (struct test_fetch *fetches, size_t count)
{
  pthread_mutex_lock (&lock);
  for (size_t i = 0; i < count; i++)
    while (!fetches[i].is_done)
      pthread_cond_wait (&changed, &lock);
  pthread_mutex_unlock (&lock);
}

void
test_wait_retired (struct test_fetch *fetch)
{
  pthread_mutex_lock (&lock);
  while (!fetch->is_retired)
    pthread_cond_wait (&changed, &lock);
  pthread_mutex_unlock (&lock);
}

void
test_expect (const struct test_fetch *fetch, int status)
{
  static const uint8_t zeros[BP_WINDOW_SIZE];

  CHECK_EQ (fetch->status, status);
  if (status == 0)
    CHECK (memcmp (fetch->fetch.buf,
                   fetch->blob->data
                     ? fetch->blob->data + fetch->fetch.offset
                     : zeros,
                   fetch->fetch.len) == 0);
}

int
test_fetch_one (struct fetcher *fetcher, const struct test_blob *blob,
                uint64_t offset, struct fetch_user *user)
{
  struct test_fetch *fetch = test_fetches (1);
  int status;

  test_fetch_set (fetch, blob, offset, FETCH_DEMAND, user);
  test_submit (fetcher, fetch, 1);
  test_wait (fetch, 1);
  status = fetch->status;
  test_expect (fetch, status);
  test_fetches_free (fetch, 1);
  return status;
}

void
test_fetch_all (struct fetcher *fetcher, const struct test_store *store,
                size_t first, size_t count, enum fetch_class class,
                struct fetch_user *user)
{
  struct test_fetch *fetches;
  size_t nr = 0, n = 0;

  for (size_t i = first; i < first + count; i++)
    nr += bp_nr_windows (store->blobs[i].size);
  fetches = test_fetches (nr);
  for (size_t i = first; i < first + count; i++)
    for (uint64_t w = 0; w < bp_nr_windows (store->blobs[i].size); w++)
      test_fetch_set (&fetches[n++], &store->blobs[i], w * BP_WINDOW_SIZE,
                      class, user);
  test_submit (fetcher, fetches, nr);
  test_wait (fetches, nr);
  for (size_t i = 0; i < nr; i++)
    test_expect (&fetches[i], 0);
  test_fetches_free (fetches, nr);
}

/* ---- Waiting ---- */

void
test_wait_until (bool (*condition) (void *opaque), void *opaque)
{
  const uint64_t deadline = now_ns () + 20 * NS_PER_SEC;
  const struct timespec slice = { .tv_nsec = 2000000 };

  while (!condition (opaque)) {
    if (now_ns () > deadline)
      fail ("timed out");
    nanosleep (&slice, NULL);
  }
}
