/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Probing.
 *
 * Each question is asked in a process of its own, like a check, so that a
 * server that hangs or lies costs the answer to that question only: the
 * fact keeps its default, which is that a feature is not offered.  The
 * facts lie in memory that these processes share with the suite.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "conform/apart.h"
#include "conform/check.h"
#include "conform/contexts.h"
#include "conform/info.h"
#include "conform/option.h"
#include "conform/probe.h"
#include "conform/protocol.h"
#include "conform/session.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

enum {
  SECOND_CLIENT_S = 2, /* How long one waits for its greeting. */
};

/* Set in the parent; the children write to what it points to. */
static struct facts *facts;

/* ---- The questions ---- */

static void
ask_connection (const struct target *target)
{
  struct session session;

  session_connect (&session, target);
}

/* The type of the first reply to OPTION of a client without TLS; 0 if
 * there is none.
 */
static uint32_t
first_reply (const struct target *target, uint32_t option, const void *data,
             size_t len)
{
  struct session session;
  struct option_reply reply;

  session_connect (&session, target);
  session_greet (&session, FLAG_FIXED_NEWSTYLE);
  send_option (&session, option, data, len);
  return recv_option_reply_or_end (&session, option, &reply) ? reply.type
                                                             : 0;
}

static void
ask_tls (const struct target *target)
{
  const struct uri *uri = target->uri;
  struct option_data *data = take_memory (sizeof *data);

  put_u32 (data, (uint32_t) uri->export_len);
  put_bytes (data, uri->export, uri->export_len);
  put_u16 (data, 0);
  if (first_reply (target, OPT_STARTTLS, NULL, 0) != REP_ACK)
    return;
  facts->tls = TLS_SELECTIVE;
  facts->needs_tls = first_reply (target, OPT_INFO, data->bytes,
                                  data->len) == REP_ERR_TLS_REQD;
  if (first_reply (target, OPT_LIST, NULL, 0) == REP_ERR_TLS_REQD)
    facts->tls = TLS_FORCED;
}

/* Over TLS, with what the URI says: a server that wants to know more of a
 * client closes the connection only after the handshake.
 */
static void
ask_over_tls (const struct target *target)
{
  struct session *session = session_begin (target);
  struct option_reply reply;

  send_option (session, OPT_LIST, NULL, 0);
  if (!recv_option_reply_or_end (session, OPT_LIST, &reply))
    fail ("the server closes the connection after the TLS handshake: it may "
          "want a certificate, tls-certificates=DIR in the URI");
}

static void
note_opened (uint64_t size, uint16_t flags)
{
  facts->size = size;
  facts->flags = flags;
  facts->is_opened = true;
}

static void
ask_export_by_name (const struct target *target)
{
  struct session *session = session_begin (target);

  facts->has_no_go = true;
  facts->is_opened = true; /* For session_enter. */
  session_enter (session);
  note_opened (session->size, session->flags);
}

static void
ask_export (const struct target *target)
{
  struct session *session = session_begin (target);
  struct info info;

  ask_info (session, OPT_GO, &info);
  if (!info.is_closed && info.final == REP_ERR_UNSUP) {
    ask_export_by_name (target);
    return;
  }
  if (!info.is_closed && info.final == REP_ERR_UNKNOWN)
    skip ("the server has no export '%s'", target->uri->export);
  expect_info_ack (&info, OPT_GO);
  if (info.has_block_size && info.min_block > 0) {
    facts->min_block = info.min_block;
    facts->max_block = MAX (info.max_block, info.min_block);
  }
  note_opened (info.size, info.flags);
}

static void
ask_structured (const struct target *target)
{
  struct session *session = session_begin (target);
  struct option_reply reply;

  send_option (session, OPT_STRUCTURED_REPLY, NULL, 0);
  recv_option_reply (session, OPT_STRUCTURED_REPLY, &reply);
  if (reply.type != REP_ACK)
    return;
  session_enter (session);
  facts->structured_flags = session->flags;
  facts->has_structured = true;
}

static void
ask_allocation (const struct target *target)
{
  struct session *session = session_begin (target);
  struct contexts *contexts = take_memory (sizeof *contexts);
  const char *query = ALLOCATION_CONTEXT;

  session_structure (session);
  ask_contexts (session, OPT_SET_META_CONTEXT, &query, 1, contexts);
  facts->has_allocation = !contexts->is_closed &&
                          contexts->final == REP_ACK && contexts->count > 0;
}

static void
ask_any_name (const struct target *target)
{
  struct session *session = session_begin (target);
  struct info info;

  ask_info_of (session, OPT_INFO, NO_SUCH_EXPORT, strlen (NO_SUCH_EXPORT),
               NULL, 0, &info);
  facts->serves_any_name = !info.is_closed && info.final == REP_ACK;
}

static void
ask_second_client (const struct target *target)
{
  struct session second;

  session_open (target);
  facts->takes_one_client = true;
  check_begin (MIN (target->timeout_s, SECOND_CLIENT_S));
  session_connect (&second, target);
  session_read_greeting (&second);
  facts->takes_one_client = false;
}

/* ---- Asking them ---- */

/* Returns what it printed, one line; NULL if it ran to its end. */
static char *
put_question (void (*question) (const struct target *target),
              const struct target *target, enum check_result *ret_result)
{
  static struct outcome outcome;
  const int r = run_apart (question, target, target->timeout_s, &outcome);

  *ret_result = CHECK_FAILED;
  if (r < 0)
    return strerror (-r);
  *ret_result = outcome.result;
  if (outcome.result == CHECK_PASSED)
    return NULL;
  outcome.text[strcspn (outcome.text, "\n")] = '\0';
  return outcome.text;
}

static void
probe_features (const struct target *target)
{
  static void (*const questions[]) (const struct target *target) = {
    ask_structured,
    ask_allocation,
    ask_any_name,
    ask_second_client,
  };
  enum check_result result;

  for (size_t i = 0; i < ARRAY_LEN (questions); i++)
    put_question (questions[i], target, &result);
}

/* Returns NULL, or why there is nothing to be tested. */
static const char *
probe_connection (const struct target *target)
{
  enum check_result result;
  const char *text = put_question (ask_connection, target, &result);

  if (text)
    return text;
  put_question (ask_tls, target, &result);
  if (!target->uri->is_tls)
    return NULL;
  if (facts->tls == TLS_NONE)
    return "the server does not offer TLS";
  return put_question (ask_over_tls, target, &result);
}

/* Likewise. */
static const char *
probe_export (const struct target *target)
{
  enum check_result result;
  const char *text = put_question (ask_export, target, &result);

  if (text) {
    const bool lacks_tls = facts->needs_tls && !target->uri->is_tls;

    snprintf (facts->why, sizeof facts->why, "%s", text);
    facts->is_opened = false;
    return result == CHECK_SKIPPED && !lacks_tls ? text : NULL;
  }
  if (!(facts->flags & EXPORT_READ_ONLY))
    return "the export is not read-only: the checks that write would "
           "change it";
  probe_features (target);
  return NULL;
}

int
probe_target (struct target *target, char why[WHY_MAX])
{
  const char *text;

  facts = mmap (NULL, sizeof *facts, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (facts == MAP_FAILED) {
    snprintf (why, WHY_MAX, "%m");
    return -errno;
  }
  facts->min_block = 1;
  facts->max_block = UINT32_MAX;
  target->facts = facts;

  text = probe_connection (target);
  if (text == NULL)
    text = probe_export (target);
  if (text == NULL)
    return 0;
  snprintf (why, WHY_MAX, "%s", text);
  return -ENOTCONN;
}
