/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Starting, watching and ending the captive nbdkit. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/pager/captive.h"
#include "daemon/pager/private-dir.h"
#include "lib/base/cleanup.h"

enum {
  TERM_WAIT_MS = 2000, /* From SIGTERM to SIGKILL. */
};

struct captive {
  const char *store; /* Borrowed. */
  struct private_dir dir;
  char socket[sizeof ((struct sockaddr_un *) 0)->sun_path];
  pid_t pid; /* 0: not running. */
};

int
captive_new (struct captive **ret_captive, const char *store,
             struct bp_error *err)
{
  CLEANUP_FREE struct captive *captive = calloc (1, sizeof *captive);
  const char *runtime = getenv ("RUNTIME_DIRECTORY");
  int r = -ENOENT;

  if (captive == NULL)
    return bp_error_set (err, -ENOMEM, "captive nbdkit: out of memory");
  captive->store = store;
  if (runtime && *runtime)
    r = private_dir_make (&captive->dir, runtime, strcspn (runtime, ":"));
  if (r < 0)
    r = private_dir_make (&captive->dir, "/tmp", strlen ("/tmp"));
  if (r < 0)
    return bp_error_set (err, r, "captive nbdkit: private directory: %m");

  /* private_dir_make has left room. */
  stpcpy (stpcpy (captive->socket, captive->dir.path),
          "/" PRIVATE_DIR_SOCKET);
  *ret_captive = steal_ptr (&captive);
  return 0;
}

const char *
captive_socket (const struct captive *captive)
{
  return captive->socket;
}

/* ---- Starting ---- */

/* Our environment without what systemd meant for us alone.  The caller
 * frees the array, not the strings.
 */
static char **
child_environment (void)
{
  static const char *const ours[] = {
    "LISTEN_FDS=", "LISTEN_PID=", "LISTEN_FDNAMES=", "NOTIFY_SOCKET=",
    "WATCHDOG_PID=", "WATCHDOG_USEC="
  };
  size_t count = 0, n = 0;
  char **env;

  while (environ[count])
    count++;
  env = calloc (count + 1, sizeof *env);
  if (env == NULL)
    return NULL;
  for (size_t i = 0; i < count; i++) {
    bool keep = true;

    for (size_t j = 0; j < sizeof ours / sizeof ours[0]; j++)
      keep &= strncmp (environ[i], ours[j], strlen (ours[j])) != 0;
    if (keep)
      env[n++] = environ[i];
  }
  return env;
}

/* In the child, between fork and exec: only what is safe there.  A new
 * process group, no signal blocked or ignored, standard input empty and
 * standard output our standard error.  --exit-with-parent takes effect only
 * when nbdkit has come so far; PARENT may have died before.  Returns if it
 * fails, with errno.
 */
static void
become_nbdkit (pid_t parent, char *const argv[], char *const env[])
{
  const int fd = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  sigset_t none;

  if (prctl (PR_SET_PDEATHSIG, SIGTERM) == -1 || getppid () != parent)
    return;
  setpgid (0, 0);
  for (int sig = 1; sig < NSIG; sig++)
    signal (sig, SIG_DFL); /* Fails for those that are never ignored. */
  sigemptyset (&none);
  pthread_sigmask (SIG_SETMASK, &none, NULL);
  if (dup2 (fd, STDIN_FILENO) != -1 &&
      dup2 (STDERR_FILENO, STDOUT_FILENO) != -1)
    execvpe (argv[0], argv, env);
}

/* What the child has written to FD: the errno of exec, or nothing, because
 * exec closes it.  Returns 0 or -errno.
 */
static int
read_exec_error (int fd)
{
  int error;
  ssize_t r;

  do
    r = read (fd, &error, sizeof error);
  while (r == -1 && errno == EINTR);
  return r == sizeof error ? -error : 0;
}

/* Returns 0 or -errno, also that of exec. */
static int
spawn (pid_t *ret_pid, char *const argv[], char *const env[])
{
  const pid_t parent = getpid ();
  int fds[2], error;
  pid_t pid;

  if (pipe2 (fds, O_CLOEXEC) == -1)
    return -errno;
  pid = fork ();
  if (pid == 0) {
    become_nbdkit (parent, argv, env);
    error = errno;
    if (write (fds[1], &error, sizeof error) != sizeof error)
      abort ();
    _exit (EXIT_FAILURE);
  }
  error = pid == -1 ? -errno : 0;
  close (fds[1]);
  if (error == 0)
    error = read_exec_error (fds[0]);
  close (fds[0]);
  if (error == 0)
    *ret_pid = pid;
  else if (pid != -1)
    waitpid (pid, NULL, 0);
  return error;
}

int
captive_start (struct captive *captive, struct bp_error *err)
{
  const char *nbdkit = getenv ("BLOBPAGER_NBDKIT");
  const char *plugin = getenv ("BLOBPAGER_PLUGIN");
  CLEANUP_FREE char *store = NULL;
  CLEANUP_FREE char **env = child_environment ();
  int r;

  assert (captive->pid == 0);
  if (nbdkit == NULL || *nbdkit == '\0')
    nbdkit = "nbdkit";
  if (plugin == NULL || *plugin == '\0')
    plugin = "blobpager";
  if (env == NULL || asprintf (&store, "store=%s", captive->store) == -1) {
    store = NULL; /* Undefined after a failure. */
    return bp_error_set (err, -ENOMEM, "captive nbdkit: out of memory");
  }
  /* A killed nbdkit leaves its socket, and would not bind to it again. */
  if (unlink (captive->socket) == -1 && errno != ENOENT)
    return bp_error_set (err, -errno, "'%s': unlink: %m", captive->socket);

  r = spawn (&captive->pid,
             (char *[]){ (char *) nbdkit, (char *) "-f",
                         (char *) "--exit-with-parent", (char *) "-U",
                         captive->socket, (char *) plugin, store, NULL },
             env);
  if (r < 0) {
    captive->pid = 0;
    return bp_error_set (err, r, "captive nbdkit: '%s': %m", nbdkit);
  }
  return 0;
}

/* ---- Ending ---- */

bool
captive_is_running (struct captive *captive)
{
  int status;

  if (captive->pid == 0)
    return false;
  if (waitpid (captive->pid, &status, WNOHANG) != captive->pid)
    return true;
  captive->pid = 0;
  if (WIFSIGNALED (status))
    log_warn ("captive nbdkit: killed by signal %d, starting it again",
              WTERMSIG (status));
  else
    log_warn ("captive nbdkit: exited with status %d, starting it again",
              WEXITSTATUS (status));
  return false;
}

/* Wait for its end, at most TIMEOUT_MS. */
static bool
has_ended_within (struct captive *captive, int timeout_ms)
{
  CLEANUP_CLOSE int fd = pidfd_open (captive->pid, 0);
  struct pollfd pollfd = { .fd = fd, .events = POLLIN };
  int r;

  if (fd == -1)
    return false;
  do
    r = poll (&pollfd, 1, timeout_ms);
  while (r == -1 && errno == EINTR);
  return r == 1;
}

void
captive_stop (struct captive *captive)
{
  int status;
  pid_t r;

  if (captive->pid == 0)
    return;
  kill (captive->pid, SIGTERM);
  if (!has_ended_within (captive, TERM_WAIT_MS))
    kill (captive->pid, SIGKILL);
  do
    r = waitpid (captive->pid, &status, 0);
  while (r == -1 && errno == EINTR);
  captive->pid = 0;
}

void
captive_free (struct captive *captive)
{
  if (captive == NULL)
    return;
  captive_stop (captive);
  private_dir_remove (&captive->dir);
  free (captive);
}
