/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The registry of sessions: a list under one lock, short because a
 * session is a daemon.  A session leaves the list in the same moment in
 * which its last reference goes, so that no lane joins one that ends.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "lib/base/cleanup.h"
#include "lib/base/hex.h"
#include "nbdkit-plugin/session.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session *sessions; /* lock */
static unsigned nr_sessions;     /* lock */

/* Free a session that is in no list, or half built. */
static void
session_free (struct session *session)
{
  if (session == NULL)
    return;
  mapper_free (session->mapper);
  recording_set_free (session->recordings);
  free (session);
}

static void
cleanup_session (struct session **session)
{
  session_free (*session);
}

static int
make_id (char id[BP_SESSION_ID_SIZE], struct bp_error *err)
{
  uint8_t bytes[(BP_SESSION_ID_SIZE - 1) / 2];

  /* Up to 256 bytes come whole. */
  if (getrandom (bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
    return bp_error_set (err, -errno, "session: getrandom: %m");
  bp_hex_encode (bytes, sizeof bytes, id);
  return 0;
}

static int
add_to_list (struct session *session, struct bp_error *err)
{
  LOCKED (&lock);

  if (nr_sessions >= SESSION_MAX)
    return bp_error_set (err, -EBUSY, "session: there are %d already",
                         SESSION_MAX);
  session->next = sessions;
  sessions = session;
  nr_sessions++;
  return 0;
}

int
session_new (struct session **ret_session,
             const struct session_config *config, struct bp_error *err)
{
  __attribute__ ((cleanup (cleanup_session))) struct session *session =
    calloc (1, sizeof *session);
  int r;

  if (session == NULL ||
      mapper_new (&session->mapper, config->store) < 0 ||
      recording_set_new (&session->recordings) < 0)
    return bp_error_set (err, -ENOMEM, "session: %m");
  session->config = config;
  session->refs = 1;
  r = make_id (session->id, err);
  if (r == 0)
    r = add_to_list (session, err);
  if (r < 0)
    return r;
  nbdkit_debug ("session %s: begins", session->id);
  *ret_session = steal_ptr (&session);
  return 0;
}

int
session_find (const char *id, struct session **ret_session,
              struct bp_error *err)
{
  LOCKED (&lock);

  for (struct session *s = sessions; s; s = s->next)
    if (strcmp (s->id, id) == 0) {
      s->refs++;
      *ret_session = s;
      return 0;
    }
  return bp_error_set (err, -ENOENT, "session '%.32s': there is none", id);
}

/* Returns true if that was the last reference; then it is in no list. */
static bool
drop_reference (struct session *session)
{
  LOCKED (&lock);
  struct session **p = &sessions;

  if (--session->refs > 0)
    return false;
  while (*p != session)
    p = &(*p)->next;
  *p = session->next;
  nr_sessions--;
  return true;
}

void
session_unref (struct session *session)
{
  if (session == NULL || !drop_reference (session))
    return;
  nbdkit_debug ("session %s: ends with %zu keys", session->id,
                mapper_nr_keys (session->mapper));
  session_free (session);
}
