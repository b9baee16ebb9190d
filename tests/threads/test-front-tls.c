/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Clients that speak TLS: they are served as others are, whatever they do
 * with records, keys and time; and what came before TLS is forgotten.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/tls1.h>

#include "lib/base/bytes.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "daemon/front/tls.h"
#include "harness/check.h"
#include "harness/front-client.h"
#include "harness/tls-client.h"

static struct front_fixture fixture;

static const struct tls_client any_client,
  tls12 = { .version = TLS1_2_VERSION },
  tls13 = { .version = TLS1_3_VERSION },
  dhe = { .version = TLS1_2_VERSION, .ciphers = "DHE-PSK-AES256-GCM-SHA384" },
  ecdhe = { .version = TLS1_2_VERSION,
            .ciphers = "ECDHE-PSK-AES128-CBC-SHA256" },
  fragments = { .max_fragment_code = TLSEXT_max_fragment_length_512 },
  old_fragments = { .version = TLS1_2_VERSION,
                    .ciphers = "ECDHE-PSK-AES128-CBC-SHA256",
                    .max_fragment_code = TLSEXT_max_fragment_length_512 };

static const struct tls_client *const clients[] = {
  &any_client,
  &tls12,
  &tls13,
  &dhe,
  &ecdhe,
  &fragments,
  &old_fragments,
};

static int
greeted (void)
{
  const int fd = client_connect (&fixture);

  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  return fd;
}

/* ---- Reading ---- */

static void
every_kind_of_client_reads_every_byte (void)
{
  static const uint32_t lengths[] = { 1, 512, 4096, 16367, 16368, 16369,
                                      131072, 3333333, 32 << 20 };
  size_t i, k;

  for (i = 0; i < ARRAY_LEN (clients); i++) {
    const int fd = tls_client_attach (&fixture, clients[i], "mixed");

    for (k = 0; k < ARRAY_LEN (lengths); k++)
      client_expect_bytes (&fixture, fd, FAKE_SIZE - lengths[k],
                           lengths[k]);
    close (fd);
  }
}

/* Where TLS has a way to. */
static void
the_key_is_changed_before_it_wears_out (void)
{
  struct front_fixture worn = { .limits = default_front_limits,
                                .tls = fixture.tls,
                                .tls_mode = TLS_REQUIRE };
  static const struct {
    const struct tls_client *client;
    unsigned wanted;
  } cases[] = { { &tls12, 0 }, { &tls13, 32 } };
  size_t i;

  worn.limits.tls_rekey_bytes = 1 << 20;
  fixture_start (&worn);
  for (i = 0; i < ARRAY_LEN (cases); i++) {
    const unsigned before = tls_relays_wait ().rekeyed;
    const int fd = tls_client_attach (&worn, cases[i].client, "mixed");

    client_expect_bytes (&worn, fd, 5, 32 << 20);
    client_expect_bytes (&worn, fd, 7, 777);
    close (fd);
    CHECK_EQ (tls_relays_wait ().rekeyed - before, cases[i].wanted);
  }
  fixture_stop (&worn);
}

/* They come in records that hold more than a connection's buffer, and the
 * socket has nothing more when the buffer has room again.
 */
static void
many_requests_in_one_record_are_all_answered (void)
{
  enum {
    COUNT = 4096,
    LEN = 512
  };
  static uint8_t requests[COUNT * NBD_REQUEST_SIZE];
  static const char *const exports[] = { "fast", "slow" };
  uint64_t cookie;
  size_t i, k;

  for (i = 0; i < COUNT; i++) {
    uint8_t *request = requests + i * NBD_REQUEST_SIZE;

    put_be32 (request, NBD_REQUEST_MAGIC);
    put_be64 (request + 8, i * 1000);
    put_be64 (request + 16, i * 1000);
    put_be32 (request + 24, LEN);
  }
  for (k = 0; k < ARRAY_LEN (exports); k++) {
    const int fd = tls_client_attach (&fixture, &any_client, exports[k]);

    client_send (fd, requests, sizeof requests);
    for (i = 0; i < COUNT; i++) {
      CHECK_EQ (client_recv_reply (fd, &cookie), 0);
      client_recv_bytes (&fixture, fd, cookie, LEN);
    }
    close (fd);
  }
}

static void
a_write_in_many_records_is_read_over (void)
{
  const int fd = tls_client_attach (&fixture, &any_client, "fast");
  uint8_t *payload = calloc (1, 32 << 20);
  uint64_t cookie;

  CHECK (payload != NULL);
  client_send_request (fd, 0, NBD_CMD_WRITE, 5, 0, 32 << 20);
  client_send (fd, payload, 32 << 20);
  CHECK_EQ (client_recv_reply (fd, &cookie), NBD_EPERM);
  client_expect_bytes (&fixture, fd, 77, 7777);
  free (payload);
  close (fd);
}

/* LEN of 32 MiB asked for, and not read until the other has been served. */
static void
a_client_that_does_not_read_holds_nothing_and_loses_nothing (void)
{
  enum {
    COUNT = 64,
    LEN = 1 << 20
  };
  const int fd = tls_client_attach (&fixture, &any_client, "slow");
  const int other = tls_client_attach (&fixture, &any_client, "fast");
  uint64_t cookie;
  int i;

  for (i = 0; i < COUNT; i++)
    client_send_request (fd, 0, NBD_CMD_READ, (uint64_t) i * 4097,
                         (uint64_t) i * 4097, LEN);
  for (i = 0; i < 20; i++)
    client_expect_bytes (&fixture, other, (uint64_t) i << 20, 1 << 20);
  while (fake_pager_counts (fixture.pager).unreleased > 0)
    poll (NULL, 0, 1);
  client_expect_bytes (&fixture, other, 0, 1 << 20);
  for (i = 0; i < COUNT; i++) {
    CHECK_EQ (client_recv_reply (fd, &cookie), 0);
    client_recv_bytes (&fixture, fd, cookie, LEN);
  }
  close (fd);
  close (other);
}

static void
the_end_is_announced (void)
{
  const unsigned before = tls_relays_wait ().notified;
  int fd = tls_client_attach (&fixture, &any_client, "fast");

  client_send_request (fd, 0, NBD_CMD_READ, 9, 0, 1 << 20);
  client_send_request (fd, 0, NBD_CMD_DISC, 0, 0, 0);
  client_recv_reply (fd, &(uint64_t){ 0 });
  client_recv_bytes (&fixture, fd, 0, 1 << 20);
  client_expect_closed (fd);
  fd = tls_client_connect (&fixture, &tls12);
  client_send_option (fd, NBD_OPT_ABORT, NULL, 0);
  CHECK_EQ (client_end_option (fd, NBD_OPT_ABORT), NBD_REP_ACK);
  client_expect_closed (fd);
  CHECK_EQ (tls_relays_wait ().notified, before + 2);
}

/* Whatever part of the reply is encrypted and not sent when the client
 * says goodbye.
 */
static void
a_client_that_leaves_before_it_reads_gets_the_whole_reply (void)
{
  const unsigned before = tls_relays_wait ().notified;
  uint32_t len;
  int fd;

  for (len = 128 << 10; len <= 1 << 20; len += 32 << 10) {
    fd = tls_client_attach (&fixture, &any_client, "fast");
    client_send_request (fd, 0, NBD_CMD_READ, 9, 0, len);
    client_send_request (fd, 0, NBD_CMD_DISC, 0, 0, 0);
    while (fake_pager_counts (fixture.pager).unreleased > 0)
      poll (NULL, 0, 1);
    client_recv_reply (fd, &(uint64_t){ 0 });
    client_recv_bytes (&fixture, fd, 0, len);
    client_expect_closed (fd);
  }
  CHECK_EQ (tls_relays_wait ().notified, before + 29);
}

/* ---- Before TLS ---- */

static void
without_tls_nothing_is_answered_where_it_is_required (void)
{
  static const uint32_t options[] = { 0, NBD_OPT_LIST, 4, NBD_OPT_INFO,
                                      NBD_OPT_GO, 8, 9, 10, 11, 99 };
  uint8_t data[100] = { 0 };
  size_t i;
  int fd = greeted ();

  for (i = 0; i < ARRAY_LEN (options); i++) {
    client_send_option (fd, options[i], data, i * 10);
    CHECK_EQ (client_end_option (fd, options[i]), NBD_REP_ERR_TLS_REQD);
  }
  client_send_option (fd, NBD_OPT_ABORT, NULL, 0);
  CHECK_EQ (client_end_option (fd, NBD_OPT_ABORT), NBD_REP_ACK);
  client_expect_closed (fd);
  fd = greeted ();
  client_send_option (fd, NBD_OPT_EXPORT_NAME, "fast", 4);
  client_expect_closed (fd);
}

static void
an_option_too_long_is_no_way_around_it (void)
{
  const int fd = greeted ();
  uint8_t *data = calloc (1, 1 << 20);

  CHECK (data != NULL);
  client_send_option (fd, NBD_OPT_GO, data, 1 << 20);
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ERR_TLS_REQD);
  free (data);
  close (fd);
}

static void
starttls_is_refused_with_data_and_a_second_time (void)
{
  int fd = greeted ();

  client_send_option (fd, NBD_OPT_STARTTLS, "x", 1);
  CHECK_EQ (client_end_option (fd, NBD_OPT_STARTTLS), NBD_REP_ERR_INVALID);
  tls_client_start (fd);
  fd = tls_client_relay (fd, &any_client);
  client_send_option (fd, NBD_OPT_STARTTLS, NULL, 0);
  CHECK_EQ (client_end_option (fd, NBD_OPT_STARTTLS), NBD_REP_ERR_INVALID);
  client_send_info (fd, NBD_OPT_GO, "mixed");
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
  client_expect_bytes (&fixture, fd, 4095, 2);
  close (fd);
}

/* FD is closed, after an alert at most: nothing in plain text. */
static void
expect_no_answer (int fd)
{
  uint8_t bytes[64];
  size_t len = 0;
  ssize_t n;

  while ((n = recv (fd, bytes + len, sizeof bytes - len, 0)) > 0)
    len += (size_t) n;
  CHECK (n == 0 || errno == ECONNRESET);
  CHECK (len < sizeof bytes);
  CHECK (len == 0 || bytes[0] == SSL3_RT_ALERT);
  close (fd);
}

/* An attacker on the way appends an option of his own, in plain text. */
static void
plain_text_behind_starttls_is_never_heeded (void)
{
  uint8_t options[2 * NBD_OPTION_HEADER_SIZE];
  int fd;

  put_be64 (options, NBD_OPTION_MAGIC);
  put_be32 (options + 8, NBD_OPT_STARTTLS);
  put_be32 (options + 12, 0);
  put_be64 (options + 16, NBD_OPTION_MAGIC);
  put_be32 (options + 24, NBD_OPT_LIST);
  put_be32 (options + 28, 0);

  fd = greeted ();
  client_send (fd, options, sizeof options);
  client_expect_closed (fd);
  fd = greeted ();
  client_send (fd, options, NBD_OPTION_HEADER_SIZE + 1);
  client_expect_closed (fd);
  /* When it comes later, it is no TLS. */
  fd = greeted ();
  tls_client_start (fd);
  client_send (fd, options + 16, NBD_OPTION_HEADER_SIZE);
  expect_no_answer (fd);
}

static void
where_tls_is_off_it_is_refused (void)
{
  const enum tls_mode modes[] = { TLS_OFF, TLS_UNSAID };
  struct tls_server *const servers[] = { fixture.tls, NULL };
  size_t i;

  for (i = 0; i < ARRAY_LEN (modes); i++) {
    struct front_fixture plain = { .tls = servers[i],
                                   .tls_mode = modes[i] };
    int fd;

    fixture_start (&plain);
    fd = client_connect (&plain);
    client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE);
    client_send_option (fd, NBD_OPT_STARTTLS, NULL, 0);
    CHECK_EQ (client_end_option (fd, NBD_OPT_STARTTLS), NBD_REP_ERR_POLICY);
    client_send_info (fd, NBD_OPT_GO, "fast");
    CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
    close (fd);
    fixture_stop (&plain);
  }
}

static void
where_tls_is_on_both_kinds_are_served (void)
{
  struct front_fixture both = { .tls = fixture.tls, .tls_mode = TLS_ON };
  int plain, secure;

  fixture_start (&both);
  plain = client_attach (&both, "mixed");
  secure = tls_client_attach (&both, &any_client, "mixed");
  client_expect_bytes (&both, plain, 5, 100000);
  client_expect_bytes (&both, secure, 5, 100000);
  close (plain);
  close (secure);
  tls_relays_wait ();
  fixture_stop (&both);
}

/* client_expect_bytes takes simple replies only. */
static void
what_was_agreed_in_plain_text_is_forgotten (void)
{
  struct front_fixture both = { .tls = fixture.tls, .tls_mode = TLS_ON };
  int fd;

  fixture_start (&both);
  fd = client_connect (&both);
  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  client_send_option (fd, NBD_OPT_STRUCTURED_REPLY, NULL, 0);
  CHECK_EQ (client_end_option (fd, NBD_OPT_STRUCTURED_REPLY), NBD_REP_ACK);
  tls_client_start (fd);
  fd = tls_client_relay (fd, &any_client);
  client_send_info (fd, NBD_OPT_GO, "mixed");
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
  client_expect_bytes (&both, fd, 5, 100000);
  close (fd);
  tls_relays_wait ();
  fixture_stop (&both);
}

static void
contexts_set_in_plain_text_are_forgotten (void)
{
  static const char *const queries[] = { "base:allocation", NULL };
  struct front_fixture both = { .tls = fixture.tls, .tls_mode = TLS_ON };
  struct client_chunk chunk;
  uint64_t offset;
  int fd;

  fixture_start (&both);
  fd = client_connect (&both);
  client_greet_structured (fd);
  client_send_queries (fd, NBD_OPT_SET_META_CONTEXT, "mixed", queries);
  CHECK_EQ (client_recv_contexts (fd, NBD_OPT_SET_META_CONTEXT).count, 1);
  tls_client_start (fd);
  fd = tls_client_relay (fd, &any_client);
  client_send_option (fd, NBD_OPT_STRUCTURED_REPLY, NULL, 0);
  CHECK_EQ (client_end_option (fd, NBD_OPT_STRUCTURED_REPLY), NBD_REP_ACK);
  client_send_info (fd, NBD_OPT_GO, "mixed");
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
  client_send_request (fd, 0, NBD_CMD_BLOCK_STATUS, 1, 0, 1);
  chunk = client_recv_chunk (fd);
  CHECK_EQ (client_recv_error (fd, &chunk, &offset), NBD_EINVAL);
  close (fd);
  tls_relays_wait ();
  fixture_stop (&both);
}

/* ---- Whom we believe ---- */

static void
expect_turned_away (const struct tls_client *client)
{
  client_expect_closed (tls_client_connect (&fixture, client));
}

static void
a_wrong_key_or_name_is_turned_away (void)
{
  static const char other_key[] = "ff112233445566778899aabbccddeeff";
  static const struct tls_client strangers[] = {
    { .key = other_key, .version = TLS1_2_VERSION },
    { .key = other_key, .version = TLS1_3_VERSION },
    { .user = "mallory", .version = TLS1_2_VERSION },
    { .user = "mallory", .version = TLS1_3_VERSION },
  };
  size_t i;

  for (i = 0; i < ARRAY_LEN (strangers); i++)
    expect_turned_away (&strangers[i]);
  close (tls_client_attach (&fixture, &any_client, "fast"));
}

static void
keys_that_are_read_again_count_for_new_clients (void)
{
  static const struct tls_client bob = {
    .user = "bob",
    .key = "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
  };
  const int alice = tls_client_attach (&fixture, &any_client, "mixed");
  struct bp_error err;

  tls_test_write_keys ("bob:a0a1a2a3a4a5a6a7a8a9aaabacadaeaf\n");
  CHECK_EQ (tls_server_reload (fixture.tls, &err), 0);
  client_expect_bytes (&fixture, alice, 5, 100000);
  expect_turned_away (&any_client);
  close (tls_client_attach (&fixture, &bob, "fast"));

  tls_test_write_keys ("bob\n");
  CHECK_EQ (tls_server_reload (fixture.tls, &err), -EPROTO);
  close (tls_client_attach (&fixture, &bob, "fast"));
  client_expect_bytes (&fixture, alice, 5, 100000);
  close (alice);

  tls_test_write_keys (TLS_TEST_USER ":" TLS_TEST_KEY "\n");
  CHECK_EQ (tls_server_reload (fixture.tls, &err), 0);
}

/* ---- Time and memory ---- */

static void
a_handshake_that_is_never_finished_is_dropped (void)
{
  struct front_fixture hurried = { .limits = default_front_limits,
                                   .tls = fixture.tls,
                                   .tls_mode = TLS_REQUIRE };
  int fd;

  hurried.limits.handshake_ns = 100 * NS_PER_MS;
  fixture_start (&hurried);
  fd = client_connect (&hurried);
  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE);
  tls_client_start (fd);
  expect_no_answer (fd); /* Says nothing. */

  fd = client_connect (&hurried);
  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE);
  tls_client_start (fd);
  client_send (fd, "\26\3\1\1\0\1", 6); /* Half a ClientHello. */
  expect_no_answer (fd);

  fd = tls_client_connect (&hurried, &any_client);
  client_expect_closed (fd); /* Asks for nothing. */
  tls_relays_wait ();
  fixture_stop (&hurried);
}

/* Each of its messages is one that we must answer. */
static void
a_client_that_makes_us_talk_and_does_not_listen_is_dropped (void)
{
  static const char go[] = "IHAVEOPT\0\0\0\7\0\0\0\12\0\0\0\4fast\0";
  const int fd = greeted ();
  int left = 1000000, r;
  SSL *ssl;

  tls_client_start (fd);
  ssl = tls_client_new (fd, &tls13);
  CHECK_EQ (SSL_write (ssl, go, sizeof go), sizeof go);
  do {
    SSL_key_update (ssl, SSL_KEY_UPDATE_REQUESTED);
    r = SSL_do_handshake (ssl);
  } while (r == 1 && --left > 0);
  CHECK (left > 0);
  CHECK_EQ (SSL_get_error (ssl, r), SSL_ERROR_SYSCALL);
  CHECK (errno == EPIPE || errno == ECONNRESET);
  SSL_free (ssl);
  close (fd);
}

int
main (void)
{
  signal (SIGPIPE, SIG_IGN);
  fixture.limits = default_front_limits;
  fixture.limits.stall_ns = 10 * NS_PER_MS;
  fixture.tls = tls_test_server ();
  fixture.tls_mode = TLS_REQUIRE;
  fixture_start (&fixture);
  RUN (every_kind_of_client_reads_every_byte);
  RUN (the_key_is_changed_before_it_wears_out);
  RUN (many_requests_in_one_record_are_all_answered);
  RUN (a_write_in_many_records_is_read_over);
  RUN (a_client_that_does_not_read_holds_nothing_and_loses_nothing);
  RUN (the_end_is_announced);
  RUN (a_client_that_leaves_before_it_reads_gets_the_whole_reply);
  RUN (without_tls_nothing_is_answered_where_it_is_required);
  RUN (an_option_too_long_is_no_way_around_it);
  RUN (starttls_is_refused_with_data_and_a_second_time);
  RUN (plain_text_behind_starttls_is_never_heeded);
  RUN (where_tls_is_off_it_is_refused);
  RUN (where_tls_is_on_both_kinds_are_served);
  RUN (what_was_agreed_in_plain_text_is_forgotten);
  RUN (contexts_set_in_plain_text_are_forgotten);
  RUN (a_wrong_key_or_name_is_turned_away);
  RUN (keys_that_are_read_again_count_for_new_clients);
  RUN (a_handshake_that_is_never_finished_is_dropped);
  RUN (a_client_that_makes_us_talk_and_does_not_listen_is_dropped);
  tls_relays_wait ();
  fixture_stop (&fixture);
  tls_server_free (fixture.tls);
  tls_test_remove_keys ();
  return EXIT_SUCCESS;
}
