/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A connection of a check, as far as the check wants it to be ordinary:
 *
 *   session_connect ─▶ session_greet ─▶ session_secure ─▶ session_enter
 *   └───────────────── session_begin ────────────────┘
 *   └───────────────── session_open ─────────────────────────────────┘
 *
 * A check takes these steps up to where its own question starts.
 */
#ifndef BP_CONFORM_SESSION_H
#define BP_CONFORM_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conform/channel.h"

struct target;
struct pending;

struct session {
  struct channel channel;
  const struct target *target;
  uint16_t handshake_flags; /* The server's. */
  bool is_structured;       /* Structured replies are negotiated. */
  uint64_t size;            /* Bytes; of the export that was entered. */
  uint16_t flags;
  struct pending *pending; /* Requests not yet answered, oldest first. */
  uint64_t next_cookie;
};

void session_connect (struct session *session, const struct target *target);

/* Receive the greeting, which must be that of fixed newstyle. */
void session_read_greeting (struct session *session);

/* Receive the greeting and answer with FLAGS. */
void session_greet (struct session *session, uint32_t flags);

/* TLS, if the URI says so; the check is skipped if the server demands TLS
 * and the URI does not.
 */
void session_secure (struct session *session);

/* Ready for options. */
struct session *session_begin (const struct target *target);

/* Ready for options, and structured replies negotiated, or skip. */
struct session *session_begin_structured (const struct target *target);

/* Ask for structured replies, and skip if they are not offered. */
void session_structure (struct session *session);

/* From options to transmission, by GO, or EXPORT_NAME where there is no
 * GO.
 */
void session_enter (struct session *session);

/* Ready for requests: with simple replies, or structured ones. */
struct session *session_open (const struct target *target);
struct session *session_open_structured (const struct target *target);

/* Fail unless a client that knows nothing of what happened before is
 * served: it connects, asks for the export and, if there is one, reads.
 */
void expect_new_client_served (const struct target *target,
                               const char *after);

#endif /* BP_CONFORM_SESSION_H */
