/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A client that speaks NBD by hand, so that it can say what no proper
 * client would.  Whatever fails, and an answer that does not come in time,
 * ends the program.
 *
 * Threads: a socket belongs to one thread at a time.
 */
#ifndef BP_TEST_NBD_CLIENT_H
#define BP_TEST_NBD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/front/nbd-protocol.h"

/* A socket, connected to the one at PATH; sending and receiving fail when
 * nothing has moved for TIMEOUT_S seconds.
 */
int client_connect_to (const char *path, int timeout_s);

void client_send (int fd, const void *data, size_t len);
void client_recv (int fd, void *data, size_t len);

/* Wait until the server closes the connection; nothing more may come. */
void client_expect_closed (int fd);

/* Receive the greeting and answer with FLAGS. */
void client_greet (int fd, uint32_t flags);

void client_send_option (int fd, uint32_t option, const void *data,
                         size_t len);

/* An INFO or GO for NAME (a string) that requests everything. */
void client_send_info (int fd, uint32_t option, const char *name);

/* A reply to OPTION: returns its type.  DATA has room for 4096 bytes. */
uint32_t client_recv_option (int fd, uint32_t option, uint8_t *data,
                             size_t *ret_len);

/* Receive replies to OPTION up to one that is no NBD_REP_INFO; returns its
 * type.
 */
uint32_t client_end_option (int fd, uint32_t option);

/* A LIST_META_CONTEXT or SET_META_CONTEXT for NAME with QUERIES, strings up
 * to a NULL.
 */
void client_send_queries (int fd, uint32_t option, const char *name,
                          const char *const *queries);

struct client_contexts {
  uint32_t type; /* Of the last reply. */
  size_t count;  /* Contexts told before it. */
  struct {
    uint32_t id;
    char name[64];
  } list[4];
};
/* The replies to such an option. */
struct client_contexts client_recv_contexts (int fd, uint32_t option);

/* Greet and have structured replies. */
void client_greet_structured (int fd);

/* Greet, choose the kind of reply, and GO to the export NAME. */
void client_negotiate (int fd, const char *name, bool is_structured);

void client_send_request (int fd, uint16_t flags, uint16_t type,
                          uint64_t cookie, uint64_t offset, uint32_t len);

/* A simple reply: returns its error.  A read's bytes follow. */
uint32_t client_recv_reply (int fd, uint64_t *ret_cookie);

/* The header of a chunk; LEN bytes of payload follow. */
struct client_chunk {
  uint16_t flags;
  uint16_t type;
  uint64_t cookie;
  uint32_t len;
};
struct client_chunk client_recv_chunk (int fd);

/* Receive the rest of an error chunk.  Returns its error, and in
 * *RET_OFFSET its offset, or UINT64_MAX if it has none.
 */
uint32_t client_recv_error (int fd, const struct client_chunk *chunk,
                            uint64_t *ret_offset);

/* Send a request and receive its reply, which has no data. */
uint32_t client_request (int fd, uint16_t flags, uint16_t type,
                         uint64_t offset, uint32_t len);

#endif /* BP_TEST_NBD_CLIENT_H */
