/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Paths of nodes: a TREE request and its reply for each. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "daemon/metrics.h"
#include "daemon/pager/fetcher-internal.h"
#include "daemon/pager/tree-path.h"
#include "lib/session-proto.h"

/* The fetch of one node. */
struct tree_step {
  struct attempt *attempt;
  struct bp_merkle_node node;
  struct command write, read;
  uint8_t *request; /* Encoded; owned. */
  uint8_t reply[BP_REPLY_HEADER_SIZE + BP_BLOCK_SIZE];
};

struct tree_path {
  struct attempt *attempt;
  /* Of the windows whose leaves came with it, once it is verified. */
  unsigned nr_digests;
  struct bp_root digests[BP_NODE_WINDOWS];
  unsigned nr_steps;
  struct tree_step steps[]; /* Level 0 first. */
};

struct tree_path *
tree_path_new (struct attempt *attempt)
{
  const struct fetch *fetch = attempt->fetch;
  struct bp_merkle_node nodes[BP_MERKLE_MAX_LEVELS];
  const unsigned nr = bp_merkle_path (fetch->blob_size, fetch->offset, nodes);
  struct tree_path *path;

  path = calloc (1, sizeof *path + nr * sizeof path->steps[0]);
  if (path == NULL)
    return NULL;
  path->attempt = attempt;
  path->nr_steps = nr;
  for (unsigned i = 0; i < nr; i++) {
    path->steps[i].attempt = attempt;
    path->steps[i].node = nodes[i];
  }
  return path;
}

void
tree_path_free (struct tree_path *path)
{
  if (path == NULL)
    return;
  for (unsigned i = 0; i < path->nr_steps; i++)
    free (path->steps[i].request);
  free (path);
}

/* ---- On the wire ---- */

static void
step_written (struct command *command, int error)
{
  struct tree_step *step = command->owner;

  attempt_note_answer (step->attempt, error);
}

static size_t
node_len (const struct tree_step *step)
{
  return step->node.count * (size_t) BP_ROOT_SIZE;
}

/* Whether the reply, which came without an error, holds the node. */
static int
check_reply (const struct tree_step *step)
{
  int status, r;
  size_t len;

  r = bp_reply_header_decode (step->reply, &status, &len);
  if (r < 0 || status < 0)
    return r < 0 ? r : status;
  return len == node_len (step) ? 0 : -EPROTO;
}

static void
step_answered (struct command *command, int error)
{
  struct tree_step *step = command->owner;

  lane_request_answered (step->attempt->lane);
  if (error == 0)
    error = check_reply (step);
  if (error == 0)
    METRIC_ADD (driver_node_bytes, node_len (step));
  attempt_note_answer (step->attempt, error);
}

static void
send_step (struct tree_step *step)
{
  struct attempt *attempt = step->attempt;
  const struct bp_request request = {
    .op = BP_OP_TREE,
    .key = attempt->key->number,
    .level = step->node.level,
    .first = step->node.first,
    .nr = step->node.count,
  };
  size_t len;
  int r;

  r = bp_request_encode (&request, NULL, NULL, &step->request, &len);
  if (r < 0) {
    attempt->error = r;
    return;
  }
  step->write = (struct command){ .answered = step_written, .owner = step };
  step->read = (struct command){ .answered = step_answered, .owner = step };
  attempt->waiting += 2;
  METRIC_ADD (driver_nodes, 1);
  lane_request (attempt->lane, &step->write, &step->read, step->request, len,
                step->reply, BP_REPLY_HEADER_SIZE + node_len (step));
}

void
tree_path_send (struct tree_path *path)
{
  for (unsigned i = 0; i < path->nr_steps; i++)
    send_step (&path->steps[i]);
}

/* ---- What has come ---- */

static const uint8_t *
bytes_of (const struct tree_step *step)
{
  return step->reply + BP_REPLY_HEADER_SIZE;
}

void
tree_path_nodes (const struct tree_path *path,
                 const uint8_t *nodes[BP_MERKLE_MAX_LEVELS])
{
  for (unsigned i = 0; i < path->nr_steps; i++)
    nodes[i] = bytes_of (&path->steps[i]);
}

void
tree_path_digest (struct tree_path *path)
{
  path->nr_digests = bp_window_digests (
    bytes_of (&path->steps[0]), path->steps[0].node.count, path->digests);
}

void
tree_path_keep (const struct tree_path *path, struct digest_table *table)
{
  const struct fetch *fetch = path->attempt->fetch;
  const uint64_t offset = path->steps[0].node.first * BP_BLOCK_SIZE;

  for (unsigned i = 0; i < path->nr_digests; i++)
    digest_table_add (table, &fetch->root,
                      offset + i * (uint64_t) BP_WINDOW_SIZE,
                      &path->digests[i]);
}
