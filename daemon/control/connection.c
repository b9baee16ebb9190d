/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* One client of the control socket: requests in, replies out.
 *
 * A line that is no request, or too long to be one, gets an error and the
 * connection is closed behind it, because what follows cannot be trusted
 * to start a line.  A request that is understood and fails gets an error
 * and the connection goes on.
 *
 * A connection whose client has gone lives on, without its descriptor,
 * until its job has ended and the recording that it owned is aborted.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/control/connection.h"
#include "daemon/control/control.h"
#include "daemon/log.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"

#define STUCK_NS (60 * NS_PER_SEC)

/* A command that blocks, on its own thread.  The loop makes it, looks at
 * IS_DONE, joins the thread and takes the rest.
 */
struct job {
  pthread_t thread;
  int wake_fd;
  const struct control_command *command; /* NULL: abort ABANDONED. */
  struct control_call call;
  struct json_object *request; /* Owned. */
  char abandoned[BP_NAME_SIZE];
  char *reply;          /* Owned; NULL if there was no memory. */
  _Atomic bool is_done; /* Released by the thread with the above. */
};

/* ---- Replies ---- */

static void
add_error (struct json_object *reply, int code, const char *message)
{
  const char *name = strerrorname_np (-code);

  bp_json_add_bool (reply, "ok", false);
  bp_json_add_string (reply, "code", name != NULL ? name : "EIO");
  bp_json_add_string (reply, "error", message);
}

/* REPLY as one line; the caller frees it.  NULL if out of memory. */
static char *
reply_to_line (struct json_object *reply)
{
  size_t len;
  const char *text = json_object_to_json_string_length (
    reply, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
  char *line = text != NULL ? malloc (len + 2) : NULL;

  if (line != NULL) {
    memcpy (line, text, len);
    memcpy (line + len, "\n", 2);
  }
  return line;
}

/* Take ownership of LINE (NULL: there was no memory for it) and send it. */
static void
set_reply (struct connection *conn, char *line)
{
  if (line == NULL) {
    log_error ("control: reply: out of memory");
    conn->is_closing = true;
    return;
  }
  conn->out = line;
  conn->out_len = strlen (line);
  conn->out_sent = 0;
}

static void
reply_error (struct connection *conn, int code, const char *message)
{
  CLEANUP_JSON struct json_object *reply = json_object_new_object ();

  add_error (reply, code, message);
  set_reply (conn, reply_to_line (reply));
}

/* ---- Running a command ---- */

/* Run COMMAND; the reply, as a line, is the caller's. */
static char *
run_command (const struct control_command *command,
             struct control_call *call)
{
  CLEANUP_JSON struct json_object *reply = json_object_new_object ();
  struct bp_error err = { 0 };
  int r;

  bp_json_add_bool (reply, "ok", true);
  call->reply = reply;
  r = command->run (call, &err);
  call->reply = NULL;
  if (r >= 0)
    return reply_to_line (reply);

  json_object_put (reply);
  reply = json_object_new_object ();
  add_error (reply, r, err.msg[0] != '\0' ? err.msg : strerror (-r));
  return reply_to_line (reply);
}

static void *
job_thread (void *opaque)
{
  struct job *job = opaque;
  const uint64_t one = 1;

  if (job->command != NULL)
    job->reply = run_command (job->command, &job->call);
  else
    control_abort_recording (job->call.context, job->abandoned);

  /* Pairs with the acquire in finish_job.  WAKE_FD outlives the job: it
   * is closed after every job has been joined.
   */
  const int wake_fd = job->wake_fd;
  atomic_store_explicit (&job->is_done, true, memory_order_release);
  if (write (wake_fd, &one, sizeof one) == -1)
    log_error ("control: wake: %m");
  return NULL;
}

static void
job_free (struct job *job)
{
  json_object_put (job->request);
  free (job->reply);
  free (job);
}

static struct job *
job_new (const struct connection *conn)
{
  struct job *job = calloc (1, sizeof *job);

  if (job == NULL)
    return NULL;
  job->wake_fd = conn->wake_fd;
  job->call.context = conn->context;
  return job;
}

/* Take ownership of JOB.  False if there is no thread for it. */
static bool
job_start (struct connection *conn, struct job *job)
{
  const int r = pthread_create (&job->thread, NULL, job_thread, job);

  if (r != 0) {
    errno = r;
    log_error ("control: pthread_create: %m");
    job_free (job);
    return false;
  }
  conn->job = job;
  return true;
}

/* What CALL did to recordings. */
static void
note_recordings (struct connection *conn, const struct control_call *call)
{
  if (call->started[0] != '\0') {
    strcpy (conn->news, call->started);
    if (call->foreground)
      strcpy (conn->owned, call->started);
  }
  if (call->ended[0] != '\0') {
    strcpy (conn->news, call->ended);
    connection_disown (conn, call->ended);
  }
}

/* Join the job if it is done, and take its reply. */
static void
finish_job (struct connection *conn)
{
  struct job *job = conn->job;

  if (job == NULL ||
      !atomic_load_explicit (&job->is_done, memory_order_acquire))
    return;
  pthread_join (job->thread, NULL);
  conn->job = NULL;
  conn->active_ns = now_ns ();
  if (job->command != NULL) {
    note_recordings (conn, &job->call);
    if (conn->fd != -1)
      set_reply (conn, steal_ptr (&job->reply));
  }
  job_free (job);
}

/* ---- Requests ---- */

/* Run the command of REQUEST, here or on a thread. */
static void
dispatch (struct connection *conn, struct json_object *request)
{
  const char *name = bp_json_get_string (request, "command");
  const struct control_command *command =
    name != NULL ? control_find_command (name) : NULL;
  struct job *job;

  if (name == NULL)
    reply_error (conn, -EINVAL, "command: missing");
  else if (command == NULL)
    reply_error (conn, -EINVAL, "command: not known");
  else if (!command->blocks) {
    struct control_call call = {
      .context = conn->context,
      .request = request,
    };

    set_reply (conn, run_command (command, &call));
  }
  else {
    job = job_new (conn);
    if (job != NULL) {
      job->command = command;
      job->request = json_object_get (request);
      job->call.request = request;
    }
    if (job == NULL || !job_start (conn, job))
      reply_error (conn, -ENOMEM, "no thread for this command");
  }
}

/* The first line of IN, if there is a whole one. */
static bool
take_line (struct connection *conn)
{
  const char *newline = memchr (conn->in, '\n', conn->in_len);
  CLEANUP_JSON struct json_object *request = NULL;
  size_t len;
  int r;

  if (newline == NULL && conn->in_len <= CONTROL_MAX_REQUEST)
    return false;
  if (newline == NULL) {
    reply_error (conn, -ERANGE, "request: longer than 65536 bytes");
    conn->is_closing = true;
    return true;
  }

  len = (size_t) (newline - conn->in);
  r = bp_json_parse (conn->in, len, &request);
  conn->in_len -= len + 1;
  memmove (conn->in, newline + 1, conn->in_len);
  if (r == 0)
    dispatch (conn, request);
  else {
    reply_error (conn, r, "request: not one JSON object of depth 8");
    conn->is_closing = true;
  }
  return true;
}

/* ---- Bytes ---- */

static void
read_some (struct connection *conn)
{
  const ssize_t n = recv (conn->fd, conn->in + conn->in_len,
                          CONTROL_MAX_REQUEST + 1 - conn->in_len, 0);

  if (n > 0) {
    conn->in_len += (size_t) n;
    conn->active_ns = now_ns ();
  }
  else if (n == 0)
    conn->is_at_end = true;
  else if (errno != EAGAIN && errno != EINTR)
    connection_close (conn);
}

static void
write_some (struct connection *conn)
{
  const ssize_t n = send (conn->fd, conn->out + conn->out_sent,
                          conn->out_len - conn->out_sent, MSG_NOSIGNAL);

  if (n >= 0) {
    conn->out_sent += (size_t) n;
    conn->active_ns = now_ns ();
    if (conn->out_sent == conn->out_len)
      free (steal_ptr (&conn->out));
  }
  else if (errno != EAGAIN && errno != EINTR)
    connection_close (conn);
}

/* ---- The loop's side ---- */

bool
connection_open (struct connection *conn, int fd)
{
  char *in = malloc (CONTROL_MAX_REQUEST + 1);

  assert (!conn->is_used);
  if (in == NULL)
    return false;
  *conn = (struct connection){
    .is_used = true,
    .fd = fd,
    .active_ns = now_ns (),
    .in = in,
    .context = conn->context,
    .wake_fd = conn->wake_fd,
  };
  return true;
}

/* Give the slot back. */
static void
free_slot (struct connection *conn)
{
  assert (conn->job == NULL && conn->fd == -1);
  free (steal_ptr (&conn->in));
  free (steal_ptr (&conn->out));
  conn->is_used = false;
}

/* Nobody is there for whom to keep the recording. */
static void
abort_owned (struct connection *conn)
{
  struct job *job;

  strcpy (conn->news, conn->owned);
  job = job_new (conn);
  if (job != NULL) {
    strcpy (job->abandoned, conn->owned);
    if (job_start (conn, job)) {
      conn->owned[0] = '\0';
      return;
    }
  }
  control_abort_recording (conn->context, conn->owned);
  conn->owned[0] = '\0';
}

void
connection_close (struct connection *conn)
{
  if (conn->fd != -1)
    close (steal_fd (&conn->fd));
  if (conn->job == NULL && conn->owned[0] != '\0')
    abort_owned (conn);
  if (conn->job == NULL)
    free_slot (conn);
}

short
connection_events (const struct connection *conn)
{
  if (conn->out != NULL)
    return POLLOUT;
  if (conn->job != NULL || conn->is_at_end)
    return 0; /* But POLLHUP is always told. */
  return POLLIN;
}

void
connection_advance (struct connection *conn, short revents)
{
  finish_job (conn);
  if (conn->fd == -1 || (revents & (POLLERR | POLLNVAL)) != 0 ||
      ((revents & POLLHUP) != 0 && (revents & POLLIN) == 0)) {
    connection_close (conn);
    return;
  }
  if ((revents & POLLIN) != 0)
    read_some (conn);
  while (conn->is_used && conn->fd != -1) {
    if (conn->out != NULL) {
      write_some (conn);
      if (conn->out != NULL)
        return; /* The socket is full; or it was closed. */
    }
    else if (conn->job != NULL)
      return;
    else if (conn->is_closing)
      connection_close (conn);
    else if (!take_line (conn)) {
      if (conn->is_at_end)
        connection_close (conn);
      return;
    }
  }
}

bool
connection_is_idle (const struct connection *conn)
{
  return conn->job == NULL && conn->owned[0] == '\0';
}

bool
connection_is_stuck (const struct connection *conn)
{
  return conn->out != NULL && now_ns () - conn->active_ns > STUCK_NS;
}

void
connection_destroy (struct connection *conn)
{
  if (conn->job != NULL) {
    pthread_join (conn->job->thread, NULL);
    job_free (steal_ptr (&conn->job));
  }
  if (conn->fd != -1)
    close (steal_fd (&conn->fd));
  free_slot (conn);
}

void
connection_take_news (struct connection *conn, char ret_name[BP_NAME_SIZE])
{
  strcpy (ret_name, conn->news);
  conn->news[0] = '\0';
}

void
connection_disown (struct connection *conn, const char *name)
{
  if (strcmp (conn->owned, name) == 0)
    conn->owned[0] = '\0';
}
