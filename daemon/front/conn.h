/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A client's connection, from accept to close.
 *
 *   FLAGS ─▶ OPTION ─▶ OPTION_DATA ─▶ OPENING or LISTING ─┐
 *              ▲  │ ─▶ OPTION_SKIP ─┐         or STARTTLS  │
 *              └──┴─────────────────┴─────────────────────┤
 *                                                         ▼ GO,
 *   any ─▶ CLOSED ◀── DRAINING ◀──── DISC, ABORT ──── TRANSMISSION
 *
 * DRAINING: nothing is read any more; what is under way is answered.
 * CLOSED: the socket is gone; the struct stays until the last read that
 * the pager has of it is complete.
 *
 * Owned by the loop's thread.
 */
#ifndef BP_CONN_H
#define BP_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/front/handshake.h"
#include "daemon/front/large-read.h"
#include "daemon/front/loop.h"
#include "daemon/front/option-reply.h"
#include "daemon/front/request.h"
#include "daemon/front/transport.h"

struct client_policy;
struct shard;
struct export;
struct attach;

enum conn_state {
  CONN_FLAGS,       /* Waits for the client flags. */
  CONN_OPTION,      /* Waits for an option's header. */
  CONN_OPTION_DATA, /* Waits for its data. */
  CONN_OPTION_SKIP, /* Reads over data that is too long. */
  CONN_OPENING,     /* The pager opens an export. */
  CONN_LISTING,     /* The pager lists them. */
  CONN_STARTTLS,    /* TLS follows what is being sent. */
  CONN_TRANSMISSION,
  CONN_DRAINING,
  CONN_CLOSED,
};

/* What has been received and not yet understood: requests, or a part of
 * the handshake.  146 requests; longer options are kept apart.
 */
enum {
  CONN_BUFFER_SIZE = 4096
};

struct conn {
  struct event_source source;
  struct shard *shard;
  const struct client_policy *policy; /* Borrowed; of its listener. */

  int fd;                     /* Its number names the client in the log. */
  struct transport transport; /* Of fd. */
  uint32_t events;            /* That epoll watches. */
  enum conn_state state;
  TAILQ_ENTRY (conn)
  entry; /* In shard->conns, then in shard->dead. */
  TAILQ_ENTRY (conn)
  dirty_entry;
  bool is_dirty;      /* In shard->dirty. */
  bool is_blocked;    /* The socket took less than there was. */
  bool paused;        /* A request in the buffer waits for room. */
  struct timer timer; /* Of the handshake, then of a stalled reply. */

  uint8_t in[CONN_BUFFER_SIZE];
  size_t in_len;
  uint64_t skip; /* Bytes to read over before anything else. */

  /* Handshake. */
  uint64_t patience_ns; /* Left of handshake_ns while its timer is not
                           armed. */
  unsigned nr_options;
  bool no_zeroes;
  bool structured; /* Replies are: STRUCTURED_REPLY was accepted. */
  uint32_t option;
  uint32_t option_len;
  size_t option_have;   /* Bytes of option_data received. */
  uint8_t *option_data; /* option_len bytes, or NULL. */
  bool wants_name;      /* Of INFO and GO. */
  bool wants_description;
  unsigned queried; /* Set of contexts that the option is about. */
  /* By SET_META_CONTEXT: a set of contexts, and for which export. */
  unsigned selected;
  size_t selected_name_len;
  char selected_name[HANDSHAKE_MAX_NAME];
  struct attach *attach; /* What the pager is doing for it, or NULL. */
  struct out_buf out;    /* Replies. */

  /* Transmission. */
  unsigned contexts;     /* Set of those that BLOCK_STATUS tells of. */
  struct export *export; /* A reference; its client has entered. */
  struct request_list reading;
  struct request_list replies; /* In the order they are sent. */
  struct request_list parked;
  struct large_read_list large; /* With parts to ask for. */
  struct request *refused;      /* Answered once its payload (skip) has
                                  been read over, or NULL. */
  struct request *resuming;     /* In reading; its reply is begun, so that
                                  nothing else can be sent.  Or NULL. */
  unsigned nr_requests;         /* All of these. */
  unsigned nr_maps;             /* Of these, BLOCK_STATUS. */
  uint64_t nr_bytes;            /* Sum of their len. */
  uint64_t nr_asked;            /* Bytes that the pager is asked for. */
  uint64_t nr_ready;            /* Bytes of the cache that replies hold. */
  uint64_t window;              /* Bytes of these two that it may have. */
  uint64_t sent_since;          /* Bytes, since the stall timer was armed. */
};

/* Greet the client of FD, which is taken over; POLICY is borrowed.
 * Returns 0 or -errno (FD is closed then).
 */
int conn_new (struct shard *shard, int fd,
              const struct client_policy *policy);

/* Close the socket, cancel what is under way.  CONN stays until its last
 * read is complete and the current events are done.  WHY is for the log.
 */
void conn_close (struct conn *conn, const char *why);

/* A read of CONN, which is closed, has come back: forget CONN if it was
 * the last.
 */
void conn_bury (struct conn *conn);

/* Read nothing more; close once everything is answered. */
void conn_drain (struct conn *conn);

/* Handle what has been received, send what can be sent. */
void conn_pump (struct conn *conn);

/* Take the first LEN bytes out of conn->in. */
void conn_consume (struct conn *conn, size_t len);

/* Have the shard pump CONN when the current events are done. */
void conn_make_dirty (struct conn *conn);

#endif /* BP_CONN_H */
