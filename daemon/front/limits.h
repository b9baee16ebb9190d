/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a client may cost, in one place; tests make some of it smaller. */
#ifndef BP_FRONT_LIMITS_H
#define BP_FRONT_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/base/clock.h"

struct front;
struct options;
struct pager;
struct tls_server;

struct front_limits {
  unsigned nr_loops;        /* 0: one for each CPU, at most 4. */
  unsigned max_clients;     /* Connections; one more is closed at once. */
  uint64_t handshake_ns;    /* How long the handshake may wait for the
                               client, all in all; each option gives back
                               a hundredth of it. */
  unsigned max_options;     /* Of one connection. */
  uint64_t stall_ns;        /* A reply that waited so long for a client to
                              read lets its windows go. */
  uint64_t accept_pause_ns; /* After accept found no descriptor left. */
  size_t send_buffer;       /* Bytes that a Unix socket may keep for a client
                              that does not read, which the system doubles
                              and may limit; 0: its own choice. */
  size_t max_option;        /* Bytes of an option that are kept; */
  size_t max_skip;          /* of one that is read over; more: closed. */
  size_t max_list;          /* Bytes of the answer to LIST. */
  unsigned max_requests;    /* Of one connection, not yet answered; */
  unsigned max_maps;        /* of these, BLOCK_STATUS; */
  uint32_t max_extents;     /* in one answer, of a context; */
  size_t max_bytes;         /* their lengths (but one always passes). */
  size_t max_resume;        /* Bytes asked for at a time of a client that
                              has not read yet, or reads on after it had
                              stalled; and bytes ready for a client before
                              more of a large read is asked for. */
  uint64_t tls_rekey_bytes; /* Sent under one key, where TLS can change it
                               (1.3): AES-GCM wears out.  gnutls puts up
                               with eight changes a second. */
  uint32_t part_bytes;      /* Larger structured reads go in such parts; at
                              most max_resume. */
};

static const struct front_limits default_front_limits = {
  .nr_loops = 0,
  .max_clients = 4096, /* --max-clients says otherwise. */
  .handshake_ns = 10 * NS_PER_SEC,
  .max_options = 16384,
  .stall_ns = 200 * NS_PER_MS,
  .accept_pause_ns = 100 * NS_PER_MS,
  .send_buffer = 512 << 10, /* A batch should fit. */
  .max_option = 64 << 10,
  .max_skip = 32 << 20,
  .max_list = 8 << 20,
  .max_requests = 4096,
  .max_maps = 16,
  .max_extents = 1024,
  .max_bytes = 32 << 20,
  .max_resume = 1 << 20,
  .tls_rekey_bytes = UINT64_C (64) << 30,
  .part_bytes = 256 << 10,
};

/* front_new with LIMITS (borrowed) instead of the default. */
int front_new_limited (struct front **ret_front,
                       const struct options *options, struct pager *pager,
                       struct tls_server *tls,
                       const struct front_limits *limits,
                       struct bp_error *err);

#endif /* BP_FRONT_LIMITS_H */
