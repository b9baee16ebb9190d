/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A front over a fake pager, and its clients, which speak NBD by hand
 * (harness/nbd-client.h).
 *
 * Threads: a fixture is main's.
 */
#ifndef BP_TEST_FRONT_CLIENT_H
#define BP_TEST_FRONT_CLIENT_H

#include <poll.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "daemon/front/limits.h"
#include "daemon/front/policy.h"
#include "harness/check.h"
#include "harness/fake-pager.h"
#include "harness/nbd-client.h"

/* Wait until COND, at most ten seconds. */
#define WAIT_UNTIL(cond)                               \
  do {                                                 \
    const uint64_t end_ = now_ns () + 10 * NS_PER_SEC; \
                                                       \
    while (!(cond)) {                                  \
      CHECK (now_ns () < end_);                        \
      poll (NULL, 0, 1);                               \
    }                                                  \
  } while (0)

struct front_fixture {
  struct front_limits limits;
  struct tls_server *tls; /* Borrowed; or NULL. */
  enum tls_mode tls_mode;
  unsigned exit_when_idle;        /* Seconds; 0: never. */
  struct client_settings clients; /* What they may do, if not all. */
  struct pager *pager;
  struct front *front;
  char dir[32];
  char path[48]; /* Of the socket. */
};

/* Zero it and fill in what comes before pager first, if the default limits
 * and plain text will not do.
 */
void fixture_start (struct front_fixture *fixture);

/* Stop the server and check that nothing is left. */
void fixture_stop (struct front_fixture *fixture);

/* A socket. */
int client_connect (const struct front_fixture *fixture);

/* Connect and greet. */
int client_greeted (const struct front_fixture *fixture);

/* FD, which has greeted, can still attach and read.  It is closed. */
void client_expect_goes_on (const struct front_fixture *fixture, int fd);

/* The transmission flags of every export, with simple replies. */
#define FIXTURE_FLAGS                                                  \
  (NBD_FLAG_HAS_FLAGS | NBD_FLAG_READ_ONLY | NBD_FLAG_CAN_MULTI_CONN | \
   NBD_FLAG_SEND_CACHE)

/* Connect, and attach to NAME with GO. */
int client_attach (const struct front_fixture *fixture, const char *name);

/* The same with structured replies. */
int client_attach_structured (const struct front_fixture *fixture,
                              const char *name);

/* Read, and compare with the image. */
void client_expect_bytes (const struct front_fixture *fixture, int fd,
                          uint64_t offset, uint32_t len);

/* Receive the bytes of an answer, and compare. */
void client_recv_bytes (const struct front_fixture *fixture, int fd,
                        uint64_t offset, uint32_t len);

#endif /* BP_TEST_FRONT_CLIENT_H */
