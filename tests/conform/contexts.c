/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Asking for metadata contexts.
 *
 *   u32 length, export name, u32 count, count times: u32 length, query
 */
#include <config.h>

#include <string.h>

#include "conform/check.h"
#include "conform/contexts.h"
#include "conform/option.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "conform/target.h"
#include "lib/base/bytes.h"

void
put_contexts (struct option_data *data, const char *export,
              size_t export_len, const char *const *queries, unsigned count)
{
  put_u32 (data, (uint32_t) export_len);
  put_bytes (data, export, export_len);
  put_u32 (data, count);
  for (unsigned i = 0; i < count; i++) {
    put_u32 (data, (uint32_t) strlen (queries[i]));
    put_bytes (data, queries[i], strlen (queries[i]));
  }
}

static void
take_context (struct contexts *contexts, const struct option_reply *reply)
{
  struct context *context;
  char *name;

  if (reply->len < 4)
    fail ("expected an ID in NBD_REP_META_CONTEXT, got %u bytes",
          reply->len);
  if (contexts->count == MAX_CONTEXTS)
    fail ("expected a few contexts, got more than %d", MAX_CONTEXTS);
  context = &contexts->list[contexts->count++];
  context->id = get_be32 (reply->data);
  context->len = reply->len - 4;
  context->name = name = take_memory (context->len + 1);
  memcpy (name, reply->data + 4, context->len);
}

void
recv_contexts (struct session *session, uint32_t option,
               struct contexts *contexts)
{
  struct option_reply reply;

  *contexts = (struct contexts){ 0 };
  while (1) {
    if (!recv_option_reply_or_end (session, option, &reply)) {
      contexts->is_closed = true;
      return;
    }
    if (reply.type != REP_META_CONTEXT)
      break;
    take_context (contexts, &reply);
  }
  contexts->final = reply.type;
  if (reply.type != REP_ACK && !is_error_reply (reply.type))
    fail ("expected NBD_REP_ACK or an error to end %s, got %s",
          option_name (option), reply_name (reply.type));
}

static void
ask (struct session *session, uint32_t option, const char *export,
     size_t export_len, const char *const *queries, unsigned count,
     struct contexts *contexts)
{
  struct option_data *data = take_memory (sizeof *data);

  put_contexts (data, export, export_len, queries, count);
  send_option (session, option, data->bytes, data->len);
  recv_contexts (session, option, contexts);
}

void
ask_contexts (struct session *session, uint32_t option,
              const char *const *queries, unsigned count,
              struct contexts *contexts)
{
  const struct uri *uri = session->target->uri;

  ask (session, option, uri->export, uri->export_len, queries, count,
       contexts);
}

void
ask_contexts_of (struct session *session, uint32_t option,
                 const char *export, const char *const *queries,
                 unsigned count, struct contexts *contexts)
{
  ask (session, option, export, strlen (export), queries, count, contexts);
}

void
expect_contexts_ack (const struct contexts *contexts, uint32_t option)
{
  if (contexts->is_closed)
    fail ("expected NBD_REP_ACK to %s, got the end of the connection",
          option_name (option));
  if (contexts->final != REP_ACK)
    fail ("expected NBD_REP_ACK to %s, got %s", option_name (option),
          reply_name (contexts->final));
}

struct contexts *
expect_contexts (struct session *session, uint32_t option,
                 const char *const *queries, unsigned count)
{
  struct contexts *contexts = take_memory (sizeof *contexts);

  ask_contexts (session, option, queries, count, contexts);
  if (!contexts->is_closed && contexts->final == REP_ERR_UNSUP)
    skip ("metadata contexts are not offered");
  expect_contexts_ack (contexts, option);
  return contexts;
}

void
skip_without_allocation (const struct target *target)
{
  if (!target->facts->has_allocation)
    skip ("the metadata context base:allocation is not offered");
}

const struct context *
contexts_find (const struct contexts *contexts, const char *name)
{
  for (unsigned i = 0; i < contexts->count; i++)
    if (contexts->list[i].len == strlen (name) &&
        memcmp (contexts->list[i].name, name, strlen (name)) == 0)
      return &contexts->list[i];
  return NULL;
}

void
select_allocation (struct session *session, uint32_t *ret_id)
{
  const char *query = ALLOCATION_CONTEXT;
  const struct contexts *contexts;
  const struct context *context;

  session_structure (session);
  skip_without_allocation (session->target);
  contexts = expect_contexts (session, OPT_SET_META_CONTEXT, &query, 1);
  context = contexts_find (contexts, ALLOCATION_CONTEXT);
  if (context == NULL)
    fail ("expected " ALLOCATION_CONTEXT " to be selected, got %u others",
          contexts->count);
  *ret_id = context->id;
}
