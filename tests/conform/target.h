/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What is tested, and what was found out about it before the checks ran.
 * Const from then on; checks inherit it by fork.
 */
#ifndef BP_CONFORM_TARGET_H
#define BP_CONFORM_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conform/uri.h"

enum tls_mode {
  TLS_NONE,
  TLS_SELECTIVE, /* Offered, and perhaps demanded for some exports. */
  TLS_FORCED,    /* Demanded before any other option. */
};

/* Lives in memory that the processes of the probe write to. */
struct facts {
  enum tls_mode tls;
  bool needs_tls; /* The export is not served without. */
  bool is_opened; /* It could be entered; otherwise why not. */
  char why[256];
  bool has_no_go;                /* So it is entered by EXPORT_NAME. */
  uint64_t size;                 /* Bytes. */
  uint16_t flags;                /* Without structured replies. */
  uint32_t min_block, max_block; /* Bytes; 1 and 0xffffffff if not said. */
  bool has_structured;
  uint16_t structured_flags; /* With them. */
  bool has_allocation;       /* base:allocation can be selected. */
  bool serves_any_name;      /* A name that cannot exist, too. */
  bool takes_one_client;     /* At a time. */
};

struct target {
  const struct uri *uri;
  const char *text; /* The URI, as it was given. */
  unsigned timeout_s;
  int reference_fd; /* -1: none. */
  uint64_t reference_size;
  const struct facts *facts;
};

/* A name that no server should have. */
#define NO_SUCH_EXPORT "blobpager-nbd-conform: no such export"

/* In a check: it needs TLS to go on, and the URI does without: skip. */
void skip_if_tls_is_missing (const struct target *target);

/* In a check: it needs the export; skips or fails if that was not opened
 * before the checks began.
 */
void expect_export (const struct target *target);

/* In a check: skip if the server takes no second client. */
void skip_if_one_client (const struct target *target);

#endif /* BP_CONFORM_TARGET_H */
