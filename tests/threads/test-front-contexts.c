/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Metadata contexts: which are listed and selected, and for which export
 * a selection holds.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "harness/check.h"
#include "harness/front-client.h"

enum {
  LIST = NBD_OPT_LIST_META_CONTEXT,
  SET = NBD_OPT_SET_META_CONTEXT,
};

static struct front_fixture fixture;

static const char *const no_query[] = { NULL };
static const char *const allocation[] = { "base:allocation", NULL };
static const char *const both[] = { "base:allocation", "blobpager:residency",
                                    NULL };

static int
greeted (void)
{
  const int fd = client_connect (&fixture);

  client_greet_structured (fd);
  return fd;
}

static struct client_contexts
ask (int fd, uint32_t option, const char *name, const char *const *queries)
{
  client_send_queries (fd, option, name, queries);
  return client_recv_contexts (fd, option);
}

static void
go (int fd, const char *name)
{
  client_send_info (fd, NBD_OPT_GO, name);
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
}

/* BLOCK_STATUS tells of COUNT contexts, or is refused if that is 0.  FD is
 * closed.
 */
static void
expect_status (int fd, unsigned count)
{
  struct client_chunk chunk;
  uint8_t payload[256];
  uint64_t offset;

  client_send_request (fd, NBD_CMD_FLAG_REQ_ONE, NBD_CMD_BLOCK_STATUS, 7, 0,
                       1);
  if (count == 0) {
    chunk = client_recv_chunk (fd);
    CHECK_EQ (client_recv_error (fd, &chunk, &offset), NBD_EINVAL);
    CHECK_EQ (offset, UINT64_MAX);
    CHECK_EQ (chunk.flags, NBD_REPLY_FLAG_DONE);
  }
  for (; count > 0; count--) {
    chunk = client_recv_chunk (fd);
    CHECK_EQ (chunk.type, NBD_REPLY_TYPE_BLOCK_STATUS);
    CHECK_EQ (chunk.flags, count == 1 ? NBD_REPLY_FLAG_DONE : 0);
    CHECK_EQ (chunk.len, 12);
    client_recv (fd, payload, chunk.len);
  }
  client_send_request (fd, 0, NBD_CMD_DISC, 8, 0, 0);
  client_expect_closed (fd);
}

/* ---- Listing and selecting ---- */

static void
every_context_is_listed_to_who_asks_for_all (void)
{
  const int fd = greeted ();
  const struct client_contexts contexts = ask (fd, LIST, "fast", no_query);

  CHECK_EQ (contexts.type, NBD_REP_ACK);
  CHECK_EQ (contexts.count, 2);
  CHECK_EQ (strcmp (contexts.list[0].name, "base:allocation"), 0);
  CHECK_EQ (strcmp (contexts.list[1].name, "blobpager:residency"), 0);
  CHECK_EQ (contexts.list[0].id, 0);
  CHECK_EQ (contexts.list[1].id, 0);
  go (fd, "fast");
  expect_status (fd, 0); /* Listed is not selected. */
}

static void
a_query_lists_what_it_matches (void)
{
  static const struct {
    const char *queries[4];
    size_t count;
  } cases[] = {
    { { "base:" }, 1 },
    { { "blobpager:" }, 1 },
    { { "blobpager:", "base:allocation", "base:" }, 2 },
    { { "qemu:", "x-y:z" }, 0 },
    { { "nonsense", "", "blobpager:residency" }, 1 },
  };
  const int fd = greeted ();
  struct client_contexts contexts;
  size_t i;

  for (i = 0; i < ARRAY_LEN (cases); i++) {
    contexts = ask (fd, LIST, "", cases[i].queries);
    CHECK_EQ (contexts.type, NBD_REP_ACK);
    CHECK_EQ (contexts.count, cases[i].count);
  }
  go (fd, "fast");
  close (fd);
}

static void
selected_contexts_have_identifiers_of_their_own (void)
{
  const int fd = greeted ();
  const struct client_contexts contexts = ask (fd, SET, "fast", both);

  CHECK_EQ (contexts.type, NBD_REP_ACK);
  CHECK_EQ (contexts.count, 2);
  CHECK (contexts.list[0].id != contexts.list[1].id);
  go (fd, "fast");
  expect_status (fd, 2);
}

static void
nothing_is_selected_by_a_wildcard_or_no_query (void)
{
  static const char *const wildcards[] = { "base:", "blobpager:", NULL };
  int fd = greeted ();

  CHECK_EQ (ask (fd, SET, "fast", wildcards).count, 0);
  go (fd, "fast");
  expect_status (fd, 0);
  fd = greeted ();
  CHECK_EQ (ask (fd, SET, "fast", no_query).count, 0);
  go (fd, "fast");
  expect_status (fd, 0);
}

/* ---- For which export a selection holds ---- */

static void
a_selection_holds_for_the_export_that_it_names (void)
{
  int fd = greeted ();

  ask (fd, SET, "fast", both);
  go (fd, "slow");
  expect_status (fd, 0);

  /* The same export by another name is another name. */
  fd = greeted ();
  ask (fd, SET, "", both);
  go (fd, "fast");
  expect_status (fd, 0);

  fd = greeted ();
  ask (fd, SET, "", both);
  go (fd, "");
  expect_status (fd, 2);
}

static void
other_options_do_not_end_a_selection (void)
{
  const int fd = greeted ();

  ask (fd, SET, "fast", both);
  ask (fd, LIST, "slow", no_query);
  client_send_info (fd, NBD_OPT_INFO, "slow");
  CHECK_EQ (client_end_option (fd, NBD_OPT_INFO), NBD_REP_ACK);
  client_send_option (fd, NBD_OPT_LIST, NULL, 0);
  CHECK_EQ (client_end_option (fd, NBD_OPT_LIST), NBD_REP_ACK);
  client_send_info (fd, NBD_OPT_GO, "nobody");
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ERR_UNKNOWN);
  client_send_option (fd, 99, "x", 1);
  CHECK_EQ (client_end_option (fd, 99), NBD_REP_ERR_UNSUP);
  go (fd, "fast");
  expect_status (fd, 2);
}

static void
export_name_takes_a_selection_over_as_go_does (void)
{
  const int fd = greeted ();
  uint8_t reply[10];

  ask (fd, SET, "fast", allocation);
  client_send_option (fd, NBD_OPT_EXPORT_NAME, "fast", 4);
  client_recv (fd, reply, sizeof reply);
  CHECK_EQ (get_be64 (reply), FAKE_SIZE);
  expect_status (fd, 1);
}

static void
the_next_selection_replaces_the_one_before (void)
{
  int fd = greeted ();

  ask (fd, SET, "fast", both);
  CHECK_EQ (ask (fd, SET, "fast", allocation).count, 1);
  go (fd, "fast");
  expect_status (fd, 1);

  fd = greeted ();
  ask (fd, SET, "fast", both);
  ask (fd, SET, "slow", both);
  go (fd, "fast");
  expect_status (fd, 0);
}

/* DATA of a SET is refused with TYPE, and ends the selection before. */
static void
expect_set_refused (const void *data, size_t len, uint32_t type)
{
  const int fd = greeted ();

  ask (fd, SET, "fast", both);
  client_send_option (fd, SET, data, len);
  CHECK_EQ (client_end_option (fd, SET), type);
  go (fd, "fast");
  expect_status (fd, 0);
}

static void
even_a_selection_that_fails_replaces_the_one_before (void)
{
  static uint8_t large[(64 << 10) + 1], unknown[12] = { 0, 0, 0, 4, 'n', 'o',
                                                        'n', 'e' };

  expect_set_refused (NULL, 0, NBD_REP_ERR_INVALID);
  expect_set_refused ("\0\0\0\1x", 5, NBD_REP_ERR_INVALID);
  expect_set_refused (unknown, sizeof unknown, NBD_REP_ERR_UNKNOWN);
  expect_set_refused (large, sizeof large, NBD_REP_ERR_TOO_BIG);
}

/* ---- Refusals ---- */

static void
contexts_need_structured_replies (void)
{
  const int fd = client_connect (&fixture);

  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  CHECK_EQ (ask (fd, LIST, "fast", no_query).type, NBD_REP_ERR_INVALID);
  CHECK_EQ (ask (fd, SET, "fast", both).type, NBD_REP_ERR_INVALID);

  /* It is not too late for them. */
  client_send_option (fd, NBD_OPT_STRUCTURED_REPLY, NULL, 0);
  CHECK_EQ (client_end_option (fd, NBD_OPT_STRUCTURED_REPLY), NBD_REP_ACK);
  CHECK_EQ (ask (fd, SET, "fast", both).count, 2);
  go (fd, "fast");
  expect_status (fd, 2);
}

static void
contexts_of_an_export_that_cannot_be_opened_are_refused_as_it_is (void)
{
  static const struct {
    const char *name;
    uint32_t type;
  } cases[] = {
    { "nobody", NBD_REP_ERR_UNKNOWN },
    { "session", NBD_REP_ERR_UNKNOWN },
    { "denied", NBD_REP_ERR_POLICY },
    { "broken", NBD_REP_ERR_PLATFORM },
  };
  const int fd = greeted ();
  size_t i;

  for (i = 0; i < ARRAY_LEN (cases); i++) {
    CHECK_EQ (ask (fd, LIST, cases[i].name, both).type, cases[i].type);
    CHECK_EQ (ask (fd, SET, cases[i].name, both).type, cases[i].type);
  }
  go (fd, "fast");
  expect_status (fd, 0);
}

/* A LIST or SET for an export whose name has NAME_LEN letters, with one
 * query of QUERY_LEN letters.
 */
static void
expect_lengths (uint32_t name_len, uint32_t query_len, uint32_t type)
{
  static const uint32_t options[] = { LIST, SET };
  const size_t len = 4 + name_len + 4 + 4 + query_len;
  uint8_t *data = malloc (len);
  const int fd = greeted ();
  size_t i;

  CHECK (data != NULL);
  memset (data, 'n', len);
  put_be32 (data, name_len);
  if (name_len == 4)
    memcpy (data + 4, "fast", 4);
  put_be32 (data + 4 + name_len, 1);
  put_be32 (data + 4 + name_len + 4, query_len);
  for (i = 0; i < ARRAY_LEN (options); i++) {
    client_send_option (fd, options[i], data, len);
    CHECK_EQ (client_end_option (fd, options[i]), type);
  }
  go (fd, "fast");
  expect_status (fd, 0);
  free (data);
}

static void
names_and_queries_of_any_length_are_answered (void)
{
  expect_lengths (4, 4096, NBD_REP_ACK);
  expect_lengths (4, 4097, NBD_REP_ERR_TOO_BIG);
  expect_lengths (256, 10, NBD_REP_ERR_UNKNOWN);
  expect_lengths (4096, 10, NBD_REP_ERR_UNKNOWN);
  expect_lengths (4097, 10, NBD_REP_ERR_TOO_BIG);
  expect_lengths (4, 1 << 20, NBD_REP_ERR_TOO_BIG);
}

static void
residency_is_not_for_everybody (void)
{
  struct front_fixture all = fixture;
  int fd;

  memset (&fixture, 0, sizeof fixture);
  fixture.clients.has_allow = true;
  fixture_start (&fixture);
  fd = greeted ();
  CHECK_EQ (ask (fd, LIST, "fast", no_query).count, 1);
  CHECK_EQ (ask (fd, LIST, "fast", both).count, 1);
  CHECK_EQ (ask (fd, SET, "fast", both).count, 1);
  go (fd, "fast");
  expect_status (fd, 1);
  fixture_stop (&fixture);
  fixture = all;
}

int
main (void)
{
  fixture_start (&fixture);
  RUN (every_context_is_listed_to_who_asks_for_all);
  RUN (a_query_lists_what_it_matches);
  RUN (selected_contexts_have_identifiers_of_their_own);
  RUN (nothing_is_selected_by_a_wildcard_or_no_query);
  RUN (a_selection_holds_for_the_export_that_it_names);
  RUN (other_options_do_not_end_a_selection);
  RUN (export_name_takes_a_selection_over_as_go_does);
  RUN (the_next_selection_replaces_the_one_before);
  RUN (even_a_selection_that_fails_replaces_the_one_before);
  RUN (contexts_need_structured_replies);
  RUN (contexts_of_an_export_that_cannot_be_opened_are_refused_as_it_is);
  RUN (names_and_queries_of_any_length_are_answered);
  RUN (residency_is_not_for_everybody);
  fixture_stop (&fixture);
  return EXIT_SUCCESS;
}
