/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* One question to the pager, and who frees it.
 *
 *             the pager answers            its work runs
 *   PENDING ───────────────────▶ ANSWERED ───────────────▶ freed
 *      │ the client has gone                (the loop)
 *      └─────────────────────▶ ORPHANED ──▶ freed when the pager answers
 *
 * Both arrows out of PENDING are one atomic exchange, so exactly one side
 * sees the other's.  An orphan knows nothing of its shard: the pager may
 * take as long as it likes without keeping the shard from ending.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/attach.h"
#include "daemon/front/conn.h"
#include "daemon/front/handshake.h"
#include "daemon/front/option-reply.h"
#include "daemon/front/policy.h"
#include "daemon/front/shard.h"
#include "daemon/pager/pager.h"

enum attach_state {
  ATTACH_PENDING,
  ATTACH_ANSWERED,
  ATTACH_ORPHANED,
};

struct attach {
  struct loop_work work;       /* Posted by the pager's thread. */
  struct shard *shard;         /* Not to be used once ORPHANED. */
  struct conn *conn;           /* The loop's; NULL: it has gone. */
  _Atomic int state;           /* Exchanged with acquire and release: who finds
                            the other's value owns the rest. */
  size_t max_list;             /* Bytes. */
  struct client_policy policy; /* A copy: may outlive the listener. */

  /* The answer; the pager's thread writes it before ANSWERED. */
  int status;
  struct export *export;
  struct out_buf replies;
  char why[200];

  char name[]; /* Of the export; NUL-terminated. */
};

static void
attach_free (struct attach *attach)
{
  if (attach->export)
    export_unref (attach->export);
  out_free (&attach->replies);
  free (attach);
}

/* The loop: hand the answer to the handshake. */
static void
answer_is_here (struct loop_work *work)
{
  struct attach *attach = container_of (work, struct attach, work);
  struct conn *conn = attach->conn;
  struct export *export = attach->export;

  if (conn == NULL)
    attach->shard->nr_late--;
  else {
    conn->attach = NULL;
    attach->export = NULL;
    if (conn->state == CONN_OPENING)
      handshake_opened (conn, export, attach->status, attach->why);
    else
      handshake_listed (conn, &attach->replies, attach->status);
    conn_make_dirty (conn);
  }
  attach_free (attach);
}

/* The pager's thread: the answer is written. */
static void
attach_answer (struct attach *attach)
{
  if (atomic_exchange_explicit (&attach->state, ATTACH_ANSWERED,
                                memory_order_acq_rel) == ATTACH_ORPHANED)
    attach_free (attach);
  else
    loop_post (&attach->shard->loop, &attach->work);
}

/* An export that the client may not open is answered like one that is not
 * there, and no answer names an image that it did not name itself.
 * Returns what it is told instead of WHY.
 */
static const char *
keep_to_policy (struct attach *attach, const char *why)
{
  const struct client_policy *policy = &attach->policy;
  const bool has_no_name = attach->name[0] == '\0';

  if (attach->status == 0 && has_no_name &&
      !policy_allows_export (policy, export_get_info (attach->export)->name)) {
    export_unref (attach->export);
    attach->export = NULL;
    attach->status = -ENOENT;
  }
  if (attach->status == 0 || !policy_hides_exports (policy))
    return why;
  if (attach->status == -ENOENT || attach->status == -EINVAL)
    return "no such export";
  return has_no_name ? "the only image cannot be opened" : why;
}

/* The pager's thread. */
static void
export_is_open (void *opaque, struct export *export, int status,
                const char *why)
{
  struct attach *attach = opaque;

  attach->export = export;
  attach->status = status;
  why = keep_to_policy (attach, why);
  snprintf (attach->why, sizeof attach->why, "%s", why ? why : "");
  attach_answer (attach);
}

/* The pager's thread. */
static void
exports_are_listed (void *opaque, const struct bp_tag *tags, size_t count,
                    int status)
{
  struct attach *attach = opaque;
  size_t i;

  attach->status = status;
  for (i = 0; i < count && attach->status == 0; i++) {
    if (!policy_allows_export (&attach->policy, tags[i].name))
      continue;
    if (!reply_listed (&attach->replies, &tags[i]))
      attach->status = -ENOMEM;
    else if (attach->replies.len > attach->max_list)
      attach->status = -ERANGE;
  }
  attach_answer (attach);
}

static struct attach *
attach_new (struct conn *conn, size_t name_len)
{
  struct attach *attach = calloc (1, sizeof *attach + name_len + 1);

  if (attach == NULL)
    return NULL;
  attach->work.run = answer_is_here;
  attach->shard = conn->shard;
  attach->conn = conn;
  attach->policy = *conn->policy;
  attach->max_list = conn->shard->limits->max_list;
  assert (conn->attach == NULL);
  conn->attach = attach;
  return attach;
}

bool
attach_open (struct conn *conn, const void *name, size_t len)
{
  struct attach *attach = attach_new (conn, len);

  if (attach == NULL)
    return false;
  if (len > 0)
    memcpy (attach->name, name, len);
  if (!policy_allows_export (conn->policy, attach->name)) {
    export_is_open (attach, NULL, -ENOENT, "no such export");
    return true;
  }
  pager_open_export (conn->shard->pager, attach->name, export_is_open,
                     attach);
  return true;
}

bool
attach_list (struct conn *conn)
{
  struct attach *attach = attach_new (conn, 0);

  if (attach == NULL)
    return false;
  pager_list_exports (conn->shard->pager, exports_are_listed, attach);
  return true;
}

void
attach_abandon (struct conn *conn)
{
  struct attach *attach = conn->attach;

  if (attach == NULL)
    return;
  conn->attach = NULL;
  if (atomic_exchange_explicit (&attach->state, ATTACH_ORPHANED,
                                memory_order_acq_rel) == ATTACH_PENDING)
    return;
  /* The answer is being posted; its work will find nobody. */
  attach->conn = NULL;
  conn->shard->nr_late++;
}
