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

#include "daemon/control/peer.h"
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
set_reply (struct peer *peer, char *line)
{
  if (line == NULL) {
    log_error ("control: reply: out of memory");
    peer->is_closing = true;
    return;
  }
  peer->out = line;
  peer->out_len = strlen (line);
  peer->out_sent = 0;
}

static void
reply_error (struct peer *peer, int code, const char *message)
{
  CLEANUP_JSON struct json_object *reply = json_object_new_object ();

  add_error (reply, code, message);
  set_reply (peer, reply_to_line (reply));
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
job_new (const struct peer *peer)
{
  struct job *job = calloc (1, sizeof *job);

  if (job == NULL)
    return NULL;
  job->wake_fd = peer->wake_fd;
  job->call.context = peer->context;
  return job;
}

/* Take ownership of JOB.  False if there is no thread for it. */
static bool
job_start (struct peer *peer, struct job *job)
{
  const int r = pthread_create (&job->thread, NULL, job_thread, job);

  if (r != 0) {
    errno = r;
    log_error ("control: pthread_create: %m");
    job_free (job);
    return false;
  }
  peer->job = job;
  return true;
}

/* What CALL did to recordings. */
static void
note_recordings (struct peer *peer, const struct control_call *call)
{
  if (call->started[0] != '\0') {
    strcpy (peer->news, call->started);
    if (call->foreground)
      strcpy (peer->owned, call->started);
  }
  if (call->ended[0] != '\0') {
    strcpy (peer->news, call->ended);
    peer_disown (peer, call->ended);
  }
}

/* Join the job if it is done, and take its reply. */
static void
finish_job (struct peer *peer)
{
  struct job *job = peer->job;

  if (job == NULL ||
      !atomic_load_explicit (&job->is_done, memory_order_acquire))
    return;
  pthread_join (job->thread, NULL);
  peer->job = NULL;
  peer->active_ns = now_ns ();
  if (job->command != NULL) {
    note_recordings (peer, &job->call);
    if (peer->fd != -1)
      set_reply (peer, steal_ptr (&job->reply));
  }
  job_free (job);
}

/* ---- Requests ---- */

/* Run the command of REQUEST, here or on a thread. */
static void
dispatch (struct peer *peer, struct json_object *request)
{
  const char *name = bp_json_get_string (request, "command");
  const struct control_command *command =
    name != NULL ? control_find_command (name) : NULL;
  struct job *job;

  if (name == NULL)
    reply_error (peer, -EINVAL, "command: missing");
  else if (command == NULL)
    reply_error (peer, -EINVAL, "command: not known");
  else if (!command->blocks) {
    struct control_call call = {
      .context = peer->context,
      .request = request,
    };

    set_reply (peer, run_command (command, &call));
  }
  else {
    job = job_new (peer);
    if (job != NULL) {
      job->command = command;
      job->request = json_object_get (request);
      job->call.request = request;
    }
    if (job == NULL || !job_start (peer, job))
      reply_error (peer, -ENOMEM, "no thread for this command");
  }
}

/* The first line of IN, if there is a whole one. */
static bool
take_line (struct peer *peer)
{
  const char *newline = memchr (peer->in, '\n', peer->in_len);
  CLEANUP_JSON struct json_object *request = NULL;
  size_t len;
  int r;

  if (newline == NULL && peer->in_len <= CONTROL_MAX_REQUEST)
    return false;
  if (newline == NULL) {
    reply_error (peer, -ERANGE, "request: longer than 65536 bytes");
    peer->is_closing = true;
    return true;
  }

  len = (size_t) (newline - peer->in);
  r = bp_json_parse (peer->in, len, &request);
  peer->in_len -= len + 1;
  memmove (peer->in, newline + 1, peer->in_len);
  if (r == 0)
    dispatch (peer, request);
  else {
    reply_error (peer, r, "request: not one JSON object of depth 8");
    peer->is_closing = true;
  }
  return true;
}

/* ---- Bytes ---- */

static void
read_some (struct peer *peer)
{
  const ssize_t n = recv (peer->fd, peer->in + peer->in_len,
                          CONTROL_MAX_REQUEST + 1 - peer->in_len, 0);

  if (n > 0) {
    peer->in_len += (size_t) n;
    peer->active_ns = now_ns ();
  }
  else if (n == 0)
    peer->is_at_end = true;
  else if (errno != EAGAIN && errno != EINTR)
    peer_close (peer);
}

static void
write_some (struct peer *peer)
{
  const ssize_t n = send (peer->fd, peer->out + peer->out_sent,
                          peer->out_len - peer->out_sent, MSG_NOSIGNAL);

  if (n >= 0) {
    peer->out_sent += (size_t) n;
    peer->active_ns = now_ns ();
    if (peer->out_sent == peer->out_len)
      free (steal_ptr (&peer->out));
  }
  else if (errno != EAGAIN && errno != EINTR)
    peer_close (peer);
}

/* ---- The loop's side ---- */

bool
peer_open (struct peer *peer, int fd)
{
  char *in = malloc (CONTROL_MAX_REQUEST + 1);

  assert (!peer->is_used);
  if (in == NULL)
    return false;
  *peer = (struct peer){
    .is_used = true,
    .fd = fd,
    .active_ns = now_ns (),
    .in = in,
    .context = peer->context,
    .wake_fd = peer->wake_fd,
  };
  return true;
}

/* Give the slot back. */
static void
free_slot (struct peer *peer)
{
  assert (peer->job == NULL && peer->fd == -1);
  free (steal_ptr (&peer->in));
  free (steal_ptr (&peer->out));
  peer->is_used = false;
}

/* Nobody is there for whom to keep the recording. */
static void
abort_owned (struct peer *peer)
{
  struct job *job;

  strcpy (peer->news, peer->owned);
  job = job_new (peer);
  if (job != NULL) {
    strcpy (job->abandoned, peer->owned);
    if (job_start (peer, job)) {
      peer->owned[0] = '\0';
      return;
    }
  }
  control_abort_recording (peer->context, peer->owned);
  peer->owned[0] = '\0';
}

void
peer_close (struct peer *peer)
{
  if (peer->fd != -1)
    close (steal_fd (&peer->fd));
  if (peer->job == NULL && peer->owned[0] != '\0')
    abort_owned (peer);
  if (peer->job == NULL)
    free_slot (peer);
}

short
peer_events (const struct peer *peer)
{
  if (peer->out != NULL)
    return POLLOUT;
  if (peer->job != NULL || peer->is_at_end)
    return 0; /* But POLLHUP is always told. */
  return POLLIN;
}

void
peer_advance (struct peer *peer, short revents)
{
  finish_job (peer);
  if (peer->fd == -1 || (revents & (POLLERR | POLLNVAL)) != 0 ||
      ((revents & POLLHUP) != 0 && (revents & POLLIN) == 0)) {
    peer_close (peer);
    return;
  }
  if ((revents & POLLIN) != 0)
    read_some (peer);
  while (peer->is_used && peer->fd != -1) {
    if (peer->out != NULL) {
      write_some (peer);
      if (peer->out != NULL)
        return; /* The socket is full; or it was closed. */
    }
    else if (peer->job != NULL)
      return;
    else if (peer->is_closing)
      peer_close (peer);
    else if (!take_line (peer)) {
      if (peer->is_at_end)
        peer_close (peer);
      return;
    }
  }
}

bool
peer_is_idle (const struct peer *peer)
{
  return peer->job == NULL && peer->owned[0] == '\0';
}

bool
peer_is_stuck (const struct peer *peer)
{
  return peer->out != NULL && now_ns () - peer->active_ns > STUCK_NS;
}

void
peer_destroy (struct peer *peer)
{
  if (peer->job != NULL) {
    pthread_join (peer->job->thread, NULL);
    job_free (steal_ptr (&peer->job));
  }
  if (peer->fd != -1)
    close (steal_fd (&peer->fd));
  free_slot (peer);
}

void
peer_take_news (struct peer *peer, char ret_name[BP_NAME_SIZE])
{
  strcpy (ret_name, peer->news);
  peer->news[0] = '\0';
}

void
peer_disown (struct peer *peer, const char *name)
{
  if (strcmp (peer->owned, name) == 0)
    peer->owned[0] = '\0';
}
