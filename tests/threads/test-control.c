/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The control socket, with profiles that do as they are told: they stand
 * here in place of daemon/profile, so that a command can be kept waiting.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/control/control.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/pager/driver.h"
#include "daemon/pager/pager.h"
#include "daemon/profile/profile.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/base/range.h"

#define CHECK(condition, ...)                                 \
  do {                                                        \
    if (!(condition)) {                                       \
      printf ("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      printf (__VA_ARGS__);                                   \
      putchar ('\n');                                         \
      exit (1);                                               \
    }                                                         \
  } while (0)

/* ---- The stand-ins ---- */

enum {
  PROFILE_BYTES = 8 << 20
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool stop_waits;            /* profiles_stop waits until this is false. */
  int nr_stopping;            /* Calls of profiles_stop that wait now. */
  int nr_aborts;              /* Calls of profiles_abort, */
  char aborted[BP_NAME_SIZE]; /* and the last one's name. */
  struct profile_start start; /* The last profiles_start's. */
} fake = {
  .lock = PTHREAD_MUTEX_INITIALIZER,
  .changed = PTHREAD_COND_INITIALIZER,
};

int
profiles_start (struct profiles *profiles, const struct profile_start *start,
                struct bp_error *err)
{
  LOCKED (&fake.lock);

  (void) profiles;
  if (strcmp (start->name, "busy") == 0)
    return bp_error_set (err, -EBUSY, "recording 'busy': is under way");
  fake.start = *start;
  return 0;
}

int
profiles_stop (struct profiles *profiles, const char *name,
               struct profile_result *ret_result, struct bp_error *err)
{
  LOCKED (&fake.lock);

  (void) profiles;
  (void) err;
  fake.nr_stopping++;
  pthread_cond_broadcast (&fake.changed);
  while (fake.stop_waits)
    pthread_cond_wait (&fake.changed, &fake.lock);
  fake.nr_stopping--;
  strcpy (ret_result->name, name);
  ret_result->records = 42;
  return 0;
}

int
profiles_abort (struct profiles *profiles, const char *name,
                struct bp_error *err)
{
  LOCKED (&fake.lock);

  (void) profiles;
  (void) err;
  fake.nr_aborts++;
  strcpy (fake.aborted, name);
  pthread_cond_broadcast (&fake.changed);
  return 0;
}

int
profiles_list (struct profiles *profiles, char **ret_json,
               struct bp_error *err)
{
  (void) profiles;
  (void) err;
  *ret_json = strdup ("{\"profiles\":[{\"name\":\"a\"}]}");
  return 0;
}

int
profiles_get (struct profiles *profiles, const char *name, char **ret_meta,
              uint8_t **ret_data, size_t *ret_len, struct bp_error *err)
{
  (void) profiles;
  (void) name;
  (void) err;
  *ret_meta = strdup ("{\"kind\":\"blob\",\"records\":0}");
  *ret_data = calloc (1, PROFILE_BYTES);
  *ret_len = PROFILE_BYTES;
  return 0;
}

int
profiles_delete (struct profiles *profiles, const char *name,
                 struct bp_error *err)
{
  (void) profiles;
  return bp_error_set (err, -ENOENT, "profile '%s': no such profile", name);
}

void
profiles_status (struct profiles *profiles,
                 struct json_object **ret_recordings,
                 struct json_object **ret_replays)
{
  (void) profiles;
  *ret_recordings = json_object_new_array ();
  *ret_replays = json_object_new_array ();
}

void
pager_for_each_export (struct pager *pager,
                       void (*fn) (void *opaque, struct export *export),
                       void *opaque)
{
  (void) pager;
  fn (opaque, NULL);
}

const struct export_info *
export_get_info (const struct export *export)
{
  static const struct export_info info = { .name = "disk", .size = 4096 };

  (void) export;
  return &info;
}

void
export_get_counts (struct export *export, struct export_counts *ret_counts)
{
  (void) export;
  *ret_counts = (struct export_counts){ .clients = 3, .stall_ns = 1500000000 };
}

const char *
driver_uri (const struct driver *driver)
{
  (void) driver;
  return "nbd://host";
}

bool
driver_is_connected (struct driver *driver)
{
  (void) driver;
  return true;
}

static void
wait_for_stopping (int count)
{
  LOCKED (&fake.lock);

  while (fake.nr_stopping != count)
    pthread_cond_wait (&fake.changed, &fake.lock);
}

static void
let_stop_wait (bool waits)
{
  LOCKED (&fake.lock);

  fake.stop_waits = waits;
  pthread_cond_broadcast (&fake.changed);
}

static void
wait_for_aborts (int count)
{
  LOCKED (&fake.lock);

  while (fake.nr_aborts != count)
    pthread_cond_wait (&fake.changed, &fake.lock);
}

static int
count_aborts (void)
{
  LOCKED (&fake.lock);

  return fake.nr_aborts;
}

/* ---- The other end ---- */

static char dir[] = "/tmp/bp-control.XXXXXX";
static char path[64];

static struct control *
start_control (void)
{
  const struct options options = { .control = path };
  struct control *control = NULL;
  struct bp_error err = { 0 };

  CHECK (control_new (&control, &options, &err) == 0, "%s", err.msg);
  CHECK (control_run (control, NULL, NULL, NULL, &err) == 0, "%s", err.msg);
  return control;
}

static void
end_control (struct control *control)
{
  control_stop (control);
  control_free (control);
}

static int
connect_client (void)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  const int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  strcpy (addr.sun_path, path);
  CHECK (fd != -1, "%m");
  CHECK (connect (fd, (struct sockaddr *) &addr, sizeof addr) == 0, "%m");
  return fd;
}

static void
send_text (int fd, const char *text)
{
  const ssize_t n = send (fd, text, strlen (text), MSG_NOSIGNAL);

  CHECK (n == (ssize_t) strlen (text), "%zd %m", n);
}

/* The next reply, without its newline; "" at the end. */
static const char *
read_reply (int fd)
{
  static char reply[1 << 16];
  size_t len = 0;

  while (len < sizeof reply - 1) {
    struct pollfd pollfd = { .fd = fd, .events = POLLIN };
    ssize_t n;

    CHECK (poll (&pollfd, 1, 20000) == 1, "no reply within 20 s");
    n = recv (fd, reply + len, 1, 0);
    if (n <= 0 || reply[len] == '\n')
      break;
    len++;
  }
  reply[len] = '\0';
  return reply;
}

static void
expect_reply (int fd, const char *part)
{
  const char *reply = read_reply (fd);

  CHECK (strstr (reply, part) != NULL, "wanted %s in '%s'", part, reply);
}

static void
expect_served (int fd)
{
  send_text (fd, "{\"command\":\"status\"}\n");
  expect_reply (fd, "\"ok\":true");
}

static void
expect_end (int fd)
{
  const char *reply = read_reply (fd);

  CHECK (*reply == '\0', "wanted the end, got '%s'", reply);
}

/* ---- The tests ---- */

static void
status_has_every_member_of_the_manual (void)
{
  static const char *const members[] = {
    "\"exports\":[{\"name\":\"disk\",\"root\":\"", "\"size\":4096",
    "\"clients\":3", "\"stall_seconds\":1.5", "\"cache\":{\"budget_bytes\":",
    "\"verify\":{\"blobs\":", "\"uri\":\"nbd://host\"", "\"connected\":true",
    "\"recordings\":[]", "\"replay\":[]"
  };
  CLEANUP_CLOSE int fd = connect_client ();
  const char *reply;

  send_text (fd, "{\"command\":\"status\"}\n");
  reply = read_reply (fd);
  for (size_t i = 0; i < ARRAY_LEN (members); i++)
    CHECK (strstr (reply, members[i]) != NULL, "%s lacks %s", reply,
           members[i]);
}

static void
requests_of_one_packet_are_answered_in_order (void)
{
  CLEANUP_CLOSE int fd = connect_client ();

  send_text (fd, "{\"command\":\"profile-stop\",\"name\":\"first\"}\n"
                 "{\"command\":\"metrics\"}\n{\"command\":\"profile-list\"}");
  expect_reply (fd, "\"name\":\"first\"");
  expect_reply (fd, "blobpager_verify_corrupt_total 0");
  send_text (fd, "\n");
  expect_reply (fd, "\"profiles\":[{\"name\":\"a\"}]");
}

static void
request_that_fails_leaves_the_connection_usable (void)
{
  static const struct {
    const char *request;
    const char *reply;
  } rows[] = {
    { "{}", "command: missing" },
    { "{\"command\":1}", "command: missing" },
    { "{\"command\":\"dance\"}", "command: not known" },
    { "{\"command\":\"status\",\"x\":1}", "unknown member 'x'" },
    { "{\"command\":\"profile-stop\"}", "name: missing" },
    { "{\"command\":\"profile-stop\",\"name\":7}", "name: not a name" },
    { "{\"command\":\"profile-stop\",\"name\":\"../x\"}",
      "name: not a name" },
    { "{\"command\":\"profile-start\",\"name\":\"a\",\"for\":0}",
      "for: not a number of seconds" },
    { "{\"command\":\"profile-start\",\"name\":\"a\",\"for\":\"1\"}",
      "for: not a number of seconds" },
    { "{\"command\":\"profile-start\",\"name\":\"a\",\"mode\":\"fast\"}",
      "mode: neither" },
    { "{\"command\":\"profile-start\",\"name\":\"a\",\"until_exit\":1}",
      "until_exit: neither" },
    { "{\"command\":\"profile-start\"}", "exactly one of" },
    { "{\"command\":\"profile-start\",\"name\":\"a\",\"attach\":true,"
      "\"export\":\"t\"}",
      "exactly one of" },
    { "{\"command\":\"profile-start\",\"attach\":true}",
      "attach: needs an export" },
    { "{\"command\":\"profile-start\",\"name\":\"busy\"}",
      "\"code\":\"EBUSY\"" },
    { "{\"command\":\"profile-delete\",\"name\":\"a\"}",
      "\"code\":\"ENOENT\"" },
  };
  CLEANUP_CLOSE int fd = connect_client ();

  for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
    send_text (fd, rows[i].request);
    send_text (fd, "\n");
    expect_reply (fd, rows[i].reply);
  }
  expect_served (fd);
}

static void
line_that_is_no_request_ends_the_connection (void)
{
  static const char *const lines[] = {
    "\n",
    "hello\n",
    "[]\n",
    "{\"command\":\"status\"} x\n",
    "{\"command\":[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]}\n",
  };
  CLEANUP_CLOSE int other = connect_client ();

  for (size_t i = 0; i < ARRAY_LEN (lines); i++) {
    CLEANUP_CLOSE int fd = connect_client ();

    send_text (fd, lines[i]);
    expect_reply (fd, "\"code\":\"EPROTO\"");
    expect_end (fd);
  }
  expect_served (other);
}

static void
longest_request_is_served_and_a_longer_one_is_not (void)
{
  static char line[CONTROL_MAX_REQUEST + 2];
  CLEANUP_CLOSE int fd = connect_client ();

  memset (line, ' ', sizeof line - 1);
  memcpy (line, "{\"command\":\"status\"}", 20);
  line[CONTROL_MAX_REQUEST] = '\n';
  send_text (fd, line);
  expect_reply (fd, "\"ok\":true");

  line[CONTROL_MAX_REQUEST] = ' ';
  send_text (fd, line);
  expect_reply (fd, "\"code\":\"ERANGE\"");
  expect_end (fd);
}

static void
half_a_request_and_the_end_is_no_request (void)
{
  CLEANUP_CLOSE int fd = connect_client ();

  send_text (fd, "{\"command\":\"stat");
  shutdown (fd, SHUT_WR);
  expect_end (fd);
}

static void
client_that_has_shut_its_side_still_gets_its_replies (void)
{
  CLEANUP_CLOSE int fd = connect_client ();

  send_text (fd, "{\"command\":\"profile-stop\",\"name\":\"a\"}\n"
                 "{\"command\":\"status\"}\n");
  shutdown (fd, SHUT_WR);
  expect_reply (fd, "\"records\":42");
  expect_reply (fd, "\"ok\":true");
  expect_end (fd);
}

static void
command_that_waits_keeps_nobody_else_waiting (void)
{
  CLEANUP_CLOSE int slow = connect_client ();
  CLEANUP_CLOSE int fast = connect_client ();

  let_stop_wait (true);
  send_text (slow, "{\"command\":\"profile-stop\",\"name\":\"a\"}\n");
  wait_for_stopping (1);
  expect_served (fast);
  send_text (fast, "{\"command\":\"profile-list\"}\n");
  expect_reply (fast, "\"ok\":true");
  let_stop_wait (false);
  expect_reply (slow, "\"records\":42");
}

static void
client_that_never_reads_keeps_nobody_else_waiting (void)
{
  CLEANUP_CLOSE int lazy = connect_client ();
  CLEANUP_CLOSE int other = connect_client ();

  for (int i = 0; i < 4; i++)
    send_text (lazy, "{\"command\":\"profile-show\",\"name\":\"a\"}\n");
  for (int i = 0; i < 100; i++)
    expect_served (other);
}

static void
idle_clients_make_room (void)
{
  int idle[200];

  for (size_t i = 0; i < ARRAY_LEN (idle); i++)
    idle[i] = connect_client ();
  for (size_t i = 0; i < 3; i++) {
    CLEANUP_CLOSE int fd = connect_client ();

    expect_served (fd);
  }
  expect_end (idle[0]);
  for (size_t i = 0; i < ARRAY_LEN (idle); i++)
    close (idle[i]);
}

static void
recording_in_the_foreground_ends_with_its_connection (void)
{
  const int before = count_aborts ();
  int fd = connect_client ();

  send_text (fd, "{\"command\":\"profile-start\",\"name\":\"mine\","
                 "\"foreground\":true,\"for\":9,\"quiet\":8,"
                 "\"until_exit\":true,\"export\":\"t\","
                 "\"mode\":\"replay-xor-record\"}\n");
  expect_reply (fd, "\"name\":\"mine\"");
  CHECK (fake.start.for_s == 9 && fake.start.quiet_s == 8 &&
           fake.start.until_exit && !fake.start.attach &&
           fake.start.mode == PROFILE_REPLAY_XOR_RECORD &&
           strcmp (fake.start.export_tag, "t") == 0,
         "the request was misread");
  close (fd);
  wait_for_aborts (before + 1);
  CHECK (strcmp (fake.aborted, "mine") == 0, "%s", fake.aborted);
}

/* Several connections come and go before we look, so that an abort that
 * must not be has had its time.
 */
static void
recording_of_another_or_a_later_one_does_not_end (void)
{
  const int before = count_aborts ();
  CLEANUP_CLOSE int other = connect_client ();
  int fd = connect_client ();

  /* Without foreground. */
  send_text (fd, "{\"command\":\"profile-start\",\"name\":\"a\"}\n");
  expect_reply (fd, "\"ok\":true");
  close (fd);

  /* Stopped by another connection. */
  fd = connect_client ();
  send_text (fd, "{\"command\":\"profile-start\",\"name\":\"b\","
                 "\"foreground\":true}\n");
  expect_reply (fd, "\"ok\":true");
  send_text (other, "{\"command\":\"profile-stop\",\"name\":\"b\"}\n");
  expect_reply (other, "\"ok\":true");
  close (fd);

  /* Started again by another connection. */
  fd = connect_client ();
  send_text (fd, "{\"command\":\"profile-start\",\"name\":\"c\","
                 "\"foreground\":true}\n");
  expect_reply (fd, "\"ok\":true");
  send_text (other, "{\"command\":\"profile-start\",\"name\":\"c\"}\n");
  expect_reply (other, "\"ok\":true");
  close (fd);

  for (int i = 0; i < 100; i++) {
    CLEANUP_CLOSE int later = connect_client ();

    expect_served (later);
  }
  CHECK (count_aborts () == before, "%d aborts", count_aborts () - before);
}

static void
client_that_goes_while_its_recording_starts_leaves_none (void)
{
  const int before = count_aborts ();

  for (int i = 0; i < 20; i++) {
    const int fd = connect_client ();

    send_text (fd, "{\"command\":\"profile-start\",\"name\":\"gone\","
                   "\"foreground\":true}\n");
    close (fd);
  }
  wait_for_aborts (before + 20);
}

static void
only_a_live_socket_is_in_the_way (struct control **control)
{
  const struct options options = { .control = path };
  struct control *second = NULL;
  struct bp_error err;
  struct stat st;
  int fd;

  CHECK (control_new (&second, &options, &err) ==
           -EADDRINUSE,
         "%s", err.msg);
  CHECK (stat (path, &st) == 0 && (st.st_mode & 07777) == 0600, "mode %o",
         st.st_mode);

  end_control (*control);
  CHECK (access (path, F_OK) == -1, "the socket was left behind");

  /* A stale one: bound, and nobody listens any more. */
  fd = socket (AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  strcpy (addr.sun_path, path);
  CHECK (bind (fd, (struct sockaddr *) &addr, sizeof addr) == 0, "%m");
  close (fd);
  *control = start_control ();
  end_control (*control);

  /* A file. */
  fclose (fopen (path, "w"));
  CHECK (control_new (&second, &options, &err) == -EEXIST,
         "%s", err.msg);
  CHECK (access (path, F_OK) == 0, "the file was removed");
  unlink (path);
  *control = start_control ();
}

static void *
end_stop_soon (void *opaque)
{
  (void) opaque;
  wait_for_stopping (1);
  let_stop_wait (false);
  return NULL;
}

/* Whether the reply is still sent depends on who is faster. */
static void
end_waits_for_a_command_and_closes_its_connection (struct control *control)
{
  CLEANUP_CLOSE int fd = connect_client ();
  pthread_t thread;

  let_stop_wait (true);
  send_text (fd, "{\"command\":\"profile-stop\",\"name\":\"a\"}\n");
  wait_for_stopping (1);
  CHECK (pthread_create (&thread, NULL, end_stop_soon, NULL) == 0, "%m");
  end_control (control);
  pthread_join (thread, NULL);
  if (*read_reply (fd) != '\0')
    expect_end (fd);
}

int
main (void)
{
  struct control *control;

  alarm (60); /* A test that waits for ever has failed. */
  log_init ("test-control", false);
  signal (SIGPIPE, SIG_IGN);
  CHECK (mkdtemp (dir) != NULL, "%m");
  snprintf (path, sizeof path, "%s/control.sock", dir);
  control = start_control ();

  status_has_every_member_of_the_manual ();
  requests_of_one_packet_are_answered_in_order ();
  request_that_fails_leaves_the_connection_usable ();
  line_that_is_no_request_ends_the_connection ();
  longest_request_is_served_and_a_longer_one_is_not ();
  half_a_request_and_the_end_is_no_request ();
  client_that_has_shut_its_side_still_gets_its_replies ();
  command_that_waits_keeps_nobody_else_waiting ();
  client_that_never_reads_keeps_nobody_else_waiting ();
  idle_clients_make_room ();
  recording_in_the_foreground_ends_with_its_connection ();
  recording_of_another_or_a_later_one_does_not_end ();
  client_that_goes_while_its_recording_starts_leaves_none ();
  only_a_live_socket_is_in_the_way (&control);
  end_waits_for_a_command_and_closes_its_connection (control);

  rmdir (dir);
  return 0;
}
