/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A small NBD server that keeps to the standard, but for one bug.
 *
 * It shows that the checks of blobpager-nbd-conform can fail: without a bug
 * it passes them all, and each bug (broken-bugs.h) turns those red that are
 * about it.  It serves one read-only export, "disk", whose bytes are a
 * function of their offset; a process for each client.
 */
#ifndef BP_CONFORM_BROKEN_H
#define BP_CONFORM_BROKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "conform/broken-bugs.h"

enum {
  NR_CONTEXTS = 2, /* base:allocation and another. */
  REGION = 65536,  /* Bytes; regions are data and holes, by turns. */
};

/* Of the process of one client. */
struct client {
  int fd;
  struct ssl_st *ssl; /* OpenSSL's; NULL: plain. */
  bool is_transmitting;
  unsigned number; /* Of the connection. */
  pid_t server;    /* Our parent. */
  int lock_fd;     /* A file that all clients' processes can lock. */
  uint64_t size;   /* Bytes of the export. */

  uint32_t flags; /* The client's. */
  bool is_structured;
  bool is_selected[NR_CONTEXTS]; /* For our export. */
  bool has_failed_go;
  bool has_plain_option; /* A LIST, from before TLS. */

  unsigned nr_errors;   /* Answered. */
  uint64_t nr_bytes;    /* Of reads, answered. */
  uint64_t last_cookie; /* Of the last request. */
  bool was_written;     /* To our export; all reads as zeroes. */
};

bool has_bug (enum bug bug);

/* ---- broken-wire.c ---- */

/* Exactly LEN bytes; ends the process at the end of the connection. */
void client_recv (struct client *client, void *data, size_t len);
void client_skip (struct client *client, uint64_t len);
void client_send (struct client *client, const void *data, size_t len);

/* What has arrived of the next message, without taking it; -1: nothing. */
ssize_t client_peek (struct client *client, void *data, size_t len);

/* End the process, and with it the connection. */
void client_leave (void) __attribute__ ((noreturn));

/* The client went away: the same, or worse. */
void client_is_lost (struct client *client) __attribute__ ((noreturn));

/* ---- broken-tls.c ---- */

/* Is TLS offered? */
bool has_tls (void);
void begin_tls (struct client *client);
void end_tls (struct client *client);

/* ---- broken-handshake.c ---- */

void send_greeting (struct client *client);
void negotiate (struct client *client);
void reply_option (struct client *client, uint32_t option, uint32_t type,
                   const void *data, size_t len);
uint16_t export_flags (const struct client *client);
bool is_our_export (const uint8_t *name, size_t len);

/* ---- broken-info.c ---- */

/* Returns true if transmission begins. */
bool handle_info (struct client *client, uint32_t option,
                  const uint8_t *data, size_t len);
void handle_list (struct client *client, size_t len);

/* ---- broken-meta.c ---- */

void handle_meta (struct client *client, uint32_t option,
                  const uint8_t *data, size_t len);

/* ---- broken-requests.c ---- */

struct request {
  uint16_t flags;
  uint16_t type;
  uint64_t cookie;
  uint64_t offset;
  uint32_t len;
};

void serve_requests (struct client *client) __attribute__ ((noreturn));

/* LEN bytes of the export at OFFSET. */
void fill_bytes (const struct client *client, uint64_t offset, uint8_t *data,
                 size_t len);
bool is_hole (const struct client *client, uint64_t offset);
bool is_inside (const struct client *client, const struct request *request);
void send_simple (struct client *client, const struct request *request,
                  uint32_t error, const uint8_t *data);
void send_result (struct client *client, const struct request *request,
                  uint32_t error);

/* ---- broken-chunks.c ---- */

void send_structured_read (struct client *client,
                           const struct request *request);
void send_structured_error (struct client *client,
                            const struct request *request, uint32_t error);
void send_chunk (struct client *client, const struct request *request,
                 uint16_t flags, uint16_t type, const void *data,
                 size_t len);

/* ---- broken-extents.c ---- */

void handle_block_status (struct client *client,
                          const struct request *request);

#endif /* BP_CONFORM_BROKEN_H */
